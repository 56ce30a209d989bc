import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("chatmemory", "0002_schema_of_2026_11_28")]
    replaces = [
        ("chatmemory_lab", "0001_figures"),
        ("chatmemory_lab", "0002_costs"),
    ]

    operations = [
        migrations.CreateModel(
            name="KeptCost",
            fields=[
                (
                    "memory",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="chatmemory.memory",
                    ),
                ),
                ("step", models.BigIntegerField()),
                ("version", models.CharField(max_length=32)),
                (
                    "kept_at",
                    models.BigIntegerField(
                        help_text="when it was stored, in microseconds since 1970"
                    ),
                ),
                ("content", models.TextField(default="[]", help_text="JSON, see the keeper")),
                ("openai", models.IntegerField(null=True)),
                ("openai_step", models.BigIntegerField(null=True)),
                ("anthropic", models.IntegerField(null=True)),
                ("anthropic_step", models.BigIntegerField(null=True)),
                ("gemini", models.IntegerField(null=True)),
                ("gemini_step", models.BigIntegerField(null=True)),
            ],
            options={
                "verbose_name": "cost",
                "verbose_name_plural": "cost",
                "indexes": [models.Index(models.F("kept_at"), name="lab_cost_by_time")],
            },
        ),
        migrations.CreateModel(
            name="Figures",
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
                ("key", models.CharField(help_text="digest of the question", max_length=32)),
                (
                    "state",
                    models.CharField(
                        help_text="head of the ledger, and its last step", max_length=64
                    ),
                ),
                ("figures", models.JSONField()),
                ("computed_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "memory",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatmemory.memory",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "figures",
                "indexes": [
                    models.Index(
                        models.F("key"), models.F("memory"), name="lab_figures_by_question"
                    )
                ],
            },
        ),
    ]
