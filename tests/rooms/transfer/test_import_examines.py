"""An import examines what it imports: beside the storing, and afterwards what is left."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from chatmemory import examination, services
from chatmemory.models import Memory
from chatmemory.services import Rounds, keepers

pytestmark = pytest.mark.django_db
COUNT = 3


@pytest.fixture
def chats(tmp_path) -> Path:
    file = tmp_path / "chats.json"
    said = [{"role": "user", "content": "My order is A-1182."}, {"role": "user", "content": "hi"}]
    named = [{"id": f"{n}", "messages": said} for n in range(COUNT)]
    file.write_text(json.dumps(named))
    return file


def known() -> list[str]:
    """The conversations of which all rows are kept, first kept first."""
    found = [keeper.model.objects.order_by("kept_at") for keeper in keepers()]
    rows = [list(each.values_list("memory", flat=True)) for each in found]
    return [each for each in rows[0] if all(each in some for some in rows)]


def test_all_is_examined_once_the_command_ends(chats):
    call_command("import_transcripts", chats)
    assert sorted(known()) == ["chats-0", "chats-1", "chats-2"]
    assert not Rounds().left()


def test_it_leaves_the_examination_to_the_site(chats):
    call_command("import_transcripts", chats, store_only=True)
    assert not known()
    assert Rounds().left() == COUNT


@pytest.mark.parametrize("is_archive", [False, True])
def test_the_terminal_shows_both(chats, tmp_path, capsys, is_archive):
    if is_archive:
        call_command("import_transcripts", chats, store_only=True)
        call_command("export_conversations", all=True, output=tmp_path / "archive")
        chats = tmp_path / "archive"
    call_command("import_transcripts", chats, prefix="p-", progress=True)
    told = capsys.readouterr().err
    beside, _, afterwards = told.partition("?25h")
    assert "3 conversations, 6 messages" in beside
    assert re.search("[123] of 3 examined", beside)  # the first one at least
    assert "3 of 3 examined" in afterwards


class Interrupting:
    """Lets the examination of some conversations pass, and interrupts the next."""

    def __init__(self, passed: int, make) -> None:
        self._left, self._make = passed, make

    def make(self, keeper, memory, before):
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return self._make(keeper, memory, before)


def test_what_an_interrupted_examination_leaves_is_examined_by_the_same_command(chats, monkeypatch):
    keeper = type(keepers()[0])
    interrupting = Interrupting(2, keeper.make)
    with monkeypatch.context() as patch:
        patch.setattr(examination, "AT_ONCE", 1)
        patch.setattr(keeper, "make", lambda *made: interrupting.make(*made))
        with pytest.raises(
            CommandError, match="all conversations are stored, but 1 conversation not"
        ) as stopped:
            call_command("import_transcripts", chats)
    assert stopped.value.returncode == 130
    assert Memory.objects.count() == COUNT
    assert len(known()) == 2
    call_command("import_transcripts", chats)
    assert len(known()) == COUNT


# The page


def imported(client, chats: Path) -> str:
    file = SimpleUploadedFile("chats.json", chats.read_bytes())
    form = {"file": file, "format": "auto", "kind": "message_window", "limit": "20"}
    return client.post("/import/", form).content.decode()


def test_the_page_shows_how_far_the_import_is_examined(operator_client, chats):
    page = imported(operator_client, chats)
    assert "0 of 3 conversations checked for problems" in page
    address = "/import/examined/?begin=chats-"
    assert f'hx-get="{address}"' in page
    services.keep("chats-1")
    assert (
        "1 of 3 conversations checked for problems" in operator_client.get(address).content.decode()
    )
    for each in ("chats-0", "chats-2"):
        services.keep(each)
    part = operator_client.get(address).content.decode()
    assert "3 of 3 conversations checked for problems" in part
    assert "hx-get" not in part  # it asks no more
    assert "<progress" not in part


def test_while_the_file_is_stored_the_page_asks_by_the_name_of_the_file(operator_client, chats):
    asked = "/import/examined/?begin=&file=chats.json"
    assert "examined" not in operator_client.get(asked).content.decode().partition("<span>")[2]
    imported(operator_client, chats)
    assert (
        "0 of 3 conversations checked for problems" in operator_client.get(asked).content.decode()
    )
    named = operator_client.get("/import/examined/?begin=other-&file=chats.json")
    assert "<span>" not in named.content.decode()


def test_a_page_without_new_conversations_says_nothing_of_it(operator_client, chats):
    imported(operator_client, chats)
    assert "examined" not in imported(operator_client, chats)
