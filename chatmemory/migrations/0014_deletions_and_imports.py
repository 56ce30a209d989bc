from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0013_branches"),
    ]

    operations = [
        migrations.AddField(
            model_name="memory",
            name="deleted_at",
            field=models.DateTimeField(help_text="when its deletion began", null=True),
        ),
        migrations.AddField(
            model_name="memory",
            name="imported",
            field=models.BigIntegerField(
                help_text="messages of an unfinished import that are stored", null=True
            ),
        ),
    ]
