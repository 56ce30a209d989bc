"""Pages of a memory that holds very many messages call no function for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatmemory import (
    AiMessage,
    ChatMessage,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionResultMessage,
    UserMessage,
    queries,
    services,
)
from chatmemory import ToolExecutionRequest as Request
from chatmemory.core.policies import KINDS
from chatmemory.models import Memory
from chatmemory.queries.glimpses import several_calls
from chatmemory.queries.windows import PLACE_COLUMNS, StoredState

from .counting_calls import CountedBuiltins, CountedCalls, CountedLines
from .long_conversations import wide_conversation
from .test_policy_kinds import FrugalWindow

FEW, MANY = 1_200, 2_400
CALLS_PER_MESSAGE = 0.3  # Django reads rows by the hundred
# What a rule of its own calls for each message that it evicts: an entry, the question whether the
# window is over the limit, its load, the head, and an eviction.
CALLS_OF_A_RULE = 5
# How often a page may go over all messages.
ROUNDS = 19
ROUNDS_UNDER_A_LOWER_LIMIT = 42
USER, RESULT = UserMessage("hello"), ToolExecutionResultMessage("id", "look", "found")
LIMITS = {"messages": (MessageWindow(10), 10), "tokens": (TokenWindow(60), 60)}


@pytest.fixture(params=["tokens", "tools"])
def kind(request, db, monkeypatch) -> str:
    """Conversations of two lengths; a lowered limit hides all of "low", and emptied "gone"."""
    monkeypatch.setattr("chatmemory.queries.keeping.READ_AT_ONCE", 10)
    kind: str = request.param
    policy, _ = LIMITS.get(kind, LIMITS["messages"])
    for messages in (FEW, MANY):
        wide = TokenWindow(10 * messages) if kind == "tokens" else None
        for name in ("wide", "low", "gone"):
            wide_conversation(f"{name}-{messages}", messages, wide, tools=kind == "tools")
        for name in ("low", "gone"):
            services.change(f"{name}-{messages}", policy=policy)
        services.add(f"gone-{messages}", [UserMessage("one more")])
    return kind


def growth(
    url: Callable[[int], str],
    client,
    counting: type[CountedCalls | CountedLines] = CountedCalls,
) -> float:
    """Return how many calls or lines more a page makes for each message more."""
    counts = []
    for messages in (FEW, MANY):  # these fill caches
        client.get(url(messages))
    for messages in (FEW, MANY):
        address = url(messages)
        with counting() as counted:
            client.get(address)
        counts.append(counted.count)
    return (counts[1] - counts[0]) / (MANY - FEW)


def test_pages_do_nothing_for_each_message(operator_client, kind):
    pages = {
        "wide": ("?msg=100", "?msg={newest}", "?at={half}&with={all}"),
        "low": ("?msg=100", "?msg={newest}"),
        "gone": ("?with={all}", "?msg=100"),
    }
    for name, asked in pages.items():
        for query in asked:

            def url(messages: int, name: str = name, query: str = query) -> str:
                numbers = {"half": messages // 2, "all": messages, "newest": messages - 9}
                return f"/c/{name}-{messages}/{query.format(**numbers)}"

            assert growth(url, operator_client) < CALLS_PER_MESSAGE, (name, query)


def test_a_simulated_lower_limit_does_nothing_for_each_message(operator_client, kind):
    _, limit = LIMITS.get(kind, LIMITS["messages"])
    for draft in ((), (UserMessage("hello"),)):

        def url(messages: int, draft: tuple[UserMessage, ...] = draft) -> str:
            key = services.keep_trial(f"wide-{messages}", draft, limit)
            return f"/c/wide-{messages}/?trial={key}"

        assert growth(url, operator_client) < CALLS_PER_MESSAGE, draft


@pytest.mark.parametrize("cleared", [False, True], ids=["set", "cleared"])
def test_the_page_of_a_step_that_changed_all_does_nothing_for_each_message(
    db, operator_client, cleared
):
    for messages in (FEW, MANY):
        name = f"set-{messages}"
        services.create(name, MessageWindow(messages))
        services.set_messages(name, [UserMessage(f"m{n}") for n in range(messages)])
        if cleared:
            services.clear_messages(name)

    def url(messages: int) -> str:
        return f"/c/set-{messages}/"

    assert growth(url, operator_client) < CALLS_PER_MESSAGE


OPTIONS = [{"snap_to_user": True}, {"low_water": 0.5}, {"oversized": "keep"}, {"pinned": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options)))
def test_options_and_pins_do_nothing_for_each_message(db, operator_client, options):
    others = {name: value for name, value in options.items() if name != "pinned"}
    for messages in (FEW, MANY):
        wide_conversation(f"low-{messages}", messages)
        if "pinned" in options:
            services.pin(f"low-{messages}", 5)
        services.change(f"low-{messages}", policy=MessageWindow(10, **others))

    def url(messages: int) -> str:
        return f"/c/low-{messages}/"

    assert growth(url, operator_client) < CALLS_PER_MESSAGE


@pytest.mark.parametrize("limit", [10, None], ids=["lower limit", "same limit"])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options)))
def test_drafts_under_options_and_pins_do_nothing_for_each_message(
    db, operator_client, options, limit
):
    others = {name: value for name, value in options.items() if name != "pinned"}
    for messages in (FEW, MANY):
        wide_conversation(f"wide-{messages}", messages, MessageWindow(messages, **others))
        if "pinned" in options:
            services.pin(f"wide-{messages}", 5)

    def url(messages: int) -> str:
        return draft_url(messages, limit)

    assert growth(url, operator_client) < CALLS_PER_MESSAGE


@pytest.mark.parametrize("draft", [SystemMessage("Be brief."), RESULT], ids=["system", "result"])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options)))
def test_other_drafts_do_nothing_for_each_message(db, operator_client, options, draft):
    others = {name: value for name, value in options.items() if name != "pinned"}
    for messages in (FEW, MANY):
        wide_conversation(f"wide-{messages}", messages, MessageWindow(messages, **others), True)
        if "pinned" in options:
            services.pin(f"wide-{messages}", 5)
    for limit in (10, None):

        def url(messages: int, limit: int | None = limit) -> str:
            return draft_url(messages, limit, draft)

        assert growth(url, operator_client) < CALLS_PER_MESSAGE, limit


def test_a_later_draft_without_room_does_nothing_for_each_message(db, operator_client):
    drafts = [USER, UserMessage("one"), UserMessage("two"), UserMessage("three")]
    for messages in (FEW, MANY):
        wide_conversation(f"wide-{messages}", messages, MessageWindow(messages + 2, low_water=0.5))

    def url(messages: int) -> str:
        return f"/c/wide-{messages}/?trial={services.keep_trial(f'wide-{messages}', drafts)}"

    assert growth(url, operator_client) < CALLS_PER_MESSAGE


def test_a_draft_goes_over_all_messages_a_bounded_number_of_times(db, operator_client):
    for messages in (FEW, MANY):
        wide_conversation(f"wide-{messages}", messages)
    for limit, rounds in ((None, ROUNDS), (10, ROUNDS_UNDER_A_LOWER_LIMIT)):

        def url(messages: int, limit: int | None = limit) -> str:
            return draft_url(messages, limit)

        assert growth(url, operator_client, CountedLines) < rounds, limit


def test_a_page_with_a_draft_reads_nothing_twice(db, operator_client):
    wide_conversation("wide-100", 100)
    for limit in (None, 10):
        address = draft_url(100, limit)
        with CaptureQueriesContext(connection) as asked:
            operator_client.get(address)
        statements = [query["sql"] for query in asked]
        assert sorted(statements) == sorted(set(statements)), limit


def draft_url(messages: int, limit: int | None = None, draft: ChatMessage = USER) -> str:
    key = services.keep_trial(f"wide-{messages}", [draft], limit)
    return f"/c/wide-{messages}/?trial={key}"


def test_only_messages_that_may_have_several_calls_are_read(db):
    entries = [None, Request(), Request("1", "look", '{"a": [{}, {"b": null}]}'), Request("},{")]
    lists = [each for n in (1, 2, 3) for each in product(entries, repeat=n)]
    services.import_conversation(
        "calls", [AiMessage("said [null", each) for each in lists], MessageWindow(100)
    )
    rows = queries.outline("calls").rows
    found = several_calls("calls", rows)
    assert [found.get(row.seq, 1) for row in rows] == [len(each) for each in lists]
    wide_conversation("single", 100, tools=True)
    assert several_calls("single", queries.outline("single").rows) == {}


def test_a_compared_window_is_read_as_numbers(operator_client, kind):
    """They are those of the whole window, also where a lowered limit hides some."""
    for name in ("wide", "low", "gone"):
        memory = Memory.objects.get(pk=f"{name}-{FEW}")
        for step in (FEW // 2, FEW, memory.last_step):
            seen = StoredState(memory, step).seen()
            window = queries.outline(memory.pk, step)
            assert sorted(seen.seqs) == sorted(window.seqs)
            assert (seen.step, seen.policy, seen.totals) == (step, window.policy, window.totals)


def test_no_built_in_function_is_called_for_each_message(db, operator_client, monkeypatch):
    monkeypatch.setattr("chatmemory.queries.considered.MENTIONS_MAX", 20)
    monkeypatch.setattr("chatmemory.queries.considered.ASKED_ONE_BY_ONE", 100)
    for messages in (FEW, MANY):
        for name in ("wide", "low", "gone"):
            wide_conversation(f"{name}-{messages}", messages)
        for name in ("low", "gone"):
            services.change(f"{name}-{messages}", policy=MessageWindow(10))
        services.add(f"gone-{messages}", [UserMessage("m")])
    for name, query in product(("wide", "low", "gone"), ("", "?find=m")):

        def url(messages: int, name: str = name, query: str = query) -> str:
            return f"/c/{name}-{messages}/{query}"

        for counting in (CountedCalls, CountedBuiltins):
            assert growth(url, operator_client, counting) < CALLS_PER_MESSAGE, (name, query)

    assert growth(draft_url, operator_client, CountedBuiltins) < CALLS_PER_MESSAGE


@pytest.fixture
def own_rule(db) -> Iterator[None]:
    KINDS.register(FrugalWindow.kind, FrugalWindow)
    yield
    KINDS.unregister(FrugalWindow.kind)


@pytest.mark.parametrize("tools", [False, True], ids=["texts", "tools"])
@pytest.mark.parametrize(
    ("query", "times"),
    [("", 1), ("?with={last}", 1), ("?with={before}", 2), ("?trial={draft}", 1)],
    ids=["page", "same policy", "other policy", "draft"],
)
def test_a_rule_of_its_own_decides_once_for_each_policy(
    own_rule, operator_client, monkeypatch, tools, query, times
):
    monkeypatch.setattr("chatmemory.core.trimming.FEW", 10)
    for messages in (FEW, MANY):
        wide_conversation(f"own-{messages}", messages, FrugalWindow(40 * messages), tools)
        for limit in (200, 190):
            services.change(f"own-{messages}", policy=FrugalWindow(limit))

    def url(messages: int) -> str:
        draft = services.keep_trial(f"own-{messages}", [USER]) if "draft" in query else ""
        steps = {"last": messages + 2, "before": messages + 1}
        return f"/c/own-{messages}/{query.format(draft=draft, **steps)}"

    allowed = times * CALLS_OF_A_RULE + CALLS_PER_MESSAGE
    assert growth(url, operator_client) < allowed


def test_a_page_reads_its_window_once(db, operator_client, monkeypatch):
    """Not again to search it, nor for a step with which it is compared if that had the same."""
    monkeypatch.setattr("chatmemory.queries.considered.MENTIONS_MAX", 20)
    wide_conversation("low", 100)
    for limit in (10, 9):
        services.change("low", policy=MessageWindow(limit))
    reads = []
    for query in ("", "?find=m", "?with=101"):
        with CaptureQueriesContext(connection) as asked:
            operator_client.get(f"/c/low/{query}")
        windows = [each["sql"] for each in asked if '"left_step" IS NULL' in each["sql"]]
        reads.append(len(windows))
    assert reads == [1, 1, 1]


def test_what_two_steps_have_in_common_is_what_each_has(own_rule):
    services.create("m", MessageWindow(20))
    services.add("m", [SystemMessage("s"), *[UserMessage(f"{n}") for n in range(8)]])
    for policy in (MessageWindow(5), MessageWindow(4), FrugalWindow(60), FrugalWindow(60)):
        services.change("m", policy=policy, labels={"n": str(policy.limit)})
    services.pin("m", 4)
    services.change("m", policy=MessageWindow(5))
    services.add("m", [UserMessage("one more")])
    services.set_messages("m", [UserMessage("7"), UserMessage("new")])
    services.change("m", policy=FrugalWindow(1))
    services.clear_messages("m")
    memory = Memory.objects.get(pk="m")
    for at, other in product(range(memory.last_step + 1), repeat=2):
        alone = StoredState(memory, other)
        beside = StoredState(memory, other, StoredState(memory, at))
        assert beside.places == alone.places
        assert beside.window == alone.window
        seen, read = beside.seen(), alone.seen()
        assert (sorted(seen.seqs), seen.totals) == (sorted(read.seqs), read.totals)
        assert (seen.step, seen.policy) == (read.step, read.policy)


def test_places_are_converted_neither_by_the_driver_nor_by_django(db):
    wide_conversation("wide", 300, tools=True)
    state = StoredState.of("wide")
    columns = state.places.columns
    assert {type(value) for row in columns for value in row} == {int, str}
    assert columns == list(state.stays.values_list(*PLACE_COLUMNS))
