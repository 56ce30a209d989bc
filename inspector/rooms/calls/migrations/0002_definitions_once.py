from itertools import islice

from django.db import migrations, models

REDACTED = '{"name": "[redacted]"}'
AT_ONCE = 500


def _keep_each_once(apps, schema_editor):
    """Put each definition into a table of its own."""
    using = schema_editor.connection.alias
    tools = apps.get_model("chatmemory_calls", "CallTool").objects.using(using)
    definitions = apps.get_model("chatmemory_calls", "ToolDefinition")
    tools.filter(definition=REDACTED).update(is_redacted=True)
    rows = tools.filter(is_redacted=False).values("digest", "name", "definition").iterator()
    while some := [definitions(**row) for row in islice(rows, AT_ONCE)]:
        definitions.objects.using(using).bulk_create(some, ignore_conflicts=True)


def _give_each_back(apps, schema_editor):
    """Give each conversation its own definitions again."""
    using = schema_editor.connection.alias
    tools = apps.get_model("chatmemory_calls", "CallTool").objects.using(using)
    definitions = apps.get_model("chatmemory_calls", "ToolDefinition").objects.using(using)
    for each in definitions.iterator():
        uses = tools.filter(digest=each.digest, is_redacted=False)
        uses.update(name=each.name, definition=each.definition)
    tools.filter(is_redacted=True).update(name="[redacted]", definition=REDACTED)


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0012_policy_steps_by_time"),
        ("chatmemory_calls", "0001_calls"),
    ]

    operations = [
        migrations.CreateModel(
            name="ToolDefinition",
            fields=[
                ("digest", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                ("definition", models.TextField(help_text="JSON as it was sent")),
            ],
            options={"verbose_name": "definition of a tool"},
        ),
        migrations.AddField(
            model_name="calltool",
            name="is_redacted",
            field=models.BooleanField(default=False),
        ),
        migrations.RunPython(
            _keep_each_once, _give_each_back, hints={"model_name": "tooldefinition"}
        ),
        # A default, with which the columns can be put back
        migrations.AlterField(
            model_name="calltool", name="definition", field=models.TextField(default="")
        ),
        migrations.AlterField(
            model_name="calltool", name="name", field=models.CharField(default="", max_length=255)
        ),
        migrations.RemoveField(model_name="calltool", name="definition"),
        migrations.RemoveField(model_name="calltool", name="name"),
        migrations.AlterField(
            model_name="calltool",
            name="digest",
            field=models.CharField(help_text="of the definition", max_length=32),
        ),
        migrations.AddIndex(
            model_name="calltool", index=models.Index(models.F("digest"), name="calls_tools")
        ),
        migrations.AddField(
            model_name="modelcall",
            name="answer_key",
            field=models.CharField(
                blank=True,
                default="",
                help_text="digest of what names its answer for ever",
                max_length=32,
            ),
        ),
        migrations.AddIndex(
            model_name="modelcall",
            index=models.Index(models.F("answer_key"), name="calls_by_answer"),
        ),
        migrations.AddIndex(
            model_name="modelcall",
            index=models.Index(
                models.F("model"),
                models.OrderBy(models.F("at"), descending=True),
                name="calls_of_model",
            ),
        ),
    ]
