"""The index of a database that had one before is kept."""

from django.db import migrations

from chatmemory import search


def install(apps, schema_editor):
    search.index_of(schema_editor.connection).install()


def remove(apps, schema_editor):
    search.index_of(schema_editor.connection).remove()


class Migration(migrations.Migration):
    dependencies = [("chatmemory", "0006_no_statistics_of_words")]

    operations = [migrations.RunPython(install, remove, hints={"model_name": "message"})]
