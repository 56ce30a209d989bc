"""The index and its triggers. The index of a database that had one before is kept."""

from django.db import migrations

from chatmemory import search


def install(apps, schema_editor):
    search.index_of(schema_editor.connection).install()


def remove(apps, schema_editor):
    search.index_of(schema_editor.connection).remove()


class Migration(migrations.Migration):
    dependencies = [("chatmemory", "0002_schema_of_2026_11_28")]
    replaces = [
        ("chatmemory_search", "0001_index"),
        ("chatmemory_search", "0002_new_messages_by_trigger"),
    ]

    operations = [migrations.RunPython(install, remove, hints={"model_name": "message"})]
