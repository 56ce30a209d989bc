from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0007_lab_figures_move"),
    ]

    operations = [
        migrations.DeleteModel(
            name="KeptDiagnosis",
        ),
    ]
