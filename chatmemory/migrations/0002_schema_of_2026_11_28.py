"""The changes of 2026-11-26 to 28, which were thirteen migrations.

A database that has some of them only is refused: see `chatmemory.schema`.
"""

from django.db import migrations, models
from django.db.models import CASCADE, F

# PostgreSQL keeps no samples of what was said: they would outlive a redaction. ANALYZE puts the
# commonest values of a column into a catalogue, where they stay, readable to whoever may read the
# table, until the next ANALYZE. Searches do not need them: see tests/plans.
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


TABLE = "chatmemory_simulation_trial"


def hand_over(apps, schema_editor):
    """Give the table to the room of simulations with its rows, or drop it where nobody has tried anything."""
    trial = apps.get_model("chatmemory", "Trial")
    if not trial.objects.using(schema_editor.connection.alias).exists():
        schema_editor.delete_model(trial)
        return
    schema_editor.alter_db_table(trial, trial._meta.db_table, TABLE)
    trial._meta.db_table = TABLE
    of_memory = trial._meta.get_field("memory")
    free = models.ForeignKey(
        "chatmemory.Memory", CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    free.model = trial
    free.set_attributes_from_name("memory")
    free.remote_field.model = of_memory.remote_field.model
    schema_editor.alter_field(trial, of_memory, free)


def take_back(apps, schema_editor):
    """Make an empty table: trials are kept for some weeks only."""
    schema_editor.create_model(apps.get_model("chatmemory", "Trial"))


FIXED = "policy_options__fixed_overhead"  # of a token window, where it is not 3


def fill(apps, schema_editor):
    """Compute the load of earlier steps by what the built-in kinds counted until then. Steps of
    other kinds stay without one.
    """
    steps = apps.get_model("chatmemory", "Step").objects.using(schema_editor.connection.alias)
    steps.filter(policy_kind="message_window").update(load=F("count_after"))
    in_tokens = steps.filter(policy_kind="token_window")
    in_tokens.filter(count_after=0).update(load=0)
    filled = in_tokens.filter(count_after__gt=0)
    filled.update(load=F("tokens_after") + 3)
    for fixed in set(filled.filter(**{f"{FIXED}__isnull": False}).values_list(FIXED, flat=True)):
        filled.filter(**{FIXED: fixed}).update(load=F("tokens_after") + fixed)


class Migration(migrations.Migration):
    dependencies = [("chatmemory", "0001_schema_of_2026_11_25_e")]
    replaces = [
        ("chatmemory", "0002_requests_are_counted_in_the_cache"),
        ("chatmemory", "0003_what_is_kept"),
        ("chatmemory", "0004_diagnosis_is_kept"),
        ("chatmemory", "0005_stay_attributes"),
        ("chatmemory", "0006_no_statistics_of_words"),
        ("chatmemory", "0007_lab_figures_move"),
        ("chatmemory", "0008_evidence_incidents_are_events"),
        ("chatmemory", "0009_doctor_keeps_its_diagnoses"),
        ("chatmemory", "0010_evidence_keeps_its_incidents"),
        ("chatmemory", "0011_simulation_keeps_its_trials"),
        ("chatmemory", "0012_policy_steps_by_time"),
        ("chatmemory", "0013_load_of_steps"),
        ("chatmemory", "0014_results_that_are_cleared"),
    ]

    operations = [
        migrations.DeleteModel(name="RequestCount"),
        migrations.DeleteModel(name="RecallFigures"),
        migrations.DeleteModel(name="FoundIncidents"),
        migrations.RemoveIndex(model_name="memory", name="memory_ill"),
        migrations.RemoveIndex(model_name="memory", name="memory_refused"),
        migrations.RemoveIndex(model_name="memory", name="memory_oversized"),
        migrations.RemoveIndex(model_name="memory", name="memory_missed"),
        migrations.RemoveField(model_name="memory", name="health"),
        migrations.RemoveField(model_name="memory", name="ill_at"),
        migrations.RemoveField(model_name="memory", name="missed_step"),
        migrations.RemoveField(model_name="memory", name="oversized_step"),
        migrations.RemoveField(model_name="memory", name="problems"),
        migrations.RemoveField(model_name="memory", name="refused_by"),
        migrations.RemoveField(model_name="memory", name="waiting_call"),
        migrations.AddField(
            model_name="stay",
            name="overrides",
            field=models.TextField(
                blank=True, help_text="what differs from the message, as JSON", null=True
            ),
        ),
        migrations.RunPython(
            keep_no_statistics, migrations.RunPython.noop, hints={"model_name": "message"}
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunPython(hand_over, take_back, hints={"model_name": "memory"}),
            ],
            state_operations=[
                migrations.DeleteModel(name="Trial"),
            ],
        ),
        migrations.AddIndex(
            model_name="step",
            index=models.Index(
                models.F("at"), condition=models.Q(("kind", "policy")), name="step_policy"
            ),
        ),
        migrations.AddField(
            model_name="step",
            name="load",
            field=models.BigIntegerField(
                help_text="how much of the limit memory takes; null without an installed policy",
                null=True,
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, hints={"model_name": "step"}),
        migrations.AlterField(
            model_name="stay",
            name="reason",
            field=models.CharField(
                blank=True,
                choices=[
                    ("CAPACITY", "CAPACITY"),
                    ("ORPHANED", "ORPHANED"),
                    ("REPLACED", "REPLACED"),
                    ("CLEARED", "CLEARED"),
                    ("SET", "SET"),
                    ("MOVED", "MOVED"),
                    ("TURN", "TURN"),
                    ("SUMMARIZED", "SUMMARIZED"),
                    ("STUBBED", "STUBBED"),
                ],
                max_length=10,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="step",
            name="kind",
            field=models.CharField(
                choices=[
                    ("add", "Add"),
                    ("set", "Set"),
                    ("clear", "Clear"),
                    ("policy", "Policy"),
                    ("labels", "Labels"),
                    ("pin", "Pin"),
                    ("unpin", "Unpin"),
                    ("compact", "Compact"),
                    ("repair", "Repair"),
                    ("redact", "Redact"),
                    ("stub", "Clear Results"),
                ],
                max_length=8,
            ),
        ),
    ]
