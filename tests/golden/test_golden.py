"""Pages read as their files in `pages` say. `GOLDEN=write` writes those files anew."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from itertools import count, islice
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from chatmemory.roles import GROUPS, Role

from ..rooms import FOLDER, room_modules
from .reading import as_text
from .site import STATES, build
from .states import State

PAGES = Path(__file__).parent / "pages"
# The folders of files, by the names of the pages of rooms
FOLDERS = {
    name: FOLDER / room.__name__.split(".")[2] / "golden"
    for room in room_modules("golden")
    for name in room.STATES
}
ACCEPT = "If that is meant, run GOLDEN=write pytest tests/golden, and commit what it writes."
LINES_OF_EACH, LINES_OF_ALL = 20, 150
MORNING, NOON = (datetime(2026, 3, 2, hour, tzinfo=UTC) for hour in (8, 12))


@pytest.fixture
def pages(db, django_user_model, monkeypatch) -> dict[str, str]:
    """The texts of all states by name, at noon, of a site that was filled in the morning."""
    moments = (MORNING + timedelta(microseconds=n) for n in count())
    for room in room_modules("golden"):
        getattr(room, "prepare", lambda patch: None)(monkeypatch)
    monkeypatch.setattr(timezone, "now", lambda: next(moments))
    clients = {name: Client() for name in ("operator", "viewer", "stranger")}
    clients["operator"].force_login(django_user_model.objects.create_superuser("operator"))
    viewer = django_user_model.objects.create_user("viewer")
    viewer.groups.add(Group.objects.get(name=GROUPS[Role.VIEWER]))
    clients["viewer"].force_login(viewer)
    first = {"first-start": text(clients["operator"], State("/"), {})}
    keys = build()
    monkeypatch.setattr(timezone, "now", lambda: NOON)
    cache.clear()  # of the numbers of the first start
    return first | {name: text(clients[state.by], state, keys) for name, state in STATES.items()}


def text(client: Client, state: State, keys: dict[str, str]) -> str:
    url = state.url.format(**keys)
    headers = {"HX-Request": "true"} if state.htmx else {}
    if state.form is None:
        response = client.get(url, headers=headers, follow=True)
    else:
        form = {
            name: SimpleUploadedFile("chats.json", value) if isinstance(value, bytes) else value
            for name, value in state.form.items()
        }
        response = client.post(url, form, headers=headers, follow=True)
    method = "GET" if state.form is None else "POST"
    first = f"{method} {state.url} by {state.by}: {response.status_code}"
    return f"{first}\n{as_text(response.content.decode(), state.whole)}"


def test_pages_read_as_their_golden_files_say(pages):
    files = [file for folder in {PAGES, *FOLDERS.values()} for file in folder.glob("*.txt")]
    kept = {file.stem: file.read_text("utf-8") for file in files}
    assert len(kept) == len(files), "a page has one file"
    if os.environ.get("GOLDEN") == "write":
        write(pages, kept)
        return
    changed = [name for name in sorted({*pages, *kept}) if pages.get(name) != kept.get(name)]
    lines = [line for name in changed for line in difference(name, kept, pages)]
    if changed:
        shown = "\n".join(lines[:LINES_OF_ALL])
        pytest.fail(
            f"{len(changed)} of {len(pages)} pages differ: {', '.join(changed)}\n{shown}\n{ACCEPT}",
            pytrace=False,
        )


def difference(name: str, kept: dict[str, str], pages: dict[str, str]) -> Iterator[str]:
    before, now = (texts.get(name, "").splitlines() for texts in (kept, pages))
    diff = list(unified_diff(before, now, f"pages/{name}.txt", "now", n=1, lineterm=""))
    yield from islice(diff, LINES_OF_EACH)
    if len(diff) > LINES_OF_EACH:
        yield f"… and {len(diff) - LINES_OF_EACH} more lines"


def write(pages: dict[str, str], kept: dict[str, str]) -> None:
    for name in kept.keys() - pages.keys():
        (FOLDERS.get(name, PAGES) / f"{name}.txt").unlink(missing_ok=True)
    for name, page in pages.items():
        folder = FOLDERS.get(name, PAGES)
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.txt").write_text(page, "utf-8")
