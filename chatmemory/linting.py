"""The linter for messages: what a provider would refuse or mishandle, before it is asked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.given import chat_messages
from chatmemory.core.lint import PROVIDERS, Finding, Sent, Turn, findings_in
from chatmemory.core.lint.repairs import REPAIRS, Bench, Place, Repaired
from chatmemory.core.lint.turns import OPENAI
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    MessageType,
    ToolExecutionResultMessage,
    text_of,
)
from chatmemory.formats import render_each

# The format in which a provider gets messages, and the calls and results of tools that run
# elsewhere: those of other types run at the provider.
FORMATS_OF = {
    "openai": "openai_chat",
    "openai_responses": "openai_responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
}
_OF_CLIENTS = {
    *("tool_use", "tool_result", "functionCall", "functionResponse"),
    *("function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call"),
    *("apply_patch_call", "function_call_output", "custom_tool_call_output"),
    *("computer_call_output", "local_shell_call_output", "shell_call_output"),
    *("apply_patch_call_output",),
}


def lint(
    messages: Sequence[ChatMessage],
    *,
    provider: str,
    numbers: Sequence[int] | None = None,
) -> list[Finding]:
    """Return what a provider would refuse or mishandle in a window, in its order.

    `provider` is "openai" (chat completions), "openai_responses", "anthropic" or "gemini". The
    findings call messages by their `numbers`, from 1 where none are given. Raises InvalidMessage
    for what is no message, and InvalidValue for another provider.
    """
    return findings_in(turns_of(messages, provider, numbers), provider)


def repair(
    messages: Sequence[ChatMessage],
    *,
    provider: str,
    numbers: Sequence[int] | None = None,
) -> Repaired:
    """Return a window that a provider takes, what was done for that, and what remains.

    System messages go first where they must; a result without its call and one of two results are
    left out; a result that stands elsewhere goes behind its call; a call without a result gets a
    placeholder. A clean window stays as it is, and so does the order of all others. Raises as
    `lint` does.
    """
    said = chat_messages(messages)
    shown = range(1, len(said) + 1) if numbers is None else numbers
    bench = Bench([Place(*each) for each in zip(said, shown, range(len(said)), strict=True)])
    for mend in REPAIRS:
        mend(Sent(turns_of(bench.messages, provider, bench.numbers), provider), bench)
    left = lint(bench.messages, provider=provider, numbers=bench.numbers)
    return Repaired(bench.messages, [place.source for place in bench.places], bench.done, left)


def waiting_call(messages: Sequence[ChatMessage]) -> int | None:
    """Return the index of the tool call that awaits results at the end of a window, or None."""
    return waiting_turn(turns_of(messages, OPENAI))


def waiting_turn(turns: Iterable[Turn]) -> int | None:
    """Return the position of the turn whose calls await results at the end of a window, or None."""
    dangling = Sent(turns, OPENAI).pairing.dangling
    return next((each.call.position for each in dangling if each.before is None), None)


def outline(messages: Sequence[ChatMessage], provider: str) -> list[str]:
    """Return a line for each message of a small window, such as an example of a rule.

    A message that keeps what only the provider's format can say is its JSON.
    """
    return [line for turn in turns_of(messages, provider) for line in _lines(turn)]


def _lines(turn: Turn) -> list[str]:
    if turn.own:
        return [json.dumps(value) for value in turn.own]
    match turn.message:
        case AiMessage(text=text, tool_execution_requests=()):
            return [f"AI: {text}" if text else f"AI: {json.dumps(text)}"]
        case AiMessage(tool_execution_requests=calls):
            made = [f"{call.name}({call.arguments}) with {_id(call.id)}" for call in calls if call]
            return [f"AI calls {' and '.join(made)}"]
        case ToolExecutionResultMessage(id=id) as result:
            return [f"Result with {_id(id)}: {text_of(result)}"]
        case ChatMessage() as message:
            return [f"{message.type.title()}: {text_of(message)}"]
    return []


def _id(id: str | None) -> str:
    return f"id {id}" if id else "no id"


# Messages as a provider gets them


def turns_of(
    messages: Sequence[ChatMessage], provider: str, numbers: Sequence[int] | None = None
) -> list[Turn]:
    """Return the turns of messages as a provider gets them. Raises as `lint` does."""
    if provider not in PROVIDERS:
        raise InvalidValue(f"unknown provider {provider!r}: one of {', '.join(PROVIDERS)}")
    said = chat_messages(messages)
    shown = range(1, len(said) + 1) if numbers is None else numbers
    return [
        _turn(position, number, message, FORMATS_OF[provider])
        for position, (number, message) in enumerate(zip(shown, said, strict=True))
    ]


def _turn(position: int, number: int, message: ChatMessage, format: str) -> Turn:
    turn = Turn.of(position, number, message)
    own = _kept(message, format)
    values = tuple(render_each([message], format).values) if "differs" in own else ()
    turn = turn._replace(message=message, own=values)
    if isinstance(message, AiMessage):
        joins = own.get("joins") is True
        return turn._replace(optional=_optional(turn.calls, own), joins=joins)
    if isinstance(message, ToolExecutionResultMessage) and _is_of_provider(_type_of(own)):
        return turn._replace(type=MessageType.AI, joins=True)  # within the answer that called
    return turn


def _kept(message: ChatMessage, format: str) -> Mapping[str, Any]:
    own = getattr(message, "attributes", {}).get(format)
    return own if isinstance(own, Mapping) else {}


def _optional(ids: Sequence[str | None], own: Mapping[str, Any]) -> frozenset[str | None]:
    """Return the ids of calls that the client need not answer: the tool runs at the provider."""
    types = own.get("types")
    if isinstance(types, list) and len(types) == len(ids):
        types = dict(zip(ids, types, strict=True))
    if not isinstance(types, Mapping):
        return frozenset()
    return frozenset(id for id in ids if id is not None and _is_of_provider(types.get(id)))


def _type_of(own: Mapping[str, Any]) -> Any:
    types = own.get("types")
    return types[0] if isinstance(types, list) and types else own.get("type")


def _is_of_provider(type: Any) -> bool:
    return isinstance(type, str) and type not in _OF_CLIENTS
