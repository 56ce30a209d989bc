from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Count, Max, Min
from django.db.models.functions import Coalesce


def _find_last_steps(apps, schema_editor):
    """Fill in the last steps of calls. A conversation whose first step is no call's is not theirs,
    unless its first calls were deleted.
    """
    using = schema_editor.connection.alias
    calls = apps.get_model("chatmemory_calls", "ModelCall").objects.using(using)
    runs = apps.get_model("chatmemory_calls", "CallRun").objects.using(using)
    found = calls.order_by().values("memory_id")
    found = found.annotate(
        count=Count("n"), first=Min("step"), last=Max(Coalesce("answer_step", "step"))
    )
    for memory_id, count, first, last in found.values_list(
        "memory_id", "count", "first", "last"
    ).iterator():
        rows = runs.filter(memory_id=memory_id)
        rows.update(last_step=last or 0)
        if first is not None and first > 1:
            rows.filter(calls=count).update(is_own=False)


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0002_schema_of_2026_11_28"),
        ("chatmemory_calls", "0001_schema_of_2026_11_28"),
    ]

    operations = [
        migrations.AddField(
            model_name="callrun",
            name="known_seq",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="callrun",
            name="last_step",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="callrun",
            name="own_messages",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="modelcall",
            name="places",
            field=models.TextField(
                blank=True, default="", help_text="of its messages, without a step"
            ),
        ),
        migrations.AddField(
            model_name="modelcall",
            name="removed",
            field=models.IntegerField(
                default=0, help_text="how many secrets were removed from the body"
            ),
        ),
        migrations.AlterField(
            model_name="droppedcalls",
            name="why",
            field=models.CharField(help_text="a DropReason", max_length=32),
        ),
        migrations.CreateModel(
            name="CallMessage",
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
                    "digest",
                    models.CharField(
                        blank=True, help_text="empty once it is redacted", max_length=32
                    ),
                ),
                ("text", models.TextField()),
                ("frame", models.TextField()),
                ("attributes", models.TextField(blank=True, null=True)),
                ("tokens", models.IntegerField()),
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
                "verbose_name": "message of calls",
                "indexes": [
                    models.Index(models.F("memory"), models.F("digest"), name="calls_messages")
                ],
            },
        ),
        migrations.CreateModel(
            name="KnownMessage",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "memory_id",
                        "seq",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("seq", models.BigIntegerField()),
                ("digest", models.CharField(help_text="in hexadecimal", max_length=16)),
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
                "verbose_name": "known message",
                "indexes": [
                    models.Index(
                        models.F("memory"), models.F("digest"), models.F("seq"), name="calls_known"
                    )
                ],
            },
        ),
        migrations.RunPython(
            _find_last_steps, migrations.RunPython.noop, hints={"model_name": "callrun"}
        ),
    ]
