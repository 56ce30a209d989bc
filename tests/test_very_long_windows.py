"""Pages of a memory that holds very many messages call no function for each of them."""

from __future__ import annotations

from collections.abc import Callable
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
from chatmemory.models import Memory
from chatmemory.queries.windows import StoredState, several_calls

from .counting_calls import CountedCalls, CountedLines
from .long_conversations import wide_conversation

FEW, MANY = 1_200, 2_400
CALLS_PER_MESSAGE = 0.3  # Django reads rows by the hundred
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


def draft_url(messages: int, limit: int | None, draft: ChatMessage = USER) -> str:
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
