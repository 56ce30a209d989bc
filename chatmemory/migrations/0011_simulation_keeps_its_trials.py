from django.db import migrations, models
from django.db.models import CASCADE

TABLE = "chatmemory_simulation_trial"


def hand_over(apps, schema_editor):
    """Give the table to the room with its rows, or drop it where nobody has tried anything."""
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


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0010_evidence_keeps_its_incidents"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunPython(hand_over, take_back, hints={"model_name": "memory"}),
            ],
            state_operations=[
                migrations.DeleteModel(name="Trial"),
            ],
        ),
    ]
