"""Incidents of stored conversations: found by the ledger, by a command, and by a server."""

from __future__ import annotations

import json
from importlib import import_module
from itertools import count

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import MessageType, MessageWindow, services
from chatmemory.models import Memory
from chatmemory.recall.incidents import incidents_under
from chatmemory.recall.loads import Keeping
from chatmemory.stores.database import DjangoChatMemoryStore
from inspector.rooms.evidence import stretches
from inspector.rooms.evidence.finding import found_incidents
from inspector.rooms.evidence.incidents import incidents
from inspector.rooms.evidence.models import KeptIncidents
from tests.conversations import create_and_add, users
from tests.properties import examples
from tests.recall.test_incidents import conversations, installed_policies

pytestmark = pytest.mark.django_db

NUMBERS = count()


def incidents_anew(memory_id):
    return found_incidents(Memory.objects.get(id=memory_id))


def without_ignored(messages):
    """Yield the messages but for system messages equal to the one in force, which get no seq."""
    system = None
    for message in messages:
        if message != system:
            yield message
        system = message if message.type is MessageType.SYSTEM else system


@given(conversations.filter(bool), installed_policies)
@examples(40)
def test_the_ledger_and_a_replay_agree(messages, policy):
    messages = list(without_ignored(messages))
    memory_id = f"incidents-{next(NUMBERS)}"
    create_and_add(memory_id, policy, messages)
    assert incidents_anew(memory_id) == incidents_under(policy, messages)


SAID = users("My order is A-1182.", "well", "well", "A-1182!")


def step_and_facts(memory_id):
    found = incidents(memory_id)
    return found.step, [each.fact for each in found.incidents]


def test_they_are_kept_until_the_conversation_changes():
    create_and_add("a", MessageWindow(2), SAID)
    assert step_and_facts("a") == (0, [])
    assert not incidents("a").is_current
    services.keep("a")
    assert step_and_facts("a") == (4, ["A-1182"])
    assert incidents("a").incidents == incidents_anew("a")
    assert incidents("a").is_current
    services.add("a", users("well", "well", "A-1182?"))
    assert step_and_facts("a") == (4, ["A-1182"])
    assert not incidents("a").is_current
    services.keep("a")
    assert step_and_facts("a") == (7, ["A-1182", "A-1182"])


@pytest.mark.parametrize(("long", "expected"), [(7, 1), (9, 0)])
def test_they_are_looked_for_among_the_newest_four_million_characters(monkeypatch, long, expected):
    messages = import_module("inspector.rooms.evidence.messages")
    assert messages.NEWEST_CHARACTERS == 4_000_000
    monkeypatch.setattr(messages, "NEWEST_CHARACTERS", 40_000)
    said = ["My order is A-1182.", *["word " * 1_000] * long, "A-1182!"]
    create_and_add("c", MessageWindow(2), users(*said))
    assert len(incidents_anew("c")) == expected


def row_of(memory_id):
    services.keep(memory_id)
    row = KeptIncidents.objects.get(memory_id=memory_id)
    return {name: value for name, value in vars(row).items() if name not in ("_state", "kept_at")}


@given(conversations.filter(bool), installed_policies, st.data())
@examples(30)
def test_a_row_kept_after_each_change_is_the_one_made_once_at_the_end(messages, policy, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretches, "STRETCH", 3)
        memory_id = f"going-on-{next(NUMBERS)}"
        services.create(memory_id, policy)
        rest = list(without_ignored(messages))
        while rest:
            size = data.draw(st.integers(1, len(rest)))
            services.add(memory_id, rest[:size])
            row, rest = row_of(memory_id), rest[size:]
        KeptIncidents.objects.filter(memory_id=memory_id).delete()
        assert row_of(memory_id) == row


def test_what_was_said_long_ago_is_looked_for_once_a_stretch_is_full(monkeypatch):
    """What memory held when the stretch before began is known at once."""
    monkeypatch.setattr(stretches, "STRETCH", 4)
    create_and_add(
        "a", MessageWindow(3), users("A-1182", "B-2293", *["well"] * 6, "A-1182", "B-2293")
    )
    services.keep("a")
    assert step_and_facts("a") == (10, ["B-2293"])
    assert [each.keeping for each in incidents("a").incidents[0].facts] == [None]
    services.add("a", users("well", "well"))
    services.keep("a")
    assert step_and_facts("a") == (12, ["A-1182", "B-2293"])
    assert incidents("a").incidents[1].shown.keeping == Keeping(8)


def test_an_altered_row_is_made_anew_with_the_next_change():
    create_and_add("a", MessageWindow(2), SAID)
    services.keep("a")
    KeptIncidents.objects.update(content='[["altered"]]')
    services.add("a", users("well"))
    services.keep("a")
    assert step_and_facts("a") == (5, ["A-1182"])


def test_other_words_are_facts_after_a_change_of_the_settings(settings):
    create_and_add("a", MessageWindow(2), users("the Fjord bowl", "well", "well", "a Fjord bowl"))
    services.keep("a")
    assert step_and_facts("a") == (4, [])
    settings.CHATMEMORY = {**getattr(settings, "CHATMEMORY", {}), "FACT_TERMS": ["Fjord"]}
    assert step_and_facts("a") == (0, [])
    assert not incidents("a").is_current
    services.keep("a")
    assert step_and_facts("a") == (4, ["Fjord"])


def test_no_limit_helps_where_a_client_decided():
    client = DjangoChatMemoryStore()
    client.update_messages("a", SAID[:1])
    client.update_messages("a", SAID[1:3])
    client.update_messages("a", SAID[1:])
    (found,) = incidents_anew("a")
    fact = found.shown
    assert (fact.said, fact.left_step, fact.keeping) == (1, 2, Keeping(None))


@pytest.mark.needs("observability")
def test_a_server_finds_them_within_five_seconds(served):
    assert served.finds_incidents("again", within=5)
    metrics = served.api.get(f"{served.url}/metrics", headers={"Authorization": ""}).text
    assert 'chatmemory_incidents_total{kind="user_repeated"}' in metrics
    assert 'chatmemory_cases_total{cause="user_repeated"} 0.0' not in metrics


# manage.py incidents, of files


COUNTS = {
    "forced": 1,
    "user_repeated": 1,
    "call_repeated": 0,
    "user_supplied": 0,
    "used_unseen": 0,
    "conversations": 1,
}
LINES = ["My order is A-1182.", "Thank you.", "Where is it?", "Which order?", "A-1182!"]


@pytest.fixture
def chat(tmp_path):
    turns = [
        {"role": ["user", "assistant"][n % 2], "content": text} for n, text in enumerate(LINES)
    ]
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
                "kind": "user_repeated",
                "again": 5,
                "step": 5,
                "forced": True,
                "asked": 4,
                "facts": [
                    {
                        "fact": "A-1182",
                        "said": 1,
                        "left_step": 3,
                        "cause": "CAPACITY",
                        "limit": 4,
                    }
                ],
            }
        ],
    }
    assert total == {"total": COUNTS}


def test_a_conversation_without_incidents_has_no_line(chat, capsys):
    call_command("incidents", chat, "--policy", "message_window:4", "--json")
    (total,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert total["total"]["conversations"] == 0


def test_people_read_sentences(chat, capsys):
    call_command("incidents", chat, "--policy", "message_window:2")
    found, total = capsys.readouterr().out.splitlines()
    assert found == (
        "1: A-1182 had to be repeated by the user in #5; said in #1, left memory at step 3; "
        "a limit of 4 would have kept it"
    )
    assert total == (
        "1 user_repeated, 0 call_repeated, 0 user_supplied, 0 used_unseen; 1 forced; "
        "conversations with any: 1"
    )


@pytest.mark.parametrize(
    ("kinds", "status"),
    [("forced", 1), ("user_repeated", 1), ("said_again,fetched_again", 1), ("used_unseen,used", 0)],
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
        (["--policy", "message_window:2", "--fail-on", "all"], "'all' is none of user_repeated"),
        ([], "--policy needs files"),
        (["--stored"], "files beside --stored: give files and --policy, or --stored"),
    ],
)
def test_a_mistake_is_explained(chat, options, told):
    with pytest.raises(CommandError, match=told):
        call_command("incidents", chat, *options)


def test_stored_conversations_have_the_incidents_of_their_ledger(capsys):
    create_and_add("kept", MessageWindow(2), users(*LINES))
    create_and_add("whole", MessageWindow(9), users(*LINES))
    call_command("incidents", "--stored", "--json")
    conversation, total = map(json.loads, capsys.readouterr().out.splitlines())
    assert conversation["conversation"] == "kept"
    assert total["total"] == COUNTS | {"forced": 0}
    assert KeptIncidents.objects.count() == 2
