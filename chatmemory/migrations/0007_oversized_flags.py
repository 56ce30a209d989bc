from itertools import groupby

from django.db import migrations
from django.db.models import F

from chatmemory.core.misfits import Misfit, misfit
from chatmemory.core.stored_policies import can_decide, stored_policy
from chatmemory.core.window import Totals

CHUNK = 500
TOO_BIG = (Misfit.TOO_BIG, Misfit.TOO_BIG_BESIDE_SYSTEM)


def flag_again(apps, schema_editor):
    """Flag only messages that were too big: not those that a large system message drove out."""
    alias = schema_editor.connection.alias
    memories, stays, steps = (
        apps.get_model("chatmemory", name).objects.using(alias)
        for name in ("Memory", "Stay", "Step")
    )
    memories.filter(oversized_step__isnull=False).update(oversized_step=None)
    at_once = stays.filter(left_step=F("entered_step"), reason="CAPACITY")
    rows = at_once.order_by("memory_id", "-n").values_list("memory_id", "entered_step", "tokens")
    for memory_id, left in groupby(rows.iterator(), lambda row: row[0]):
        adds = steps.filter(memory_id=memory_id, kind="add", by_client=False)
        newest = newest_oversized(adds, [(n, tokens) for _, n, tokens in left])
        if newest is not None:
            memories.filter(pk=memory_id).update(oversized_step=newest)


def newest_oversized(adds, left):
    """Return the newest step whose message was too big; `left` are (step, tokens), newest first."""
    for start in range(0, len(left), CHUNK):
        part = left[start : start + CHUNK]
        found = {row.n: row for row in adds.filter(n__in=[n for n, _ in part])}
        for n, tokens in part:
            if n in found and is_oversized(found[n], tokens):
                return n
    return None


def is_oversized(step, tokens):
    if step.policy_kind is None:
        return False
    policy = stored_policy(
        step.policy_kind, step.policy_limit, step.policy_estimator, step.policy_options
    )
    remaining = Totals(step.count_after, step.tokens_after)
    return can_decide(policy) and misfit(policy, remaining, tokens) in TOO_BIG


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0006_open_policies"),
    ]

    operations = [
        migrations.RunPython(flag_again, migrations.RunPython.noop, hints={"model_name": "memory"}),
    ]
