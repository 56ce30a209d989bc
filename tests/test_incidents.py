"""Incidents of stored conversations: the ledger and a replay agree."""

from __future__ import annotations

from collections import Counter
from itertools import count

import pytest
from hypothesis import given

from chatmemory import MessageType, MessageWindow, TokenWindow, queries, services
from chatmemory.core.loads import Keeping
from chatmemory.core.recall.incidents import incidents_under
from chatmemory.formats import read_transcripts
from chatmemory.queries.incidents import computed_incidents
from chatmemory.stores.database import DjangoChatMemoryStore
from inspector import demo

from .conversations import create_and_add, users
from .core.test_incidents import conversations, installed_policies
from .properties import examples

pytestmark = pytest.mark.django_db
NUMBERS = count()


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
    assert computed_incidents(memory_id).incidents == incidents_under(policy, messages)


def test_the_incidents_of_the_tau_bench_runs(data_file):
    content = data_file("tau_bench_airline.openai_chat.json").read_bytes()
    counts, with_any = Counter(), 0
    for n, run in enumerate(read_transcripts(content).transcripts):
        create_and_add(f"run-{n}", TokenWindow(2000), run.messages)
        found = computed_incidents(f"run-{n}").incidents
        counts += Counter(each.kind for each in found)
        with_any += bool(found)
    assert (counts, with_any) == ({"said_again": 3, "used": 480}, 59)


def test_the_demo_had_to_be_told_its_order_number_again():
    demo.load()
    found = computed_incidents("order-7741").incidents
    (found,) = [each for each in found if each.kind == "said_again"]
    assert (found.fact, found.said, found.left_step) == ("A-1182", 25, 43)
    assert (found.asked, found.again, found.keeping.limit) == (46, 47, 902)


SAID = users("My order is A-1182.", "well", "well", "A-1182!")


def kept(memory_id):
    found = queries.incidents(memory_id)
    return found.step, [each.fact for each in found.incidents]


def test_they_are_kept_until_the_conversation_changes():
    create_and_add("a", MessageWindow(2), SAID)
    assert kept("a") == (0, [])
    assert not queries.incidents("a").is_current
    services.current_incidents("a")
    assert kept("a") == (4, ["A-1182"])
    assert queries.incidents("a") == computed_incidents("a")
    assert queries.incidents("a").is_current
    services.add("a", users("well", "well", "A-1182?"))
    assert kept("a") == (4, ["A-1182"])
    assert not queries.incidents("a").is_current
    services.current_incidents("a")
    assert kept("a") == (7, ["A-1182", "A-1182"])


@pytest.mark.parametrize(("long", "expected"), [(7, 1), (8, 0)])
def test_they_are_looked_for_among_the_newest_four_million_characters(long, expected):
    said = ["My order is A-1182.", *["word " * 100_000] * long, "A-1182!"]
    create_and_add("c", MessageWindow(2), users(*said))
    assert len(computed_incidents("c").incidents) == expected


def test_a_redaction_takes_them_along():
    create_and_add("a", MessageWindow(2), SAID)
    services.current_incidents("a")
    services.redact("a", 1)
    assert kept("a") == (0, [])
    services.current_incidents("a")
    assert kept("a") == (5, [])


def test_other_words_are_facts_after_a_change_of_the_settings(settings):
    create_and_add("a", MessageWindow(2), users("the Fjord bowl", "well", "well", "a Fjord bowl"))
    services.current_incidents("a")
    assert kept("a") == (4, [])
    settings.CHATMEMORY = {**getattr(settings, "CHATMEMORY", {}), "FACT_TERMS": ["Fjord"]}
    assert kept("a") == (0, [])
    assert not queries.incidents("a").is_current
    services.current_incidents("a")
    assert kept("a") == (4, ["Fjord"])


def test_none_are_kept_of_a_conversation_that_changes_meanwhile(monkeypatch):
    create_and_add("a", MessageWindow(2), SAID)

    def found_then_changed(memory_id):
        found = computed_incidents(memory_id)
        services.add(memory_id, users("well"))
        return found

    monkeypatch.setattr("chatmemory.services.findings.computed_incidents", found_then_changed)
    services.current_incidents("a")
    assert kept("a") == (0, [])


def test_no_limit_helps_where_a_client_decided():
    client = DjangoChatMemoryStore()
    client.update_messages("a", SAID[:1])
    client.update_messages("a", SAID[1:3])
    client.update_messages("a", SAID[1:])
    (found,) = computed_incidents("a").incidents
    assert (found.said, found.left_step, found.keeping) == (1, 2, Keeping(None))
