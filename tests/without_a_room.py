"""The checks of a tree without some of its rooms. They run in such a tree, as a process of their
own:

    python -m tests.without_a_room MIGRATED [--law]

MIGRATED is a SQLite file that the whole tree has made, with rows of the removed rooms. The process
changes it. With --law, some of LangChain4j's sequences are replayed, too. A failure ends it with a
traceback.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.test import Client

EVERY = 96  # one in so many of LangChain4j's sequences is replayed
ORDER = "order-7741"
PAGES = ["/", "/?q=A-1182", f"/c/{ORDER}/", f"/c/{ORDER}/?at=43", f"/c/{ORDER}/?at=43&msg=25"]
PAGES += [f"/c/{ORDER}/?find=A-1182", "/api/v1/schema/", "/api/v1/memories/", "/api/docs/"]


def main(migrated: Path, replays_law: bool) -> None:
    import django
    from django.core.management import call_command

    django.setup()
    call_command("check", fail_level="WARNING")
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)
    call_command("migrate", verbosity=0)
    a_new_site()
    if replays_law:
        the_law_of_windows()
    use(f"sqlite:///{migrated}")
    call_command("migrate", verbosity=0)
    a_site_that_had_the_room()


def a_new_site() -> None:
    """Load the demo, and open the pages as an operator."""
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.test import Client
    from django.urls import reverse

    from chatmemory import services
    from inspector import demo
    from inspector.shell.rooms import rooms

    settings.ALLOWED_HOSTS = ["testserver"]
    assert ORDER in demo.load()
    services.Rounds().keep_some(1)
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("somebody"))
    names = {room.room for room in rooms()}
    if "doctor" in names:
        the_doctor(client, can_repair="repairs" in names)
    for path in [*PAGES, *(reverse(item.address) for room in rooms() for item in room.menu)]:
        response = client.get(path)
        assert response.status_code == 200, f"{path}: {response.status_code}"
        assert "is not available" not in response.text, path
    step = client.get(f"/api/v1/memories/{ORDER}/steps/43/")
    assert step.status_code == 200
    services.delete(ORDER, actor="somebody")


def the_doctor(client: Client, can_repair: bool) -> None:
    """Diagnose a window that would be refused: only a room of repairs lets the doctor offer one."""
    from chatmemory import AiMessage, MessageWindow, ToolExecutionRequest, UserMessage, services
    from inspector.rooms.doctor.choosing import choose_providers

    choose_providers("", ["openai"])
    services.create("ill", MessageWindow(9))
    dangling = AiMessage(None, [ToolExecutionRequest("1", "find", "{}")])
    services.add("ill", [UserMessage("Hi"), dangling, UserMessage("Hello?")])
    services.keep("ill")
    for path in ("/", "/doctor/", "/doctor/?rule=dangling_call&provider=openai", "/c/ill/"):
        response = client.get(path)
        assert response.status_code == 200, f"{path}: {response.status_code}"
        labels = ("Repair…", "Repair memory…", "repair/")
        offered = any(label in response.text for label in labels)
        assert offered == can_repair, path


def the_law_of_windows() -> None:
    """Replay some of LangChain4j's sequences, and verify each ledger."""
    from chatmemory.ledger.verification import verify
    from chatmemory.models import Memory
    from chatmemory.stores.database import DjangoChatMemoryStore
    from tests.conformance.vectors import RecordingStore, Replay, sample

    for n, sequence in enumerate(sample(EVERY)):
        Replay(sequence, RecordingStore(DjangoChatMemoryStore()), f"sequence-{n}").run()
    for memory_id in Memory.objects.values_list("pk", flat=True):
        assert verify(memory_id) is None, memory_id


def a_site_that_had_the_room() -> None:
    """Redact, delete and verify conversations with rows of removed rooms, and drop their tables."""
    from django.core.management import call_command

    from chatmemory import UserMessage, database, services
    from chatmemory.ledger.verification import verify
    from chatmemory.leftovers import leftover_tables
    from chatmemory.models import Memory
    from chatmemory.rooms import rooms

    if any(room.room == "erasure" for room in rooms()):
        services.redact(ORDER, 25, actor="somebody")
    services.add(ORDER, [UserMessage("Thank you.")])
    services.delete("classroom", actor="somebody")
    for memory_id in Memory.objects.values_list("pk", flat=True):
        assert verify(memory_id) is None, memory_id
    call_command("vacuum")
    assert leftover_tables(database.connection()) == {}


def use(url: str) -> None:
    """Make Django use another database from here on."""
    from django.conf import settings
    from django.db import connections

    connections.close_all()
    settings.DATABASES["default"]["NAME"] = url.removeprefix("sqlite:///")
    connections["default"].settings_dict["NAME"] = url.removeprefix("sqlite:///")


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "inspector.project.settings"
    main(Path(sys.argv[1]), "--law" in sys.argv)
