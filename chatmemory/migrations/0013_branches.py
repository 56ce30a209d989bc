import re

from django.db import migrations, models


def find_sources(apps, schema_editor):
    """Branches of earlier versions know their source by the label `from` alone."""
    memories = apps.get_model("chatmemory", "Memory").objects.using(schema_editor.connection.alias)
    for row in memories.filter(labels__has_key="from").iterator():
        found = re.fullmatch(r"(.+) step [0-9]+", str(row.labels["from"]), re.DOTALL)
        if found and memories.filter(pk=found[1]).exists():
            memories.filter(pk=row.pk).update(branched_from=found[1])


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0012_erased_responses"),
    ]

    operations = [
        migrations.AddField(
            model_name="memory",
            name="branched_from",
            field=models.CharField(
                blank=True,
                help_text="the conversation that it was saved from",
                max_length=255,
                null=True,
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("branched_from"),
                condition=models.Q(("branched_from__isnull", False)),
                name="memory_branches",
            ),
        ),
        migrations.RunPython(
            find_sources, migrations.RunPython.noop, hints={"model_name": "memory"}
        ),
    ]
