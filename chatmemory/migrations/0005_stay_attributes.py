"""Stays may differ from their message: see `chatmemory.ledger.overrides`."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatmemory", "0004_diagnosis_is_kept")]

    operations = [
        migrations.AddField(
            model_name="stay",
            name="overrides",
            field=models.TextField(
                blank=True, help_text="what differs from the message, as JSON", null=True
            ),
        ),
    ]
