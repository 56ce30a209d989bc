"""Pages of a memory that holds very many messages call no function for each of them.

Calls are counted, not seconds: what grows with every message is seen at some hundreds already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import CO_GENERATOR
from types import FrameType

import pytest

from chatmemory import MessageWindow, TokenWindow, UserMessage, services

from .long_conversations import wide_conversation

FEW, MANY = 1_200, 2_400
# Django reads rows by the hundred. Of a tool call, the JSON is read as well.
CALLS_PER_MESSAGE = 0.3
CALLS_PER_TOOL_CALL = 6
LIMITS = {"messages": (MessageWindow(10), 10), "tokens": (TokenWindow(60), 60)}


def calls(call: Callable[[], object]) -> int:
    """Return how many functions are called; generators that go on are none."""
    count = 0

    def called(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call" and not frame.f_code.co_flags & CO_GENERATOR

    sys.setprofile(called)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


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


def growth(url: Callable[[int], str], client) -> float:
    """Return how many calls more a page makes for each message more."""
    counts = []
    for messages in (FEW, MANY, FEW, MANY):  # the first two fill caches
        address = url(messages)
        counts.append(calls(lambda address=address: client.get(address)))
    return (counts[3] - counts[2]) / (MANY - FEW)


def allowed(kind: str) -> float:
    tool_calls = 0.5 if kind == "tools" else 0
    return CALLS_PER_MESSAGE + tool_calls * CALLS_PER_TOOL_CALL


def test_pages_do_nothing_for_each_message(operator_client, kind):
    pages = {
        "wide": ("?msg=100", "?at={half}&with={all}"),
        "low": ("?msg=100",),
        "gone": ("?with={all}", "?msg=100"),
    }
    for name, queries in pages.items():
        for query in queries:

            def url(messages: int, name: str = name, query: str = query) -> str:
                numbers = {"half": messages // 2, "all": messages}
                return f"/c/{name}-{messages}/{query.format(**numbers)}"

            assert growth(url, operator_client) < allowed(kind), (name, query)


def test_a_simulated_lower_limit_does_nothing_for_each_message(operator_client, kind):
    _, limit = LIMITS.get(kind, LIMITS["messages"])
    for draft in ((), (UserMessage("hello"),)):

        def url(messages: int, draft: tuple[UserMessage, ...] = draft) -> str:
            key = services.keep_trial(f"wide-{messages}", draft, limit)
            return f"/c/wide-{messages}/?trial={key}"

        assert growth(url, operator_client) < allowed(kind), draft
