"""PostgreSQL keeps no samples of what was said: they would outlive a redaction.

ANALYZE puts the commonest values of a column into a catalogue, where they stay, readable to
whoever may read the table, until the next ANALYZE. Searches do not need them: see tests/plans.
"""

from django.db import migrations

WORDS = {
    "chatmemory_message": ("text", "frame", "attributes", "salt"),
    "chatmemory_stay": ("overrides",),
    "chatmemory_memory": ("labels", "labels_salt"),
    "chatmemory_trial": ("drafts",),
    "chatmemory_idempotentanswer": ("request", "headers", "body"),
}
_COLUMNS = """SELECT a.attname, format_type(a.atttypid, a.atttypmod), s.attname IS NOT NULL
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_stats s
        ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname
    WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0"""


def keep_no_statistics(apps, schema_editor):
    connection = schema_editor.connection
    if connection.vendor != "postgresql":
        return
    for table, names in WORDS.items():
        with connection.cursor() as cursor:
            cursor.execute(_COLUMNS, [table])
            columns = {name: found for name, *found in cursor.fetchall() if name in names}
        for name, (kind, is_sampled) in columns.items():
            column = f"ALTER TABLE {table} ALTER COLUMN {name}"
            if is_sampled:
                # The same type again, which removes the samples of the column and of its indexes
                schema_editor.execute(f"{column} TYPE {kind}")
            schema_editor.execute(f"{column} SET STATISTICS 0")


class Migration(migrations.Migration):
    dependencies = [("chatmemory", "0005_stay_attributes")]

    operations = [
        migrations.RunPython(
            keep_no_statistics, migrations.RunPython.noop, hints={"model_name": "message"}
        ),
    ]
