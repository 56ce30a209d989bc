import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0008_over_limit_index"),
    ]

    operations = [
        migrations.CreateModel(
            name="Trial",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "memory_id",
                        "key",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "key",
                    models.CharField(help_text="digest of the drafts and the limit", max_length=16),
                ),
                ("drafts", models.TextField(help_text="a JSON list of messages")),
                ("limit", models.BigIntegerField(blank=True, null=True)),
                ("tried_by", models.CharField(blank=True, max_length=255)),
                ("tried_at", models.DateTimeField()),
                (
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatmemory.memory",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(models.F("tried_at"), name="trial_by_age"),
                    models.Index(
                        models.F("tried_by"), models.F("tried_at"), name="trial_by_person"
                    ),
                ],
            },
        ),
    ]
