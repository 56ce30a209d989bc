import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0003_what_is_kept"),
    ]

    operations = [
        migrations.CreateModel(
            name="KeptDiagnosis",
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
                (
                    "problems",
                    models.CharField(
                        default="",
                        help_text="the rules it is listed by, in commas",
                        max_length=1024,
                    ),
                ),
                ("refused_by", models.IntegerField(default=0, help_text="the providers, as bits")),
                (
                    "ill_at",
                    models.BigIntegerField(help_text="since when it has a problem", null=True),
                ),
                (
                    "waiting_call",
                    models.BigIntegerField(
                        help_text="seq of the tool call at the window's end that awaits results",
                        null=True,
                    ),
                ),
                (
                    "oversized_step",
                    models.BigIntegerField(
                        help_text="the newest step whose message the window had no room for",
                        null=True,
                    ),
                ),
                (
                    "missed_step",
                    models.BigIntegerField(
                        help_text="the newest step whose message left in it", null=True
                    ),
                ),
            ],
            options={
                "verbose_name": "diagnosis",
                "verbose_name_plural": "diagnosis",
            },
        ),
        migrations.RemoveIndex(
            model_name="memory",
            name="memory_ill",
        ),
        migrations.RemoveIndex(
            model_name="memory",
            name="memory_refused",
        ),
        migrations.RemoveIndex(
            model_name="memory",
            name="memory_oversized",
        ),
        migrations.RemoveIndex(
            model_name="memory",
            name="memory_missed",
        ),
        migrations.RemoveField(
            model_name="memory",
            name="health",
        ),
        migrations.RemoveField(
            model_name="memory",
            name="ill_at",
        ),
        migrations.RemoveField(
            model_name="memory",
            name="missed_step",
        ),
        migrations.RemoveField(
            model_name="memory",
            name="oversized_step",
        ),
        migrations.RemoveField(
            model_name="memory",
            name="problems",
        ),
        migrations.RemoveField(
            model_name="memory",
            name="refused_by",
        ),
        migrations.RemoveField(
            model_name="memory",
            name="waiting_call",
        ),
        migrations.AddIndex(
            model_name="keptdiagnosis",
            index=models.Index(models.F("kept_at"), name="diagnosis_by_time"),
        ),
        migrations.AddIndex(
            model_name="keptdiagnosis",
            index=models.Index(
                models.OrderBy(models.F("ill_at"), descending=True),
                models.OrderBy(models.F("memory"), descending=True),
                condition=models.Q(("ill_at__isnull", False)),
                name="diagnosis_ill",
            ),
        ),
        migrations.AddIndex(
            model_name="keptdiagnosis",
            index=models.Index(
                models.F("refused_by"),
                condition=models.Q(("refused_by__gt", 0)),
                name="diagnosis_refused",
            ),
        ),
        migrations.AddIndex(
            model_name="keptdiagnosis",
            index=models.Index(
                models.F("oversized_step"),
                condition=models.Q(("oversized_step__isnull", False)),
                name="diagnosis_oversized",
            ),
        ),
        migrations.AddIndex(
            model_name="keptdiagnosis",
            index=models.Index(
                models.F("missed_step"),
                condition=models.Q(("missed_step__isnull", False)),
                name="diagnosis_missed",
            ),
        ),
    ]
