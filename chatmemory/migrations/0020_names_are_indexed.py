from django.db import migrations

from chatmemory import search


def install_names(apps, schema_editor):
    search.index_of(schema_editor.connection).install_names()


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0019_smaller_search"),
    ]

    operations = [
        migrations.RunPython(
            install_names, migrations.RunPython.noop, hints={"model_name": "memory"}
        ),
    ]
