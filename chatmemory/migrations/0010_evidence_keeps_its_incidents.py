from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0009_doctor_keeps_its_diagnoses"),
    ]

    operations = [
        migrations.DeleteModel(
            name="KeptCompactions",
        ),
        migrations.DeleteModel(
            name="KeptIncidents",
        ),
    ]
