"""The tool with which agents read the model calls of a conversation."""

from __future__ import annotations

import json

from chatmemory.reading import conversations
from inspector.rooms.calls.api import CallSerializer
from inspector.rooms.calls.models import ModelCall
from inspector.rooms.calls.page import CallPage
from inspector.rooms.calls.reads import RebuiltCall, call_compared_with, newest_calls, one_call
from inspector.shell.agents import SIZE, Agent, Answer, short


def calls(agent: Agent, conversation: str, call: int | None = None) -> Answer:
    """Show what a model was given: the newest calls of a conversation, or call number `call`.

    Each call has its input tokens and its cached input tokens. `is_broken` is true if the prompt
    does not start with the whole previous prompt. With `call`, the answer also has the tokens of
    the prompt by category, such as tools and tool results. It names the tools that the model never
    called, and quotes the beginning of the request.
    """
    memory_id = agent.visible(conversation)
    if call is not None:
        return _one(agent, memory_id, call)
    conversations.memory(memory_id)  # raises MemoryNotFound
    rows = newest_calls(memory_id, SIZE)
    return Answer(
        [*map(line_of, rows)] or ["No model call of this conversation was recorded."],
        agent.page("calls", memory_id),
        calls=[_values(each) for each in rows],
    )


def _one(agent: Agent, memory_id: str, n: int) -> Answer:
    found = one_call(memory_id, n)
    before = call_compared_with(found.row)
    page = CallPage(found, RebuiltCall(before) if before else None, None)
    words = [line_of(found.row), f"By our count: {page.words}."]
    if page.broke_after:
        words.append(f"The prefix shared with call {before.n} ended {page.broke_after}.")  # type: ignore[union-attr]  # a call with a break has one before it
    if page.idle:
        names = ", ".join(each.name for each in page.idle[:SIZE])
        words.append(
            f"Tools without a call so far, {page.idle_tokens:,} tokens in each request: "
            f"{short(names)}"
        )
    return Answer(
        words,
        agent.page("call", memory_id, str(n)),
        **_values(found.row),
        tokens=dict(page.sums),
        request=short(json.dumps(found.request)),
    )


def line_of(call: ModelCall) -> str:
    """Describe a model call in one line: number, time, model, tokens, prefix change and error."""
    parts = [f"Call {call.n:,}", f"{call.at:%Y-%m-%d %H:%M:%S}", call.model or "unknown model"]
    if call.input is not None:
        parts.append(f"{call.input:,} input tokens, {call.cached or 0:,} of them cached")
    if call.output is not None:
        parts.append(f"{call.output:,} output tokens")
    if call.is_broken:
        parts.append(f"prefix changed, {call.again:,} tokens resent")
    if call.error:
        parts.append(f"failed: {short(call.error)}")
    return ", ".join(parts)


def _values(call: ModelCall) -> dict[str, object]:
    """Return a call with the fields of the API, and a comparison with the previous call."""
    error = short(call.error) or None
    is_broken, again = call.is_broken, call.again
    return {**CallSerializer(call).data, "error": error, "is_broken": is_broken, "again": again}
