"""A step has the load of the window after it, in the unit of its policy.

That of an earlier step is computed by what the built-in kinds counted until now. Steps of other
kinds stay without one.
"""

from django.db import migrations, models
from django.db.models import F

FIXED = "policy_options__fixed_overhead"  # of a token window, where it is not 3


def fill(apps, schema_editor):
    steps = apps.get_model("chatmemory", "Step").objects.using(schema_editor.connection.alias)
    steps.filter(policy_kind="message_window").update(load=F("count_after"))
    in_tokens = steps.filter(policy_kind="token_window")
    in_tokens.filter(count_after=0).update(load=0)
    filled = in_tokens.filter(count_after__gt=0)
    filled.update(load=F("tokens_after") + 3)
    for fixed in set(filled.filter(**{f"{FIXED}__isnull": False}).values_list(FIXED, flat=True)):
        filled.filter(**{FIXED: fixed}).update(load=F("tokens_after") + fixed)


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0012_policy_steps_by_time"),
    ]

    operations = [
        migrations.AddField(
            model_name="step",
            name="load",
            field=models.BigIntegerField(
                help_text="of the window after it; null without an installed policy", null=True
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, hints={"model_name": "step"}),
    ]
