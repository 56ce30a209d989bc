"""The index has texts without accents and separators, and is built again."""

from django.db import migrations

from chatmemory import search


def build_again(apps, schema_editor):
    index = search.index_of(schema_editor.connection)
    index.remove()
    index.install()


class Migration(migrations.Migration):
    dependencies = [("chatmemory_search", "0001_index_and_triggers")]

    operations = [
        migrations.RunPython(
            build_again, migrations.RunPython.noop, hints={"model_name": "message"}
        )
    ]
