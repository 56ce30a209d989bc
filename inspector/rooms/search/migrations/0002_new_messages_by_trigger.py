"""A trigger indexes new messages, in place of the hook `recording`."""

from django.db import migrations

from chatmemory import search


def install(apps, schema_editor):
    search.index_of(schema_editor.connection).install_triggers()


class Migration(migrations.Migration):
    dependencies = [("chatmemory_search", "0001_index")]

    operations = [
        migrations.RunPython(install, migrations.RunPython.noop, hints={"model_name": "message"})
    ]
