"""The checks of a tree in which the table of messages has one more column. They run in such a tree,
as a process of their own:

    python -m tests.with_a_column MIGRATED

MIGRATED is a SQLite file of the whole tree, whose messages were sealed without the column. The
process changes it. A failure ends it with a traceback, of which the last line says what is missing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

FIELD = """    mood = declared(
        models.CharField(max_length=9, null=True, help_text="the mood of the speaker"),
        Column(lambda new: "loud" if text_of(new.message).isupper() else "calm", sealed_since=5),
    )
"""
# What makes the column, by file: a text, and the text in its place.
PLACES = {
    "chatmemory/models.py": {
        "    redacted_step = models.BigIntegerField(\n": f"{FIELD}    redacted_step = "
        "models.BigIntegerField(\n",
        "message import MessageType\n": "message import MessageType, text_of\n",
    },
    "templates/inspector/conversation/_said.html": {
        "<b>{{ role }}</b>": "<b>{{ role }}</b>{% if mood %}<i>{{ mood }}</i>{% endif %}"
    },
}


def put_into(tree: Path, places: dict[str, dict[str, str]]) -> None:
    """Write the places of the column into a copy of the tree."""
    for name, changes in places.items():
        text = (tree / name).read_text("utf-8")
        for old, new in changes.items():
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        (tree / name).write_text(text, "utf-8")


def main(migrated: str) -> None:
    import django
    from django.core.management import call_command

    from tests.without_a_room import use

    django.setup()
    from django.conf import settings

    settings.ALLOWED_HOSTS = ["testserver"]
    use(f"sqlite:///{migrated}")
    call_command("makemigrations", "chatmemory", check_changes=True, dry_run=True)
    call_command("migrate", verbosity=0)
    it_is_written_and_sealed()
    older_rows_are_sealed_as_they_were()
    a_branch_and_an_archive_have_it()
    the_api_and_the_pages_show_it()
    a_redaction_erases_it()


def moods(memory_id: str) -> list[str | None]:
    from chatmemory.models import Message

    rows = Message.objects.filter(memory=memory_id).order_by("seq")
    return list(rows.values_list("mood", flat=True))


def it_is_written_and_sealed() -> None:
    from chatmemory import AiMessage, MessageWindow, UserMessage, services
    from chatmemory.ledger.verification import verify
    from chatmemory.models import Message

    services.create("m", MessageWindow(9))
    services.add("m", [UserMessage("WHERE IS IT?"), AiMessage("Here.")])
    services.set_messages("m", [UserMessage("WHERE IS IT?"), UserMessage("THERE!")])
    assert moods("m") == ["loud", "calm", "loud"], "it is written"
    assert verify("m") is None
    Message.objects.filter(memory="m", seq=1).update(mood="calm")
    found = verify("m")
    assert found is not None, "it is sealed"
    assert found.row == "message #1", "it is sealed"
    Message.objects.filter(memory="m", seq=1).update(mood="loud")


def older_rows_are_sealed_as_they_were() -> None:
    from chatmemory.ledger.verification import verify
    from chatmemory.models import Memory, Message

    for memory_id in Memory.objects.values_list("pk", flat=True):
        assert verify(memory_id) is None, f"older versions verify: {memory_id}"
    Message.objects.filter(memory="order-7741", seq=5).update(mood="calm")
    assert verify("order-7741") is not None, "it is empty in older rows"
    Message.objects.filter(memory="order-7741", seq=5).update(mood=None)


def a_branch_and_an_archive_have_it() -> None:
    from io import BytesIO

    from chatmemory import services
    from chatmemory.ledger.verification import verify
    from inspector.rooms.transfer.archives import import_archive
    from inspector.rooms.transfer.exports import archive_lines

    services.branch("m", "copy", [])
    assert moods("copy") == moods("m"), "a branch has it"
    lines = "".join(f"{line}\n" for line in archive_lines(["m", "order-7741"]))
    assert [each.refused for each in import_archive(BytesIO(lines.encode()), "new-")] == ["", ""]
    assert moods("new-m") == moods("m"), "an archive has it"
    assert verify("new-m") is None
    assert verify("new-order-7741") is None


def the_api_and_the_pages_show_it() -> None:
    from django.contrib.auth import get_user_model
    from django.test import Client

    client: Any = Client()
    client.force_login(get_user_model().objects.create_superuser("somebody"))
    rows = client.get("/api/v1/memories/m/history/").json()["messages"]
    assert [row["mood"] for row in rows] == ["loud", "calm", "loud"], "the API has it"
    assert client.get("/api/v1/memories/m/messages/1/").json()["mood"] == "loud", "the API has it"
    schema = str(client.get("/api/v1/schema/?format=json").content)
    assert "The mood of the speaker." in schema, "the API describes it"
    page = client.get("/c/m/").text
    assert (page.count("<i>loud</i>"), page.count("<i>calm</i>")) == (2, 1), "the page has it"
    draft = {"role": "user", "text": "AND NOW?"}
    page = client.post("/c/m/simulate/", draft, follow=True).text
    assert page.count("<i>loud</i>") == 3, "a draft has it"


def a_redaction_erases_it() -> None:
    from chatmemory import services
    from chatmemory.ledger.verification import verify

    services.redact("m", 1, actor="somebody")
    assert moods("m")[0] == "calm", "a redaction erases it"
    assert verify("m") is None


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "inspector.project.settings"
    main(sys.argv[1])
