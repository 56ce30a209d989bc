"""The checks of a tree with one more room, the example of docs/rooms.md. They run in such a tree,
as a process of their own: `python -m tests.with_a_room`. A failure ends it with a traceback.
"""

from __future__ import annotations

import os
from typing import Any


def main() -> None:
    import django
    from django.conf import settings
    from django.core.management import call_command

    django.setup()
    settings.ALLOWED_HOSTS = ["testserver"]
    call_command("check", fail_level="WARNING")
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)
    call_command("migrate", verbosity=0)

    from django.contrib.auth import get_user_model
    from django.test import Client

    from chatmemory import MessageWindow, UserMessage, services

    services.create("m", MessageWindow(2))
    services.add("m", [UserMessage("Where?"), UserMessage("When?"), UserMessage("Here.")])
    client: Any = Client()
    client.force_login(get_user_model().objects.create_superuser("somebody"))
    assert "1 questions in memory." in client.get("/c/m/").text, "the page has the card"
    overview = " ".join(client.get("/").text.split())
    assert '<th scope="col" class="c-room">Questions</th>' in overview, "the overview has the head"
    assert "2 questions" in overview, "the row has the cell"


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "inspector.project.settings"
    main()
