"""The linter for messages: finds what a provider would reject or mishandle, before a request is
sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from chatmemory.exceptions import InvalidValue
from chatmemory.lint import PROVIDERS, Finding, ProviderWindow, Turn, findings_in
from chatmemory.lint.repairs import REPAIRS, Bench, BenchMessage, Repaired
from chatmemory.lint.rules import Example
from chatmemory.lint.turns import OPENAI
from chatmemory.messages.json_values import JsonMap, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    MessageType,
    ToolExecutionResultMessage,
    chat_messages,
    text_of,
)

# For each provider, the format of its messages, and the types of calls and results of tools that
# the client runs. Calls of other types run at the provider.
FORMATS_OF = {
    "openai": "openai_chat",
    "openai_responses": "openai_responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "mistral": "openai_chat",
    "bedrock": "openai_chat",
    "deepseek": "openai_chat",
}
LINE = 300  # characters of a line of an outline
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
    model: str | None = None,
    numbers: Sequence[int] | None = None,
) -> list[Finding]:
    """Return the reasons why a provider would reject or mishandle a window, ordered by message.

    - `provider`: "openai" (chat completions), "openai_responses", "anthropic", "gemini", "mistral",
      "bedrock" (Converse) or "deepseek".
    - `model`: the name of the model. Without a name, or with an unknown name, a finding that
      depends on the model is `conditional`.
    - `numbers`: the numbers by which findings name the messages; 1, 2, 3… by default.

    Raises InvalidMessage for an item that is not a message, and InvalidValue for an unknown
    provider.
    """
    return findings_in(turns_of(messages, provider, numbers), provider, model)


def repair(
    messages: Sequence[ChatMessage],
    *,
    provider: str,
    model: str | None = None,
    numbers: Sequence[int] | None = None,
) -> Repaired:
    """Repair a window so that a provider accepts it. Returns the new window, the changes that were
    made, and the remaining findings. A window without findings stays unchanged.

    - If the provider takes system messages outside the list of messages, they move to the beginning
      of the window. In this case, only the first of several system messages with the same text
      stays.
    - A tool result without a tool call, and a second result of a tool call, are left out.
    - A tool result that does not follow its tool call is moved directly after the tool call.
    - A tool call without a result gets a placeholder as its result.
    - Messages before the first user message are left out if the provider rejects them. System
      messages stay.

    Takes the arguments of `lint`. Raises the same exceptions as `lint`.
    """
    window = chat_messages(messages)
    shown = range(1, len(window) + 1) if numbers is None else numbers
    bench = Bench(
        [BenchMessage(*each) for each in zip(window, shown, range(len(window)), strict=True)]
    )
    for apply in REPAIRS:
        apply(ProviderWindow(turns_of(bench.messages, provider, bench.numbers), provider), bench)
    left = lint(bench.messages, provider=provider, model=model, numbers=bench.numbers)
    return Repaired(bench.messages, [place.source for place in bench.places], bench.done, left)


def waiting_call(messages: Sequence[ChatMessage]) -> int | None:
    """Return the index of the AI message whose tool calls still wait for results at the end of a
    window. Only tool results follow this message. None if there is no such message.
    """
    return waiting_turn(turns_of(messages, OPENAI))


def waiting_turn(turns: Iterable[Turn]) -> int | None:
    """Return the index of the AI message whose tool calls still wait for results at the end of a
    window. Only tool results follow this message. None if there is no such message.

    Each `Turn` is one message.
    """
    dangling = ProviderWindow(turns, OPENAI).pairing.dangling
    return next((each.call.position for each in dangling if each.before is None), None)


def example(window: Example, provider: str) -> list[ChatMessage]:
    """Return the messages of a rule's example window. Items that are not messages are read as JSON
    in the provider's format.
    """
    values = [each for each in window if not isinstance(each, ChatMessage)]
    if values:
        from chatmemory.formats import parse_messages  # its modules load on use

        return list(parse_messages(values, FORMATS_OF[provider]).messages)
    return [each for each in window if isinstance(each, ChatMessage)]


def outline(messages: Sequence[ChatMessage], provider: str) -> list[str]:
    """Return lines of text that show a window, such as the example of a rule. Each message takes
    one or more lines. Lines of more than 300 characters are cut.
    """
    lines = [line for turn in turns_of(messages, provider) for line in _lines(turn)]
    return [line if len(line) <= LINE else f"{line[:LINE]}…" for line in lines]


def _lines(turn: Turn) -> list[str]:
    if turn.own:
        return [json.dumps(value) for value in turn.own]
    match turn.message:
        case AiMessage(text=text, tool_execution_requests=()):
            return [f"AI: {text}" if text else f"AI: {json.dumps(text)}"]
        case AiMessage(tool_execution_requests=calls):
            call_words = [
                f"{call.name}({call.arguments}) with {_id(call.id)}" for call in calls if call
            ]
            return [f"AI calls {' and '.join(call_words)}"]
        case ToolExecutionResultMessage(id=id) as result:
            return [f"Result with {_id(id)}: {text_of(result)}"]
        case ChatMessage() as message:
            return [f"{message.type.title()}: {text_of(message)}"]
    return []


def _id(id: str | None) -> str:
    return f"id {id}" if id else "no id"


# Messages as a provider receives them


def turns_of(
    messages: Sequence[ChatMessage], provider: str, numbers: Sequence[int] | None = None
) -> list[Turn]:
    """Return the messages as `Turn` objects, the form in which the linter checks messages for this
    provider. Raises the same exceptions as `lint`.
    """
    if provider not in PROVIDERS:
        raise InvalidValue(f"unknown provider {provider!r}: use one of {', '.join(PROVIDERS)}")
    window = chat_messages(messages)
    shown = range(1, len(window) + 1) if numbers is None else numbers
    return [
        _turn(position, number, message, FORMATS_OF[provider])
        for position, (number, message) in enumerate(zip(shown, window, strict=True))
    ]


def turns_by_provider(
    messages: Sequence[ChatMessage],
    providers: Iterable[str],
    numbers: Sequence[int] | None = None,
) -> dict[str, list[Turn]]:
    """Return, for each provider, the messages as `Turn` objects (see `turns_of`). Providers with
    the same format share one list.
    """
    names = list(providers)
    of_format = {FORMATS_OF.get(name): name for name in names}
    turns = {format: turns_of(messages, name, numbers) for format, name in of_format.items()}
    return {name: turns[FORMATS_OF.get(name)] for name in names}


def _turn(position: int, number: int, message: ChatMessage, format: str) -> Turn:
    turn = Turn.of(position, number, message)._replace(
        message=message, values=_values(message, format)
    )
    own = _own_json(message, format)
    if not own:
        return turn
    turn = turn._replace(is_own="differs" in own, continues=_continues(own))
    if isinstance(message, AiMessage):
        joins = own.get("joins") is True
        return turn._replace(optional=_optional(turn.calls, own), joins=joins)
    if isinstance(message, ToolExecutionResultMessage) and _runs_at_provider(_type_of(own)):
        return turn._replace(type=MessageType.AI, joins=True)  # within the answer that called
    return turn


def _continues(own: JsonMap) -> bool:
    """Return whether a request continued a response or conversation that OpenAI has stored."""
    about = own.get("response")
    names = ("previous_response_id", "conversation")
    return isinstance(about, Mapping) and any(about.get(name) for name in names)


def _values(message: ChatMessage, format: str) -> tuple[JsonMap, ...]:
    """Return a message as JSON values of a format, including values outside the list of messages,
    such as a system prompt.
    """
    from chatmemory.formats import render_each

    rendering = render_each([message], format)
    values = tuple(rendering.values)
    return (*values, rendering.beside) if rendering.beside else values


def _own_json(message: ChatMessage, format: str) -> JsonMap:
    own = getattr(message, "attributes", {}).get(format)
    return own if own and isinstance(own, Mapping) else {}


def _optional(ids: Sequence[str | None], own: JsonMap) -> frozenset[str | None]:
    """Return the ids of the tool calls that need no result from the client, because the tool runs
    at the provider.
    """
    types = own.get("types")
    if isinstance(types, list) and len(types) == len(ids):
        types = dict(zip(ids, types, strict=True))
    if not isinstance(types, Mapping):
        return frozenset()
    return frozenset(id for id in ids if id is not None and _runs_at_provider(types.get(id)))


def _type_of(own: JsonMap) -> JsonValue:
    types = own.get("types")
    return types[0] if isinstance(types, list) and types else own.get("type")


def _runs_at_provider(type: JsonValue) -> bool:
    return isinstance(type, str) and type not in _OF_CLIENTS
