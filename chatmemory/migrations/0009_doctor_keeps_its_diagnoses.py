from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0008_evidence_incidents_are_events"),
    ]

    operations = [
        migrations.DeleteModel(
            name="KeptDiagnosis",
        ),
    ]
