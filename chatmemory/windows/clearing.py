"""Clears old tool results of a full window, if the policy says so. Messages are evicted only if
this does not make enough room.

A cleared tool result is replaced by a short placeholder, so that its tool call still has a result.
The newest results, short results and pinned results stay whole. Source of the rule: Anthropic's
context editing (clear_tool_uses_20250919).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from chatmemory.exceptions import InvalidMessage
from chatmemory.messages.message import (
    ChatMessage,
    MessageType,
    ToolExecutionResultMessage,
    text_of,
)
from chatmemory.messages.tombstones import is_tombstone
from chatmemory.windows.eviction import Eviction, Reason
from chatmemory.windows.policies import Policy
from chatmemory.windows.transitions import (
    Change,
    Transition,
    leaving_interrupted,
    totals_under,
    unchanged,
)
from chatmemory.windows.window import Entry, Window

STUB = "[old tool result, cleared to make room]"
SHORT = 20  # tokens; a stub would hardly be smaller
_RESULT = MessageType.TOOL_EXECUTION_RESULT


def stub_of(message: ChatMessage, text: str = STUB) -> ChatMessage:
    """Return the placeholder of a tool result: a result of the same tool call, with `text` instead
    of the original text. A redacted result keeps its text, such as `[redacted #12]` for message 12.

    Raises InvalidMessage for a message that is not a tool result.
    """
    if not isinstance(message, ToolExecutionResultMessage):
        raise InvalidMessage("only a tool result can be replaced by a placeholder (a stub)")
    said = text_of(message)
    text = said if is_tombstone(said) else text
    return ToolExecutionResultMessage(message.id, message.tool_name, text, message.is_error)


def clear_for(
    window: Window, arrival: Entry, policy: Policy, count: Callable[[ChatMessage], int]
) -> Transition:
    """Return the transition that clears old tool results to make room for an arriving message.

    The transition changes nothing if there is room already, or if no result can be cleared. `count`
    returns the tokens of a placeholder message.
    """
    keep = policy.whole_results
    if not keep or policy.meters_only:
        return _nothing(window, policy)
    gone = leaving_interrupted(window, arrival, policy)
    totals = totals_under(policy, window).without(policy.total(gone))
    if not policy.is_exceeded_by(totals.plus(arrival, policy.weigh(arrival))):
        return _nothing(window, policy)
    remaining = (entry for entry in window if entry not in gone)
    old = set(old_results(remaining, keep - (arrival.type is _RESULT)))
    if not old:
        return _nothing(window, policy)
    loaded = {entry: entry.message for entry in window.with_messages() if entry in old}
    stubs = {
        entry: _stub(entry, stub_of(message), count)
        for entry, message in loaded.items()
        if message is not None
    }
    return cleared(window, stubs, policy)


def _nothing(window: Window, policy: Policy) -> Transition:
    return unchanged(window, policy)._replace(change=Change.CLEAR_RESULTS)


def _stub(entry: Entry, message: ChatMessage, count: Callable[[ChatMessage], int]) -> Entry:
    return replace(entry, message=message, tokens=count(message), key=object(), is_stub=True)


def old_results(entries: Iterable[Entry], keep: int) -> Sequence[Entry]:
    """Return the tool results that can be cleared if the newest `keep` results stay whole. Short,
    pinned and already cleared results are left out.
    """
    results = [entry for entry in entries if entry.type is _RESULT]
    old = results[: max(0, len(results) - keep)]
    return [e for e in old if e.tokens > SHORT and not e.pinned and not e.is_stub]


def cleared(window: Window, stubs: Mapping[Entry, Entry], policy: Policy | None) -> Transition:
    """Return the transition that replaces tool results by placeholders. `stubs` maps the entry of
    each result to the entry of its placeholder.
    """
    entries = window.with_system_messages()
    before = after = totals_under(policy, window)
    for entry, stub in stubs.items():
        costs = (policy.weigh(entry), policy.weigh(stub)) if policy else (0, 0)
        after = after.minus(entry, costs[0]).plus(stub, costs[1])
    return Transition(
        Change.CLEAR_RESULTS,
        before=before,
        after=after,
        policy=policy,
        policy_before=policy,
        arrivals=tuple(stubs.get(each, each) for each in entries),
        evictions=tuple(Eviction(each, Reason.STUBBED, stub) for each, stub in stubs.items()),
    )
