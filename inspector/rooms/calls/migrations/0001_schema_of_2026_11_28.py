import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("chatmemory", "0002_schema_of_2026_11_28")]
    replaces = [
        ("chatmemory_calls", "0001_calls"),
        ("chatmemory_calls", "0002_definitions_once"),
        ("chatmemory_calls", "0003_awaited_calls"),
    ]

    operations = [
        migrations.CreateModel(
            name="CallRun",
            fields=[
                (
                    "memory",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="chatmemory.memory",
                    ),
                ),
                (
                    "prefix",
                    models.CharField(
                        blank=True, help_text="of the token that sent them", max_length=255
                    ),
                ),
                ("digests", models.BinaryField(default=b"")),
                ("calls", models.BigIntegerField(default=0)),
                ("is_own", models.BooleanField(default=True)),
            ],
            options={
                "verbose_name": "run of calls",
            },
        ),
        migrations.CreateModel(
            name="ToolDefinition",
            fields=[
                ("digest", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                ("definition", models.TextField(help_text="JSON as it was sent")),
            ],
            options={
                "verbose_name": "definition of a tool",
            },
        ),
        migrations.CreateModel(
            name="DroppedCalls",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "prefix",
                    models.CharField(
                        blank=True, help_text="of the token that sent them", max_length=255
                    ),
                ),
                (
                    "why",
                    models.CharField(
                        choices=[
                            ("no_messages", "no_messages"),
                            ("hidden", "hidden"),
                            ("dropped_attributes", "dropped_attributes"),
                            ("per_message_events", "per_message_events"),
                            ("unreadable", "unreadable"),
                        ],
                        max_length=32,
                    ),
                ),
                ("sender", models.CharField(blank=True, max_length=100)),
                ("count", models.BigIntegerField(default=0)),
                ("last_at", models.DateTimeField()),
                ("awaited", models.TextField(default="[]", help_text="JSON")),
            ],
            options={
                "verbose_name_plural": "dropped calls",
                "constraints": [
                    models.UniqueConstraint(
                        models.F("prefix"),
                        models.F("why"),
                        models.F("sender"),
                        name="calls_dropped",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="CallEnd",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "memory_id",
                        "digest",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("digest", models.CharField(help_text="in hexadecimal", max_length=16)),
                ("prefix", models.CharField(blank=True, max_length=255)),
                ("at", models.DateTimeField()),
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
                "verbose_name": "end of a run",
                "indexes": [
                    models.Index(
                        models.F("prefix"),
                        models.F("digest"),
                        models.OrderBy(models.F("at"), descending=True),
                        name="calls_ends",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="CallTool",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "memory_id",
                        "digest",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("digest", models.CharField(help_text="of the definition", max_length=32)),
                ("tokens", models.IntegerField()),
                ("is_redacted", models.BooleanField(default=False)),
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
                "verbose_name": "tool of calls",
                "indexes": [models.Index(models.F("digest"), name="calls_tools")],
            },
        ),
        migrations.CreateModel(
            name="ModelCall",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "memory_id",
                        "n",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("n", models.BigIntegerField()),
                (
                    "key",
                    models.CharField(
                        help_text="digest of what names the call for ever", max_length=32
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("recorder", "recorder"),
                            ("openinference", "openinference"),
                            ("genai", "genai"),
                        ],
                        max_length=16,
                    ),
                ),
                ("format", models.CharField(max_length=32)),
                ("provider", models.CharField(blank=True, max_length=64)),
                ("model", models.CharField(blank=True, max_length=255)),
                ("at", models.DateTimeField()),
                ("duration", models.FloatField(help_text="seconds", null=True)),
                ("is_exact", models.BooleanField(default=True)),
                ("step", models.BigIntegerField(null=True)),
                ("answer_step", models.BigIntegerField(null=True)),
                ("difference", models.TextField(blank=True, default="")),
                ("style", models.CharField(blank=True, max_length=16)),
                ("tools", models.TextField(default="[]")),
                ("response", models.TextField(blank=True, default="")),
                ("headers", models.TextField(default="{}")),
                ("input", models.BigIntegerField(null=True)),
                ("cached", models.BigIntegerField(null=True)),
                ("written", models.BigIntegerField(null=True)),
                ("output", models.BigIntegerField(null=True)),
                ("reasoning", models.BigIntegerField(null=True)),
                (
                    "counted",
                    models.BigIntegerField(
                        default=0, help_text="of messages and tools, counted here"
                    ),
                ),
                (
                    "is_countable",
                    models.BooleanField(default=True, help_text="no image and no other media"),
                ),
                (
                    "shared",
                    models.BigIntegerField(help_text="tokens of the common beginning", null=True),
                ),
                (
                    "again",
                    models.BigIntegerField(
                        default=0, help_text="tokens that were sent again after a prefix change"
                    ),
                ),
                ("is_broken", models.BooleanField(default=False)),
                ("finish", models.CharField(blank=True, max_length=64)),
                ("error", models.TextField(blank=True, default="")),
                (
                    "answer_key",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="digest of what names its answer for ever",
                        max_length=32,
                    ),
                ),
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
                "verbose_name": "call",
                "indexes": [
                    models.Index(
                        models.F("memory"), models.F("at"), models.F("n"), name="calls_by_start"
                    ),
                    models.Index(models.F("key"), name="calls_by_key"),
                    models.Index(
                        models.OrderBy(models.F("at"), descending=True),
                        models.OrderBy(models.F("memory"), descending=True),
                        models.OrderBy(models.F("n"), descending=True),
                        name="calls_newest",
                    ),
                    models.Index(models.F("answer_key"), name="calls_by_answer"),
                    models.Index(
                        models.F("model"),
                        models.OrderBy(models.F("at"), descending=True),
                        name="calls_of_model",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(models.F("memory"), models.F("key"), name="calls_once")
                ],
            },
        ),
    ]
