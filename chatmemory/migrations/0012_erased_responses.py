from django.db import migrations, models


def erase(apps, schema_editor):
    """Erase responses whose conversation is not known, so that a redaction need not reach them."""
    responses = apps.get_model("chatmemory", "IdempotentAnswer").objects
    responses.using(schema_editor.connection.alias).update(request="", headers={}, body="")


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0011_anchors"),
    ]

    operations = [
        migrations.AddField(
            model_name="idempotentanswer",
            name="memory_id",
            field=models.CharField(blank=True, max_length=255),
        ),
        migrations.AlterField(
            model_name="idempotentanswer",
            name="request",
            field=models.CharField(
                blank=True,
                help_text=(
                    "fingerprint of method, address and body; blank once the response is erased"
                ),
                max_length=64,
            ),
        ),
        migrations.AddIndex(
            model_name="idempotentanswer",
            index=models.Index(models.F("memory_id"), name="idempotency_key_by_memory"),
        ),
        migrations.RunPython(
            erase, migrations.RunPython.noop, hints={"model_name": "idempotentanswer"}
        ),
    ]
