"""Store policy options as JSON, rename the counters, and add the step that redacted a message."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.models import Case, F, Q, When

DEFAULT_OVERHEAD = 3
OPTIONS = ("always_keep_system_message_first", "fixed_overhead")


def options(kind: str, overhead: int, keep_first: bool) -> dict[str, Any]:
    """The options of a policy that differ from their defaults."""
    found: dict[str, Any] = {}
    if keep_first:
        found["always_keep_system_message_first"] = True
    if kind == "token_window" and overhead != DEFAULT_OVERHEAD:
        found["fixed_overhead"] = overhead
    return found


def options_from_columns(apps, schema_editor):
    """Few combinations differ from the default, so each is one update."""
    for name in ("Memory", "Step"):
        rows = apps.get_model("chatmemory", name).objects.using(schema_editor.connection.alias)
        columns = ("policy_kind", "policy_overhead", "policy_keep_first")
        used = rows.exclude(policy_kind=None).values_list(*columns).distinct().order_by()
        for values in list(used):
            if found := options(*values):
                rows.filter(**dict(zip(columns, values, strict=True))).update(policy_options=found)


def columns_from_options(apps, schema_editor):
    for name in ("Memory", "Step"):
        rows = apps.get_model("chatmemory", name).objects.using(schema_editor.connection.alias)
        rows.filter(policy_kind="token_window").update(policy_overhead=DEFAULT_OVERHEAD)
        for row in rows.exclude(policy_options={}):
            keep_first, overhead = (row.policy_options.get(option) for option in OPTIONS)
            rows.filter(pk=row.pk).update(
                policy_keep_first=bool(keep_first),
                policy_overhead=overhead if overhead is not None else F("policy_overhead"),
            )


def window_loads(apps, schema_editor):
    """Fill in the load of the windows, for the two kinds of policies that existed."""
    memories = apps.get_model("chatmemory", "Memory").objects.using(schema_editor.connection.alias)
    memories.update(
        window_load=Case(
            When(policy_kind="message_window", then=F("window_count")),
            When(Q(policy_kind="token_window", window_count=0), then=0),
            When(policy_kind="token_window", then=F("window_tokens") + F("policy_overhead")),
        )
    )


def redactions(apps, schema_editor):
    """Move the number of the redacted message from the note (`#7`) to its column."""
    alias = schema_editor.connection.alias
    steps = apps.get_model("chatmemory", "Step").objects.using(alias).filter(kind="redact")
    messages = apps.get_model("chatmemory", "Message").objects.using(alias)
    for memory_id, n, note in list(steps.values_list("memory_id", "n", "note")):
        seq = int(note.removeprefix("#"))
        messages.filter(memory_id=memory_id, seq=seq).update(redacted_step=n)
        steps.filter(memory_id=memory_id, n=n).update(seq=seq, note="")


def notes_of_redactions(apps, schema_editor):
    steps = apps.get_model("chatmemory", "Step").objects.using(schema_editor.connection.alias)
    for memory_id, n, seq in list(steps.filter(kind="redact").values_list("memory_id", "n", "seq")):
        steps.filter(memory_id=memory_id, n=n).update(note=f"#{seq}")


def check_constraints(apps, schema_editor):
    """A row that is updated twice leaves a deferred check behind, and PostgreSQL alters no table
    that has one.
    """
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0005_erasure"),
    ]

    operations = [
        migrations.RenameField("memory", "steps", "last_step"),
        migrations.RenameField("memory", "messages", "last_seq"),
        migrations.RenameField("memory", "stays", "last_stay"),
        migrations.RenameField("step", "messages", "last_seq"),
        migrations.RenameField("step", "stays", "last_stay"),
        migrations.AddField("memory", "policy_options", models.JSONField(blank=True, default=dict)),
        migrations.AddField("step", "policy_options", models.JSONField(blank=True, default=dict)),
        migrations.AddField(
            "memory",
            "window_load",
            models.BigIntegerField(
                help_text="load in the policy's unit; null without an installed policy", null=True
            ),
        ),
        migrations.AddField(
            "message",
            "redacted_step",
            models.BigIntegerField(blank=True, help_text="the step that redacted it", null=True),
        ),
        migrations.AddField(
            "step",
            "seq",
            models.BigIntegerField(blank=True, help_text="seq of the redacted message", null=True),
        ),
        migrations.RunPython(check_constraints, check_constraints, hints={"model_name": "memory"}),
        migrations.RunPython(
            options_from_columns, columns_from_options, hints={"model_name": "memory"}
        ),
        migrations.RunPython(
            window_loads, migrations.RunPython.noop, hints={"model_name": "memory"}
        ),
        migrations.RunPython(redactions, notes_of_redactions, hints={"model_name": "memory"}),
        migrations.RunPython(check_constraints, check_constraints, hints={"model_name": "memory"}),
        migrations.RemoveField("memory", "policy_overhead"),
        migrations.RemoveField("memory", "policy_keep_first"),
        migrations.RemoveField("step", "policy_overhead"),
        migrations.RemoveField("step", "policy_keep_first"),
    ]
