from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatmemory_calls", "0002_definitions_once")]

    operations = [
        migrations.AddField(
            model_name="droppedcalls",
            name="awaited",
            field=models.TextField(default="[]", help_text="JSON"),
        ),
    ]
