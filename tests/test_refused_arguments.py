"""Arguments that no service can mean are refused before anything is changed."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

import pytest

from chatmemory import (
    InvalidValue,
    MemoryNotFound,
    MessageWindow,
    MessageWindowChatMemory,
    UnstorableText,
    UserMessage,
    queries,
    services,
)
from chatmemory.formats import Reading, Transcript
from chatmemory.ledger.verification import verify
from chatmemory.models import AuditEntry, DefaultPolicy, Memory, Message, Step, Trial
from chatmemory.services import protocol
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.stores.http import HttpChatMemoryStore

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
@pytest.mark.parametrize(
    ("given", "why"),
    [
        *((given, "a list of ids is wanted, not") for given in ("ab", b"ab", {"a": 1}, None, 5)),
        *((["a", wrong], "a memory id") for wrong in ("\x00", "\ud800", 5, ["a"])),
    ],
)
def test_what_is_no_list_of_ids_is_refused(letters, service, given, why):
    with pytest.raises(InvalidValue, match=why):
        service(given)
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


NUMBERED = {
    "redact": services.redact,
    "pin": services.pin,
    "unpin": services.unpin,
}
VERSIONED = {
    "add": lambda version: services.add("a", [UserMessage("b")], expected_version=version),
    "change": lambda version: services.change("a", labels={}, expected_version=version),
    "set_messages": lambda version: services.set_messages("a", [], expected_version=version),
    "update_messages": lambda version: protocol.update_messages("c", [], expected_version=version),
    "pin": lambda version: services.pin("a", 1, expected_version=version),
    "redact": lambda version: services.redact("a", 1, expected_version=version),
    "delete": lambda version: services.delete("a", expected_version=version),
}
WHOLE = {
    **{f"seq of {name}": ("seq", partial(call, "a")) for name, call in NUMBERED.items()},
    **{f"version of {name}": ("expected_version", call) for name, call in VERSIONED.items()},
}


@pytest.mark.parametrize(("name", "call"), WHOLE.values(), ids=WHOLE)
def test_numbers_are_whole_numbers(letters, name, call):
    services.add("a", [UserMessage("hello")])
    before = everything()
    for number in ("1", True, 1.0):
        with pytest.raises(InvalidValue, match=f"{name} must be a whole number, not"):
            call(number)
    assert everything() == before
    assert verify("a") is None


# Ids that no database can hold, wherever one is read


STORE = DjangoChatMemoryStore()
READS = {
    "memory": queries.memory,
    "window": queries.window,
    "history": queries.history,
    "step": lambda memory_id: queries.step(memory_id, 1),
    "copies": lambda memory_id: queries.copies(memory_id, 1),
    "trial": lambda memory_id: queries.trial(memory_id, "key"),
    "default_policy": services.default_policy,
    "branch": lambda memory_id: services.branch(memory_id, "other", []),
    "get_messages": STORE.get_messages,
    "get_window": STORE.get_window,
    "get_history": STORE.get_history,
    "a memory": lambda memory_id: MessageWindowChatMemory(memory_id, 5, store=STORE).messages(),
    "http": lambda memory_id: HttpChatMemoryStore("http://127.0.0.1:9", "t").get_messages(
        memory_id
    ),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_an_unstorable_id_is_refused_and_not_looked_for(db, read, django_assert_num_queries):
    """Citus would take one that is too long for an error in the query."""
    with django_assert_num_queries(0):
        for memory_id in ("\ud800", "a\x00b"):
            with pytest.raises(UnstorableText, match="a memory id cannot contain NUL or lone surr"):
                read(memory_id)
        with pytest.raises(MemoryNotFound, match=r"aaa'… \(256 characters\): ids have at most 255"):
            read("a" * 256)


def test_the_length_of_a_long_id_is_told():
    with pytest.raises(InvalidValue, match=r"not 'aaa.*\(70,000 characters\)"):
        services.create("a" * 70_000, MessageWindow(1))
