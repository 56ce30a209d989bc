import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("chatmemory", "0002_schema_of_2026_11_28")]
    replaces = [
        ("chatmemory_doctor", "0001_tables"),
        ("chatmemory_doctor", "0002_seen_and_short"),
    ]

    operations = [
        migrations.CreateModel(
            name="ProvidersInUse",
            fields=[
                (
                    "prefix",
                    models.CharField(blank=True, max_length=255, primary_key=True, serialize=False),
                ),
                (
                    "providers",
                    models.JSONField(
                        default=list, help_text='such as ["openai", "gemini:gemini-3"]'
                    ),
                ),
                ("set_by", models.CharField(blank=True, max_length=255)),
                ("set_at", models.DateTimeField()),
            ],
            options={
                "verbose_name_plural": "providers in use",
            },
        ),
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
                    models.TextField(
                        default="",
                        help_text="what it is listed by, in commas: see `diagnosis.Mark`",
                    ),
                ),
                ("refused_by", models.IntegerField(default=0, help_text="the providers, as bits")),
                (
                    "mishandled_by",
                    models.IntegerField(default=0, help_text="the providers, as bits"),
                ),
                (
                    "ill_at",
                    models.BigIntegerField(help_text="since when it has a problem", null=True),
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
                (
                    "needed_limit",
                    models.BigIntegerField(
                        help_text="what the largest recorded turn needs, where the limit is smaller",
                        null=True,
                    ),
                ),
                (
                    "seen",
                    models.IntegerField(
                        default=0,
                        help_text="the providers that messages tell of, as bits: see `seen`",
                    ),
                ),
                (
                    "short_at",
                    models.BigIntegerField(help_text="since when the limit is smaller", null=True),
                ),
            ],
            options={
                "verbose_name": "diagnosis",
                "verbose_name_plural": "diagnosis",
                "indexes": [
                    models.Index(models.F("kept_at"), name="doctor_by_time"),
                    models.Index(
                        models.OrderBy(models.F("ill_at"), descending=True),
                        models.OrderBy(models.F("memory"), descending=True),
                        condition=models.Q(("ill_at__isnull", False)),
                        name="doctor_ill",
                    ),
                    models.Index(
                        models.F("refused_by"),
                        condition=models.Q(("refused_by__gt", 0)),
                        name="doctor_refused",
                    ),
                    models.Index(
                        models.F("oversized_step"),
                        condition=models.Q(("oversized_step__isnull", False)),
                        name="doctor_oversized",
                    ),
                    models.Index(
                        models.F("missed_step"),
                        condition=models.Q(("missed_step__isnull", False)),
                        name="doctor_missed",
                    ),
                    models.Index(
                        models.F("seen"), condition=models.Q(("seen__gt", 0)), name="doctor_seen"
                    ),
                    models.Index(
                        models.F("needed_limit"),
                        condition=models.Q(("needed_limit__isnull", False)),
                        name="doctor_short",
                    ),
                ],
            },
        ),
    ]
