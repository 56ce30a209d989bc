from django.db import migrations

from chatmemory.core.codec import GAP, payload_of

ROWS = 500


def fill(apps, schema_editor):
    """Put the texts back into the frames: earlier versions read them as whole payloads."""
    memories, messages = (
        apps.get_model("chatmemory", name).objects.using(schema_editor.connection.alias)
        for name in ("Memory", "Message")
    )
    for memory_id in memories.values_list("id", flat=True).iterator():
        framed = messages.filter(memory_id=memory_id, frame__contains=GAP).order_by("seq")
        last = 0
        while rows := list(framed.filter(seq__gt=last).values_list("seq", "frame", "text")[:ROWS]):
            for last, frame, text in rows:
                row = messages.filter(memory_id=memory_id, seq=last)
                row.update(frame=payload_of(frame, text))


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0024_figures_have_a_time"),
    ]

    operations = [
        # A stored payload is a frame without a gap, and stays as it is
        migrations.RenameField("message", "payload", "frame"),
        migrations.RunPython(migrations.RunPython.noop, fill, hints={"model_name": "message"}),
    ]
