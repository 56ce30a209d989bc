"""Arguments that no service can mean are refused before anything is changed."""

from __future__ import annotations

from uuid import uuid4

import pytest

from chatmemory import InvalidValue, MemoryNotFound, MessageWindow, UserMessage, queries, services
from chatmemory.formats import Reading, Transcript
from chatmemory.ledger.verification import verify
from chatmemory.models import AuditEntry, DefaultPolicy, Memory, Message, Step, Trial
from chatmemory.services import protocol
from chatmemory.stores.database import DjangoChatMemoryStore

pytestmark = [pytest.mark.django_db, pytest.mark.database]


@pytest.fixture
def letters(db) -> list[str]:
    """Conversations whose ids are the letters of "ab"."""
    for memory_id in "ab":
        services.create(memory_id, MessageWindow(3))
    return ["a", "b"]


def label_all(memory_ids: object) -> None:
    services.label(memory_ids, "team", "sales")


OF_SEVERAL = {"delete_all": services.delete_all, "label": label_all}
several = pytest.mark.parametrize("service", OF_SEVERAL.values(), ids=OF_SEVERAL)


@several
@pytest.mark.parametrize("given", ["ab", b"ab", {"a": 1}, None, 5, True])
def test_what_is_no_list_of_ids_is_refused(letters, service, given):
    with pytest.raises(InvalidValue, match="a list of ids is wanted, not"):
        service(given)
    assert [queries.memory(memory_id).labels for memory_id in letters] == [{}, {}]


@several
@pytest.mark.parametrize("memory_id", ["\x00", "\ud800", 5, ["a"]])
def test_an_id_that_is_none_is_refused_among_others(letters, service, memory_id):
    with pytest.raises(InvalidValue, match="a memory id"):
        service(["a", memory_id])
    assert [queries.memory(memory_id).labels for memory_id in letters] == [{}, {}]


@several
def test_ids_of_any_collection_are_taken(letters, service):
    service({"a"})
    service(memory_id for memory_id in ["b"])
    with pytest.raises(MemoryNotFound):
        service(["c"])


@pytest.mark.parametrize("branches", ["my-br", True, {"br": 1}, None, ["\ud800"]])
def test_branches_of_a_redaction_are_a_list_of_ids(letters, branches):
    services.add("a", [UserMessage("my card is 4111")])
    services.branch("a", "br", [])
    services.branch("a", "my-br", [])
    with pytest.raises(InvalidValue):
        services.redact("a", 1, branches=branches)
    assert queries.copies("a", 1) == [("br", 1), ("my-br", 1)]
    assert services.redact("a", 1, branches=["my-br"])
    assert queries.message("br", 1).text == "my card is 4111"
    assert queries.message("my-br", 1).text == "[redacted #1]"


READING = Reading("openai_chat", (Transcript("file", (UserMessage("hello"),)),), ())
ACTING = {
    "create": lambda actor: services.create("c", MessageWindow(3), actor=actor),
    "add": lambda actor: services.add("a", [UserMessage("hello")], actor=actor),
    "change_and_add": lambda actor: services.change_and_add(
        "a", [UserMessage("hello")], policy=None, actor=actor
    ),
    "change": lambda actor: services.change("a", policy=MessageWindow(4), actor=actor),
    "adopt_policy": lambda actor: services.adopt_policy(
        queries.MemoryFilter(), MessageWindow(4), actor=actor
    ),
    "set_messages": lambda actor: services.set_messages("a", [UserMessage("b")], actor=actor),
    "clear_messages": lambda actor: services.clear_messages("a", actor=actor),
    "update_messages": lambda actor: protocol.update_messages("a", [UserMessage("b")], actor=actor),
    "delete_messages": lambda actor: protocol.delete_messages("a", actor=actor),
    "pin": lambda actor: services.pin("a", 1, actor=actor),
    "unpin": lambda actor: services.unpin("a", 1, actor=actor),
    "redact": lambda actor: services.redact("a", 1, actor=actor),
    "delete": lambda actor: services.delete("a", actor=actor),
    "delete_all": lambda actor: services.delete_all(["a"], actor),
    "label": lambda actor: services.label(["a"], "team", "sales", actor),
    "branch": lambda actor: services.branch("a", "c", [], actor=actor),
    "import_conversation": lambda actor: services.import_conversation(
        "c", [UserMessage("hello")], MessageWindow(3), actor=actor
    ),
    "import_all": lambda actor: list(services.import_all(READING, actor=actor)),
    "keep_trial": lambda actor: services.keep_trial("a", [UserMessage("draft")], actor=actor),
    "set_default_policy": lambda actor: services.set_default_policy("a", MessageWindow(3), actor),
    "remove_default_policy": lambda actor: services.remove_default_policy("a", actor),
    "a store": DjangoChatMemoryStore,
}


ACTORS = [5, True, 2.5, None, b"ada", uuid4(), "\ud800", "a\x00", "x" * 256]


@pytest.mark.parametrize("act", ACTING.values(), ids=ACTING)
def test_an_actor_is_text_that_every_database_can_hold(letters, act):
    """One of another type would be another one once it is stored, and contradict its digest."""
    services.add("a", [UserMessage("hello")], actor="ada")
    before = everything()
    for actor in ACTORS:
        with pytest.raises(InvalidValue, match="an actor"):
            act(actor)
    assert everything() == before
    assert verify("a") is None


def everything() -> str:
    tables = (Memory, Message, Step, Trial, DefaultPolicy, AuditEntry)
    return str([list(table.objects.values()) for table in tables])


@pytest.mark.parametrize("actor", ["", "x" * 255, "Ада\n"])
def test_any_other_text_is_an_actor(letters, actor):
    services.add("a", [UserMessage("hello")], actor=actor)
    services.redact("a", 1, actor=actor)
    services.delete("b", actor=actor)
    assert {step.actor for step in Step.objects.all()} == {actor}
    assert {entry.actor for entry in AuditEntry.objects.all()} == {actor}
    assert verify("a") is None


OF_A_MESSAGE = {"redact": services.redact, "pin": services.pin, "unpin": services.unpin}


@pytest.mark.parametrize("service", OF_A_MESSAGE.values(), ids=OF_A_MESSAGE)
@pytest.mark.parametrize("seq", ["1", True, 1.0, None])
def test_a_message_is_named_by_a_whole_number(letters, service, seq):
    services.add("a", [UserMessage("hello")])
    before = everything()
    with pytest.raises(InvalidValue, match="seq must be a whole number, not"):
        service("a", seq)
    assert everything() == before
    assert verify("a") is None


EXPECTING = {
    "add": lambda version: services.add("a", [UserMessage("b")], expected_version=version),
    "change": lambda version: services.change("a", labels={}, expected_version=version),
    "set_messages": lambda version: services.set_messages("a", [], expected_version=version),
    "update_messages": lambda version: protocol.update_messages("c", [], expected_version=version),
    "pin": lambda version: services.pin("a", 1, expected_version=version),
    "redact": lambda version: services.redact("a", 1, expected_version=version),
    "delete": lambda version: services.delete("a", expected_version=version),
}


@pytest.mark.parametrize("expect", EXPECTING.values(), ids=EXPECTING)
@pytest.mark.parametrize("version", ["1", True, 1.0])
def test_a_version_is_a_whole_number(letters, expect, version):
    services.add("a", [UserMessage("hello")])
    before = everything()
    with pytest.raises(InvalidValue, match="expected_version must be a whole number, not"):
        expect(version)
    assert everything() == before
