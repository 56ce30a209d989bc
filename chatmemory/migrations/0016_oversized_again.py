from itertools import groupby

from django.db import migrations
from django.db.models import F, Q

from chatmemory.core.stored_policies import can_decide, stored_policy
from chatmemory.core.window import Totals

CHUNK = 500


def flag_again(apps, schema_editor):
    """Flag all messages that the limit had no room for even alone, beside the system message.

    That is what `core.refusals` calls oversized: also where the system message fills the limit, and
    a system message that alone is larger than it.
    """
    memories, stays, steps = (
        apps.get_model("chatmemory", name).objects.using(schema_editor.connection.alias)
        for name in ("Memory", "Stay", "Step")
    )
    left_at_once = Q(left_step=F("entered_step"), reason="CAPACITY")
    rows = stays.filter(left_at_once | Q(type="SYSTEM")).order_by("memory_id", "-entered_step")
    columns = rows.values_list("memory_id", "entered_step", "left_step", "tokens")
    for memory_id, entered in groupby(columns.iterator(), lambda row: row[0]):
        adds = steps.filter(memory_id=memory_id, kind="add", by_client=False)
        newest = newest_oversized(adds, [row[1:] for row in entered])
        if newest is not None:
            memories.filter(pk=memory_id).update(oversized_step=newest)


def newest_oversized(adds, entered):
    """Return the newest step whose message was oversized; the newest of `entered` come first."""
    for start in range(0, len(entered), CHUNK):
        part = entered[start : start + CHUNK]
        found = {row.n: row for row in adds.filter(n__in=[n for n, _, _ in part])}
        for n, left, tokens in part:
            if n in found and is_oversized(found[n], left == n, tokens):
                return n
    return None


def is_oversized(step, is_gone, tokens):
    if step.policy_kind is None:
        return False
    policy = stored_policy(
        step.policy_kind, step.policy_limit, step.policy_estimator, step.policy_options
    )
    return can_decide(policy) and (is_gone or policy.is_exceeded_by(Totals(1, tokens)))


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0015_pins_and_turns"),
    ]

    operations = [
        migrations.RunPython(flag_again, migrations.RunPython.noop, hints={"model_name": "memory"}),
    ]
