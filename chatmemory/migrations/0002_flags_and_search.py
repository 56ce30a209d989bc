from django.db import migrations, models

from chatmemory import search
from chatmemory.core.codec import message_from_json
from chatmemory.ledger import flags
from chatmemory.ledger.entries import stay_entry


def flag(apps, schema_editor):
    """Conversations that were there before: their open calls, as `verify_memories` expects them."""
    alias = schema_editor.connection.alias
    memories, messages, stays = (
        apps.get_model("chatmemory", name).objects.using(alias)
        for name in ("Memory", "Message", "Stay")
    )
    calling = stays.filter(left_step=None, has_calls=True)
    for memory in memories.filter(id__in=calling.values("memory_id")).iterator():
        standing = stays.filter(memory=memory, left_step=None).order_by("rank")
        payloads = dict(
            messages.filter(memory=memory, seq__in=[stay.seq for stay in standing]).values_list(
                "seq", "payload"
            )
        )
        messages_of = {stay.n: message_from_json(payloads[stay.seq]) for stay in standing}
        flags.replaced(memory, [stay_entry(stay, messages_of[stay.n]) for stay in standing])
        memory.save(using=alias)


def install_search(apps, schema_editor):
    search.index_of(schema_editor.connection).install()


def remove_search(apps, schema_editor):
    search.index_of(schema_editor.connection).remove()


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0001_initial"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="step",
            name="step_by_time",
        ),
        migrations.AddField(
            model_name="memory",
            name="dangling_call",
            field=models.BigIntegerField(
                help_text="seq of the newest call in the window that was left unanswered", null=True
            ),
        ),
        migrations.AddField(
            model_name="memory",
            name="missing_results",
            field=models.IntegerField(default=0, help_text="how many of its results"),
        ),
        migrations.AddField(
            model_name="memory",
            name="oversized_step",
            field=models.BigIntegerField(
                help_text="the newest step whose message the window had no room for", null=True
            ),
        ),
        migrations.AddField(
            model_name="memory",
            name="waiting_call",
            field=models.BigIntegerField(
                help_text="seq of the tool call at the window's end that awaits results", null=True
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("dangling_call"),
                condition=models.Q(("dangling_call__isnull", False)),
                name="memory_dangling",
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("oversized_step"),
                condition=models.Q(("oversized_step__isnull", False)),
                name="memory_oversized",
            ),
        ),
        migrations.AddIndex(
            model_name="step",
            index=models.Index(
                models.OrderBy(models.F("at"), descending=True),
                models.F("memory"),
                models.OrderBy(models.F("n"), descending=True),
                condition=models.Q(("count_after__lte", models.F("count_before"))),
                name="step_evicting",
            ),
        ),
        migrations.RunPython(flag, migrations.RunPython.noop, hints={"model_name": "memory"}),
        migrations.RunPython(install_search, remove_search, hints={"model_name": "memory"}),
    ]
