"""The services: what they store and what they refuse."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    DuplicateClientId,
    InvalidMessage,
    InvalidValue,
    MemoryExists,
    MemoryNotFound,
    MessageWindowChatMemory,
    PolicyRequired,
    SystemMessage,
    TokenWindowChatMemory,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UnknownEstimator,
    UnstorableText,
    UserMessage,
    VersionConflict,
    queries,
    services,
)
from chatmemory.core.policies import MessageWindow, TokenWindow
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory, Message, Step
from chatmemory.search import DIGEST_LABEL
from chatmemory.services import NewMessage, protocol
from chatmemory.stores.database import DjangoChatMemoryStore

from .properties import examples

pytestmark = pytest.mark.django_db


def texts(memory_id: str, at: int | None = None) -> list[str]:
    return [row.text for row in queries.window(memory_id, at).rows]


def say(memory_id: str, *words: str) -> list:
    return services.add(memory_id, [UserMessage(word) for word in words])


def test_an_add_returns_the_evictions(memory_id):
    outcomes = say(memory_id, "a", "b", "c", "d")
    assert [outcome.step for outcome in outcomes] == [1, 2, 3, 4]
    assert [(left.seq, left.reason) for left in outcomes[3].evicted] == [(1, "CAPACITY")]
    assert outcomes[3].before.count == outcomes[3].after.count == 3


def test_evictions_and_clearing_keep_the_history(memory_id):
    say(memory_id, "a", "b", "c", "d")
    services.clear_messages(memory_id)
    assert [row.text for row in queries.history(memory_id).rows] == ["a", "b", "c", "d"]
    assert texts(memory_id) == []


def test_clearing_an_empty_window_is_not_a_step(memory_id):
    assert services.clear_messages(memory_id).ignored
    assert queries.memory(memory_id).last_step == 0


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


def test_a_message_keeps_the_time_at_which_it_was_said(memory_id):
    when = datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    services.add(memory_id, [NewMessage(UserMessage("x"), said_at=when)])
    assert Message.objects.get().said_at == when


def test_every_past_window_can_be_read(memory_id):
    say(memory_id, "a", "b", "c", "d")
    assert [texts(memory_id, at) for at in range(5)] == [
        [],
        ["a"],
        ["a", "b"],
        ["a", "b", "c"],
        ["b", "c", "d"],
    ]


def test_an_equal_system_message_is_not_a_step(memory_id):
    services.add(memory_id, [SystemMessage("Be brief."), SystemMessage("Be brief.")])
    assert queries.memory(memory_id).last_step == 1
    assert queries.memory(memory_id).said_count == 1


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


def test_an_equal_policy_is_not_a_step(memory_id):
    say(memory_id, "a")
    services.change(memory_id, policy=MessageWindow(3))
    assert queries.memory(memory_id).last_step == 1


def test_a_changed_policy_is_a_step_even_before_anything_was_said(memory_id):
    services.change(memory_id, policy=MessageWindow(9))
    assert queries.step(memory_id, 1).row.kind == "policy"
    say(memory_id, "a")
    assert verify(memory_id) is None


def test_a_change_without_effect_is_not_an_activity(memory_id):
    services.add(memory_id, [SystemMessage("Be brief.")])
    before = queries.memory(memory_id).updated_at
    services.add(memory_id, [SystemMessage("Be brief.")])
    services.change(memory_id, policy=MessageWindow(3), labels={})
    assert queries.memory(memory_id).updated_at == before


def test_labels_change_as_a_step(memory_id):
    say(memory_id, "a")
    services.change(memory_id, labels={"team": "support"})
    assert queries.step(memory_id, 2).row.kind == "labels"
    assert queries.memory(memory_id).labels == {"team": "support"}


def test_a_set_list_brings_back_messages_that_left(memory_id):
    say(memory_id, "a", "b", "c", "d")
    services.set_messages(memory_id, [UserMessage("a"), UserMessage("d"), UserMessage("e")])
    assert texts(memory_id) == ["a", "d", "e"]
    assert [row.text for row in queries.history(memory_id).rows] == ["a", "b", "c", "d", "e"]
    assert [stay.reason for stay in queries.message(memory_id, 1).stays] == ["CAPACITY", None]
    assert verify(memory_id) is None


def test_a_summary_before_kept_messages_is_synthetic(memory_id):
    say(memory_id, "a", "b", "c")
    services.set_messages(memory_id, [UserMessage("summary of a and b"), UserMessage("c")])
    assert texts(memory_id) == ["summary of a and b", "c"]
    assert [row.text for row in queries.history(memory_id).rows] == ["a", "b", "c"]
    assert verify(memory_id) is None


def test_messages_that_a_set_trims_are_in_the_history(memory_id):
    services.set_messages(memory_id, [UserMessage(word) for word in "abcde"])
    assert texts(memory_id) == ["c", "d", "e"]
    assert len(queries.history(memory_id).rows) == 5
    assert verify(memory_id) is None


def test_reordered_windows_can_be_read_at_every_step(memory_id):
    say(memory_id, "a", "b", "c")
    services.set_messages(memory_id, [UserMessage(word) for word in "cba"])
    assert texts(memory_id) == ["c", "b", "a"]
    assert texts(memory_id, 3) == ["a", "b", "c"]
    assert queries.memory(memory_id).said_count == 3
    assert verify(memory_id) is None


def test_a_simulation_saves_nothing(memory_id):
    say(memory_id, "a", "b", "c")
    simulation = queries.simulate(memory_id, [UserMessage("d")], MessageWindow(2))
    assert [left.seq for left in simulation.changes[0].evicted] == [1, 2]
    assert simulation.totals.count == 2
    assert queries.memory(memory_id).last_step == 3
    assert texts(memory_id) == ["a", "b", "c"]


def test_all_messages_of_an_add_are_stored_or_none(memory_id):
    with pytest.raises(UnstorableText, match="NUL"):
        say(memory_id, "fine", "not\x00fine")
    assert queries.memory(memory_id).last_step == 0
    assert not Message.objects.exists()


def test_lone_surrogates_are_refused_with_their_code_point(memory_id):
    with pytest.raises(UnstorableText, match=r"U\+D800"):
        say(memory_id, "\ud800")


def test_a_client_id_makes_a_retry_harmless(memory_id):
    once = NewMessage(UserMessage("a"), client_id="m-1")
    first, same = services.add(memory_id, [once, once])
    (again,) = services.add(memory_id, [once])
    assert (first.seq, same.seq, again.seq) == (1, 1, 1)
    assert (first.ignored, same.ignored, again.ignored) == (False, True, True)
    assert queries.memory(memory_id).last_step == 1
    with pytest.raises(DuplicateClientId, match="m-1"):
        services.add(memory_id, [NewMessage(UserMessage("b"), client_id="m-1")])


def test_a_stale_version_changes_nothing(memory_id):
    say(memory_id, "a")
    with pytest.raises(VersionConflict, match="at version 1, not 0"):
        services.add(memory_id, [UserMessage("b")], expected_version=0)
    assert texts(memory_id) == ["a"]


def test_an_add_does_not_create_a_conversation(db):
    with pytest.raises(MemoryNotFound, match="'nobody'"):
        say("nobody", "a")
    assert not Memory.objects.exists()


def test_an_id_can_be_used_once(memory_id):
    with pytest.raises(MemoryExists):
        services.create(memory_id, MessageWindow(3))


@pytest.mark.parametrize("bad", ["", "x" * 256, "nul\x00", "\ud800"])
def test_unstorable_ids_are_refused(bad):
    with pytest.raises(InvalidValue):
        services.create(bad, MessageWindow(3))


def test_deleting_erases_everything(memory_id):
    say(memory_id, "a", "b", "c", "d")
    services.delete(memory_id)
    assert not Message.objects.exists()
    assert not Step.objects.exists()
    with pytest.raises(MemoryNotFound):
        services.delete(memory_id)


def test_adding_to_a_window_without_a_policy_is_refused():
    protocol.update_messages("bare", [UserMessage("a")])
    for call in (services.add, queries.simulate):
        with pytest.raises(PolicyRequired, match="set a policy"):
            call("bare", [UserMessage("b")])
    services.change("bare", policy=MessageWindow(2))
    say("bare", "b", "c")
    assert texts("bare") == ["b", "c"]
    assert verify("bare") is None


def test_an_estimator_must_be_known(memory_id):
    with pytest.raises(UnknownEstimator, match="claude-3"):
        services.change(memory_id, policy=TokenWindow(10, estimator="claude-3"))


def test_long_conversations_keep_their_totals():
    services.create("long", TokenWindow(500))
    services.add("long", [UserMessage(f"message number {n}, said at length") for n in range(300)])
    row = queries.memory("long")
    assert row.said_count == 300
    assert row.load <= 500
    assert verify("long") is None


# The served path and the library give the same windows

words = st.text(alphabet="abc ", min_size=1, max_size=12)
incoming = st.one_of(
    st.builds(UserMessage, words),
    st.builds(SystemMessage, words.filter(lambda text: text.strip())),
    st.builds(AiMessage, words),
    st.builds(lambda: AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),))),
    st.builds(lambda: ToolExecutionResultMessage("1", "find", "found it")),
)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(incoming, min_size=1, max_size=4)),
        st.tuples(st.just("set"), st.lists(incoming, max_size=5)),
        st.tuples(st.just("clear"), st.just([])),
        st.tuples(st.just("limit"), st.integers(1, 60)),
    ),
    max_size=12,
)


@examples(60)
@given(operations, st.booleans(), st.booleans())
def test_the_services_give_the_windows_of_the_library(db, script, in_tokens, keep_first):
    Memory.objects.all().delete()
    limit = [12]
    kind = TokenWindow if in_tokens else MessageWindow

    def policy():
        return kind(limit[0], always_keep_system_message_first=keep_first)

    def asked(_):
        return limit[0]

    memory = (
        TokenWindowChatMemory("m", asked, always_keep_system_message_first=keep_first)
        if in_tokens
        else MessageWindowChatMemory("m", asked, always_keep_system_message_first=keep_first)
    )
    services.create("served", policy())
    for name, value in script:
        if name == "add":
            memory.extend(value)
            services.add("served", value)
        elif name == "set":
            memory.set(value)
            services.set_messages("served", value)
        elif name == "clear":
            memory.clear()
            services.clear_messages("served")
        else:
            limit[0] = value
            services.change("served", policy=policy())
        assert queries.window("served").messages == memory.messages()
    assert verify("served") is None


@examples(60)
@given(st.lists(st.lists(st.builds(UserMessage, st.sampled_from("abcde")), max_size=6), max_size=8))
def test_client_lists_are_returned_unchanged(db, lists):
    """Also check that every past list can be read at its step."""
    Memory.objects.all().delete()
    store = DjangoChatMemoryStore()
    seen = {}
    for messages in lists:
        store.update_messages("bare", messages)
        assert store.get_messages("bare") == messages
        seen[queries.memory("bare").last_step] = messages
    for step, messages in seen.items():
        assert queries.window("bare", step).messages == messages
    if lists:
        assert verify("bare") is None


@pytest.mark.parametrize("wrong", ["hello", UserMessage("hello"), ["hello"], [None]])
@pytest.mark.parametrize("service", [services.add, services.set_messages])
def test_what_is_no_list_of_messages_is_refused(memory_id, service, wrong):
    with pytest.raises(InvalidMessage, match="is wanted, not"):
        service(memory_id, wrong)
    assert queries.memory(memory_id).last_step == 0


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


@pytest.mark.parametrize("labels", [{1: "a"}, {"a": 1}, ["a"]])
def test_labels_that_are_not_strings_are_refused(db, labels):
    with pytest.raises(InvalidValue, match="must be"):
        services.create("a", MessageWindow(3), labels)


def test_what_is_no_policy_is_refused(db):
    with pytest.raises(InvalidValue, match=r"such as MessageWindow\(20\), not 'message_window'"):
        services.create("a", "message_window")
