"""The services: their writes and their refusals."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import partial
from uuid import uuid4

import pytest

from chatmemory import (
    DuplicateClientId,
    InvalidMessage,
    InvalidValue,
    MemoryExists,
    MemoryNotFound,
    MessageWindow,
    MessageWindowChatMemory,
    PolicyRequired,
    SystemMessage,
    TokenWindow,
    UnknownEstimator,
    UnstorableText,
    UserMessage,
    VersionConflict,
    services,
)
from chatmemory.formats import Reading, Transcript
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.models import AuditEntry, DefaultPolicy, Memory, Message, Step
from chatmemory.reading import conversations, simulation, steps
from chatmemory.reading import history as history_reads
from chatmemory.reading import windows as windows_reads
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.history import message
from chatmemory.search import DIGEST_LABEL
from chatmemory.services import NewMessage
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.stores.http import HttpChatMemoryStore
from inspector.rooms.erasure.copies import copies
from inspector.rooms.simulation.models import Trial
from inspector.rooms.simulation.trials import trial
from inspector.rooms.transfer.imports import import_all

from .conversations import BRIEF, texts, users

pytestmark = pytest.mark.django_db


def texts_of_history(memory_id: str) -> list[str]:
    return [row.text for row in history_reads.history(memory_id).rows]


def say(memory_id: str, *words: str) -> list:
    return services.add(memory_id, users(*words))


def test_an_add_returns_the_evictions_and_the_history_stays(memory_id):
    outcomes = say(memory_id, "a", "b", "c", "d")
    assert [outcome.step for outcome in outcomes] == [1, 2, 3, 4]
    assert [(left.seq, left.reason) for left in outcomes[3].evicted] == [(1, "CAPACITY")]
    assert outcomes[3].before.count == outcomes[3].after.count == 3
    windows = [[], ["a"], ["a", "b"], ["a", "b", "c"], ["b", "c", "d"]]
    assert [texts(memory_id, at) for at in range(5)] == windows
    services.clear_messages(memory_id)
    assert (texts(memory_id), texts_of_history(memory_id)) == ([], ["a", "b", "c", "d"])


def test_a_change_without_effect_is_no_step_and_no_activity(memory_id):
    assert services.clear_messages(memory_id).ignored
    services.add(memory_id, [SystemMessage("Be brief.")])
    before = conversations.memory(memory_id)
    services.add(memory_id, [BRIEF])
    services.change(memory_id, policy=MessageWindow(3), labels={})
    after = conversations.memory(memory_id)
    assert (after.last_step, after.said_count, after.updated_at) == (1, 1, before.updated_at)


def test_policy_and_labels_change_as_steps_even_before_anything_was_said(memory_id):
    services.change(memory_id, policy=MessageWindow(9), labels={"team": "support"})
    assert [steps.step(memory_id, n).row.kind for n in (1, 2)] == ["policy", "labels"]
    assert conversations.memory(memory_id).labels == {"team": "support"}
    say(memory_id, "a")
    assert verify(memory_id) is None


@pytest.mark.parametrize(
    ("before", "given", "window", "history"),
    [
        ("abcd", "ade", "ade", "abcde"),  # a returns
        ("abc", "+c", "+c", "abc"),  # what stands before a kept message is a summary
        ("", "abcde", "cde", "abcde"),  # what the policy trims was said
        ("abc", "cba", "cba", "abc"),
    ],
)
def test_a_list_is_set(memory_id, before, given, window, history):
    say(memory_id, *before)
    past = texts(memory_id)
    services.set_messages(memory_id, [UserMessage(word) for word in given])
    assert (texts(memory_id), texts_of_history(memory_id)) == (list(window), list(history))
    assert texts(memory_id, len(before)) == past
    assert verify(memory_id) is None


EMPTY, OTHER = "order-7741", MessageWindow(3)
REFUSED = {
    "NUL": (UnstorableText, "NUL", lambda: say(EMPTY, "fine", "not\x00fine")),
    "half of a character": (UnstorableText, r"U\+D800", lambda: say(EMPTY, "\ud800")),
    "a stale version": (
        VersionConflict,
        "at version 0, not 7",
        lambda: services.add(EMPTY, [UserMessage("b")], expected_version=7),
    ),
    "an unknown conversation": (MemoryNotFound, "'nobody'", lambda: say("nobody", "a")),
    "a taken id": (MemoryExists, EMPTY, lambda: services.create(EMPTY, OTHER)),
    "an unknown estimator": (
        UnknownEstimator,
        "claude-3",
        lambda: services.change(EMPTY, policy=TokenWindow(10, estimator="claude-3")),
    ),
    "no policy": (
        InvalidValue,
        r"such as MessageWindow\(20\), not 'message_window'",
        lambda: services.create("a", "message_window"),
    ),
    **{
        f"the id {bad[:5]!r}": (InvalidValue, "id", partial(services.create, bad, OTHER))
        for bad in ("", "x" * 256, "nul\x00", "\ud800")
    },
    **{
        f"the labels {labels}": (
            InvalidValue,
            "must be",
            partial(services.create, "a", OTHER, labels),
        )
        for labels in ({1: "a"}, {"a": 1}, ["a"])
    },
    **{
        f"{service.__name__} of {wrong!r}": (
            InvalidMessage,
            "expected a .*, not",
            partial(service, EMPTY, wrong),
        )
        for service in (services.add, services.set_messages)
        for wrong in ("hello", UserMessage("hello"), ["hello"], [None])
    },
}


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused_and_nothing_changes(memory_id, what):
    error, why, act = REFUSED[what]
    with pytest.raises(error, match=why):
        act()
    assert list(Memory.objects.values_list("pk", "last_step")) == [(memory_id, 0)]
    assert not Message.objects.exists()


NAIVE = datetime(2024, 1, 1)
NO_TIME = "said_at must be a datetime with a time zone, not"


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (NewMessage("x"), "expected a chat message such as .*, not 'x'"),
        (NewMessage(None), "expected a chat message such as .*, not None"),
        (NewMessage(UserMessage("x"), said_at=NAIVE), f"{NO_TIME} datetime.datetime"),
        (NewMessage(UserMessage("x"), said_at=NAIVE.date()), f"{NO_TIME} datetime.date"),
        (NewMessage(UserMessage("x"), said_at="2024-01-01"), f"{NO_TIME} '2024-01-01'"),
        (NewMessage(UserMessage("x"), client_id=5), "a client id must be a string"),
    ],
)
@pytest.mark.parametrize("count", [1, 501])
def test_a_new_message_is_checked_before_it_is_stored(memory_id, new, error, count):
    policy, several = MessageWindow(3), [UserMessage("y")] * (count - 1)
    for call in (
        lambda: services.add(memory_id, [*several, new]),
        lambda: services.change_and_add(memory_id, [*several, new], policy=policy),
        lambda: services.branch(memory_id, "branch", [*several, new]),
        lambda: services.import_conversation("import", [*several, new], policy),
    ):
        with pytest.raises(InvalidValue, match=error):
            call()
    assert conversations.memory(memory_id).last_step == 0
    assert list(Memory.objects.values_list("pk", flat=True)) == [memory_id]


def test_a_change_of_token_family_recounts_in_its_own_step():
    services.create("m", TokenWindow(1000, estimator="gpt-4o"))
    services.add("m", [UserMessage("naïve café 漢字かな مرحبا Привет")])
    before = conversations.memory("m").window.tokens
    services.change("m", policy=TokenWindow(1000, estimator="gpt-4"))
    after = conversations.memory("m").window.tokens
    assert after > before
    assert windows_reads.window("m", 1).totals.tokens == before
    assert windows_reads.window("m", 2).totals.tokens == after
    assert steps.step("m", 2).change.evicted == ()
    assert verify("m") is None


def test_a_client_id_makes_a_retry_harmless(memory_id):
    when = datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    once = NewMessage(UserMessage("a"), client_id="m-1", said_at=when)
    first, same = services.add(memory_id, [once, once])
    (again,) = services.add(memory_id, [once])
    assert (first.seq, same.seq, again.seq) == (1, 1, 1)
    assert (first.ignored, same.ignored, again.ignored) == (False, True, True)
    assert conversations.memory(memory_id).last_step == 1
    assert Message.objects.get().said_at == when
    with pytest.raises(DuplicateClientId, match="m-1"):
        services.add(memory_id, [NewMessage(UserMessage("b"), client_id="m-1")])


def test_the_label_of_an_import_counts_for_nobody_and_stays(imported):
    digest = conversations.memory(imported).labels
    given = {str(n): "" for n in range(64)}
    services.change(imported, labels=given)
    services.label([imported], "63", "new")
    assert conversations.memory(imported).labels == digest | given | {"63": "new"}
    with pytest.raises(InvalidValue, match="at most 64 labels, but has 65"):
        services.label([imported], "64", "")


def test_the_name_of_the_label_of_an_import_is_kept(memory_id):
    named = {DIGEST_LABEL: "mine"}
    for attempt in (
        lambda: services.create("new", MessageWindow(3), named),
        lambda: services.import_conversation("new", [], MessageWindow(3), labels=named),
        lambda: services.change(memory_id, labels=named),
        lambda: services.label([memory_id], DIGEST_LABEL, "mine"),
    ):
        with pytest.raises(InvalidValue, match="'import_digest' is reserved for imports"):
            attempt()
    assert conversations.memory(memory_id).labels == {}
    assert not Memory.objects.filter(pk="new").exists()


# Arguments that no service can mean are refused before anything is changed.


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
        *((given, "expected a list of ids, not") for given in ("ab", b"ab", {"a": 1}, None, 5)),
        *((["a", wrong], "a memory id") for wrong in ("\x00", "\ud800", 5, ["a"])),
    ],
)
def test_an_invalid_list_of_ids_is_refused(letters, service, given, why):
    with pytest.raises(InvalidValue, match=why):
        service(given)
    assert [conversations.memory(memory_id).labels for memory_id in letters] == [{}, {}]


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
    assert copies("a", 1) == [("br", 1), ("my-br", 1)]
    assert services.redact("a", 1, branches=["my-br"])
    assert message("br", 1).text == "my card is 4111"
    assert message("my-br", 1).text == "[redacted #1]"


READING = Reading("openai_chat", (Transcript("file", (UserMessage("hello"),)),), ())
ACTING = {
    "create": lambda actor: services.create("c", MessageWindow(3), actor=actor),
    "add": lambda actor: services.add("a", [UserMessage("hello")], actor=actor),
    "change_and_add": lambda actor: services.change_and_add(
        "a", [UserMessage("hello")], policy=None, actor=actor
    ),
    "change": lambda actor: services.change("a", policy=MessageWindow(4), actor=actor),
    "adopt_policy": lambda actor: services.adopt_policy(
        MemoryFilter(), MessageWindow(4), actor=actor
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
    "import_all": lambda actor: list(import_all(READING, actor=actor)),
    "keep_trial": lambda actor: services.keep_trial("a", [UserMessage("draft")], actor=actor),
    "set_default_policy": lambda actor: services.set_default_policy("a", MessageWindow(3), actor),
    "remove_default_policy": lambda actor: services.remove_default_policy("a", actor),
    "a store": DjangoChatMemoryStore,
}


ACTORS = [5, True, 2.5, None, b"ada", uuid4(), "\ud800", "a\x00", "x" * 256]


@pytest.mark.parametrize("act", ACTING.values(), ids=ACTING)
def test_an_actor_is_text_that_every_database_can_hold(letters, act):
    """A value of another type would change when it is stored, and contradict its digest."""
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
    "memory": conversations.memory,
    "window": windows_reads.window,
    "history": history_reads.history,
    "step": lambda memory_id: steps.step(memory_id, 1),
    "copies": lambda memory_id: copies(memory_id, 1),
    "trial": lambda memory_id: trial(memory_id, "key"),
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


def test_the_error_for_a_long_id_has_its_length():
    with pytest.raises(InvalidValue, match=r"not 'aaa.*\(70,000 characters\)"):
        services.create("a" * 70_000, MessageWindow(1))


def test_a_lowered_limit_hides_at_once_and_evicts_at_the_next_add(memory_id):
    say(memory_id, "a", "b", "c")
    services.change(memory_id, policy=MessageWindow(1))
    assert texts(memory_id) == ["c"]
    assert [row.text for row in windows_reads.window(memory_id).over_limit] == ["a", "b"]
    services.change(memory_id, policy=MessageWindow(3))
    assert texts(memory_id) == ["a", "b", "c"]
    services.change(memory_id, policy=MessageWindow(2))
    say(memory_id, "d")
    assert texts(memory_id) == ["c", "d"]
    assert verify(memory_id) is None


def test_adding_to_a_window_without_a_policy_is_refused():
    protocol.update_messages("bare", [UserMessage("a")])
    for call in (services.add, simulation.simulate):
        with pytest.raises(PolicyRequired, match="set a policy"):
            call("bare", [UserMessage("b")])
    services.change("bare", policy=MessageWindow(2))
    say("bare", "b", "c")
    assert texts("bare") == ["b", "c"]
    assert verify("bare") is None
