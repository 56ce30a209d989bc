from django.db import migrations

from chatmemory import search


def install_triggers(apps, schema_editor):
    """Long texts are put aside instead of into SQLite's index; those that are there stay there."""
    search.index_of(schema_editor.connection).install_triggers()


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0024_figures_have_a_time"),
    ]

    operations = [
        # The table that the triggers write to stays, and so they do
        migrations.RunPython(
            install_triggers, migrations.RunPython.noop, hints={"model_name": "message"}
        ),
    ]
