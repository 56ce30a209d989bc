from django.db import migrations

from chatmemory import search

BY_WORDS = """CREATE INDEX IF NOT EXISTS message_by_text ON chatmemory_message
    USING gin (UPPER(text) gin_trgm_ops) WHERE origin = 'SAID'"""


def by_phrase(apps, schema_editor):
    """PostgreSQL's index of messages knows which words stand beside one another."""
    connection = schema_editor.connection
    if connection.vendor == "postgresql":
        search.index_of(connection).install()
        schema_editor.execute("DROP INDEX IF EXISTS message_by_text")


def by_words(apps, schema_editor):
    """Make the index as it was, if there is one."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(REPLACE)


# Without the extension there is none.
REPLACE = f"""DO $$ BEGIN IF to_regclass('message_by_phrase') IS NOT NULL THEN
    {BY_WORDS}; DROP INDEX message_by_phrase; END IF; END $$"""


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0021_request_counts"),
    ]

    operations = [
        migrations.RunPython(by_phrase, by_words, hints={"model_name": "message"}),
    ]
