"""manage.py incidents, of files."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from chatmemory import MessageWindow
from chatmemory.models import FoundIncidents

from .conversations import create_and_add, users

pytestmark = pytest.mark.django_db
SAID = ["My order is A-1182.", "Thank you.", "Where is it?", "Which order?", "A-1182!"]


@pytest.fixture
def chat(tmp_path):
    turns = [{"role": ["user", "assistant"][n % 2], "content": text} for n, text in enumerate(SAID)]
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(turns))
    return str(file)


def test_each_conversation_is_a_line_of_json(chat, capsys):
    call_command("incidents", chat, "--policy", "message_window:2", "--json")
    conversation, total = map(json.loads, capsys.readouterr().out.splitlines())
    assert conversation == {
        "conversation": "1",
        "incidents": [
            {
                "kind": "said_again",
                "fact": "A-1182",
                "said": 1,
                "left_step": 3,
                "cause": "CAPACITY",
                "asked": 4,
                "again": 5,
                "step": 5,
                "limit": 4,
            }
        ],
    }
    assert total == {"total": {"said_again": 1, "fetched_again": 0, "used": 0, "conversations": 1}}


def test_a_conversation_without_incidents_has_no_line(chat, capsys):
    call_command("incidents", chat, "--policy", "message_window:4", "--json")
    (total,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert total["total"]["conversations"] == 0


def test_people_read_sentences(chat, capsys):
    call_command("incidents", chat, "--policy", "message_window:2")
    found, total = capsys.readouterr().out.splitlines()
    assert found == (
        "1: A-1182, said in #1, left memory at step 3 and was said again by the user in #5; "
        "a limit of 4 would have kept it"
    )
    assert total == "1 said_again, 0 fetched_again, 0 used; conversations with any: 1"


@pytest.mark.parametrize(
    ("kinds", "status"), [("said_again,fetched_again", 1), ("fetched_again", 0), ("used", 0)]
)
def test_a_build_can_fail_on_them(chat, kinds, status):
    arguments = ("incidents", chat, "--policy", "message_window:2", "--fail-on", kinds)
    if status:
        with pytest.raises(SystemExit) as ended:
            call_command(*arguments)
        assert ended.value.code == 1
    else:
        call_command(*arguments)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--policy", "window:2"], "window:2"),
        (["--policy", "message_window:2", "--fail-on", "all"], "'all' is none of said_again"),
        ([], "--policy is that of files"),
        (["--stored"], "name files with a --policy, or use --stored"),
    ],
)
def test_a_mistake_is_told(chat, options, told):
    with pytest.raises(CommandError, match=told):
        call_command("incidents", chat, *options)


def test_stored_conversations_have_those_of_their_ledger(capsys):
    create_and_add("kept", MessageWindow(2), users(*SAID))
    create_and_add("whole", MessageWindow(9), users(*SAID))
    call_command("incidents", "--stored", "--json")
    conversation, total = map(json.loads, capsys.readouterr().out.splitlines())
    assert conversation["conversation"] == "kept"
    assert total["total"] == {"said_again": 1, "fetched_again": 0, "used": 0, "conversations": 1}
    assert FoundIncidents.objects.count() == 2
