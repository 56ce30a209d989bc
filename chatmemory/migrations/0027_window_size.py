from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chatmemory", "0026_frames"),
    ]

    operations = [
        migrations.AddField(
            "memory",
            "window_size",
            models.BigIntegerField(
                default=0, help_text="bytes of the JSON of the messages in the window"
            ),
        ),
        migrations.AddField(
            "stay",
            "size",
            models.IntegerField(
                default=0, help_text="bytes of the message's JSON when the stay began"
            ),
            preserve_default=False,
        ),
    ]
