from django.db import migrations

from chatmemory import search


def install_triggers(apps, schema_editor):
    """The triggers of SQLite's index can be paused, for changes of many messages."""
    search.index_of(schema_editor.connection).install_triggers()


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0022_phrases_are_indexed"),
    ]

    operations = [
        # The table that the triggers ask stays, and so they do
        migrations.RunPython(
            install_triggers, migrations.RunPython.noop, hints={"model_name": "message"}
        ),
    ]
