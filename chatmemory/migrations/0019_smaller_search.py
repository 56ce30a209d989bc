from django.db import migrations

from chatmemory import search


def without_places(apps, schema_editor):
    """SQLite's index no longer keeps where in a text a trigram is: a quarter of its size."""
    _make_again(schema_editor.connection, "none")


def with_places(apps, schema_editor):
    _make_again(schema_editor.connection, "full")


def _make_again(connection, detail):
    if connection.vendor == "sqlite":
        index = search.index_of(connection)
        index.remove()
        index.install(detail)


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0018_default_policies"),
    ]

    operations = [
        migrations.RunPython(without_places, with_places, hints={"model_name": "message"}),
    ]
