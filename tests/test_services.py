"""The services: what they store and what they refuse."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import partial

import pytest

from chatmemory import (
    DuplicateClientId,
    InvalidMessage,
    InvalidValue,
    MemoryExists,
    MemoryNotFound,
    PolicyRequired,
    SystemMessage,
    UnknownEstimator,
    UnstorableText,
    UserMessage,
    VersionConflict,
    queries,
    services,
)
from chatmemory.core.policies import MessageWindow, TokenWindow
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory, Message
from chatmemory.search import DIGEST_LABEL
from chatmemory.services import NewMessage, protocol

from .conversations import texts

pytestmark = pytest.mark.django_db


def said(memory_id: str) -> list[str]:
    return [row.text for row in queries.history(memory_id).rows]


def say(memory_id: str, *words: str) -> list:
    return services.add(memory_id, [UserMessage(word) for word in words])


def test_an_add_returns_the_evictions_and_the_history_stays(memory_id):
    outcomes = say(memory_id, "a", "b", "c", "d")
    assert [outcome.step for outcome in outcomes] == [1, 2, 3, 4]
    assert [(left.seq, left.reason) for left in outcomes[3].evicted] == [(1, "CAPACITY")]
    assert outcomes[3].before.count == outcomes[3].after.count == 3
    windows = [[], ["a"], ["a", "b"], ["a", "b", "c"], ["b", "c", "d"]]
    assert [texts(memory_id, at) for at in range(5)] == windows
    services.clear_messages(memory_id)
    assert (texts(memory_id), said(memory_id)) == ([], ["a", "b", "c", "d"])


def test_what_changes_nothing_is_no_step_and_no_activity(memory_id):
    assert services.clear_messages(memory_id).ignored
    services.add(memory_id, [SystemMessage("Be brief.")])
    before = queries.memory(memory_id)
    services.add(memory_id, [SystemMessage("Be brief.")])
    services.change(memory_id, policy=MessageWindow(3), labels={})
    after = queries.memory(memory_id)
    assert (after.last_step, after.said_count, after.updated_at) == (1, 1, before.updated_at)


def test_policy_and_labels_change_as_steps_even_before_anything_was_said(memory_id):
    services.change(memory_id, policy=MessageWindow(9), labels={"team": "support"})
    assert [queries.step(memory_id, n).row.kind for n in (1, 2)] == ["policy", "labels"]
    assert queries.memory(memory_id).labels == {"team": "support"}
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
    assert (texts(memory_id), said(memory_id)) == (list(window), list(history))
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
            "is wanted, not",
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
        (NewMessage("x"), "a chat message such as .* is wanted, not 'x'"),
        (NewMessage(None), "a chat message such as .* is wanted, not None"),
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
    assert queries.memory(memory_id).last_step == 0
    assert list(Memory.objects.values_list("pk", flat=True)) == [memory_id]


def test_a_lowered_limit_hides_at_once_and_evicts_at_the_next_add(memory_id):
    say(memory_id, "a", "b", "c")
    services.change(memory_id, policy=MessageWindow(1))
    assert texts(memory_id) == ["c"]
    assert [row.text for row in queries.window(memory_id).over_limit] == ["a", "b"]
    services.change(memory_id, policy=MessageWindow(3))
    assert texts(memory_id) == ["a", "b", "c"]
    services.change(memory_id, policy=MessageWindow(2))
    say(memory_id, "d")
    assert texts(memory_id) == ["c", "d"]
    assert verify(memory_id) is None


def test_a_change_of_token_family_recounts_in_its_own_step():
    services.create("m", TokenWindow(1000, estimator="gpt-4o"))
    services.add("m", [UserMessage("naïve café 漢字かな مرحبا Привет")])
    before = queries.memory("m").window.tokens
    services.change("m", policy=TokenWindow(1000, estimator="gpt-4"))
    after = queries.memory("m").window.tokens
    assert after > before
    assert queries.window("m", 1).totals.tokens == before
    assert queries.window("m", 2).totals.tokens == after
    assert queries.step("m", 2).change.evicted == ()
    assert verify("m") is None


def test_a_client_id_makes_a_retry_harmless(memory_id):
    when = datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    once = NewMessage(UserMessage("a"), client_id="m-1", said_at=when)
    first, same = services.add(memory_id, [once, once])
    (again,) = services.add(memory_id, [once])
    assert (first.seq, same.seq, again.seq) == (1, 1, 1)
    assert (first.ignored, same.ignored, again.ignored) == (False, True, True)
    assert queries.memory(memory_id).last_step == 1
    assert Message.objects.get().said_at == when
    with pytest.raises(DuplicateClientId, match="m-1"):
        services.add(memory_id, [NewMessage(UserMessage("b"), client_id="m-1")])


def test_adding_to_a_window_without_a_policy_is_refused():
    protocol.update_messages("bare", [UserMessage("a")])
    for call in (services.add, queries.simulate):
        with pytest.raises(PolicyRequired, match="set a policy"):
            call("bare", [UserMessage("b")])
    services.change("bare", policy=MessageWindow(2))
    say("bare", "b", "c")
    assert texts("bare") == ["b", "c"]
    assert verify("bare") is None


def test_the_label_of_an_import_counts_for_nobody_and_stays(imported):
    digest = queries.memory(imported).labels
    given = {str(n): "" for n in range(64)}
    services.change(imported, labels=given)
    services.label([imported], "63", "new")
    assert queries.memory(imported).labels == digest | given | {"63": "new"}
    with pytest.raises(InvalidValue, match="up to 64 labels, not 65"):
        services.label([imported], "64", "")


def test_the_name_of_the_label_of_an_import_is_kept(memory_id):
    named = {DIGEST_LABEL: "mine"}
    for attempt in (
        lambda: services.create("new", MessageWindow(3), named),
        lambda: services.import_conversation("new", [], MessageWindow(3), labels=named),
        lambda: services.change(memory_id, labels=named),
        lambda: services.label([memory_id], DIGEST_LABEL, "mine"),
    ):
        with pytest.raises(InvalidValue, match="'import_digest' is kept for imports"):
            attempt()
    assert queries.memory(memory_id).labels == {}
    assert not Memory.objects.filter(pk="new").exists()
