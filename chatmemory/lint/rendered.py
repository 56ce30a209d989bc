"""Checks of provider rules. These checks read the JSON as it is sent to the provider.

Checks of a single field are in the module `limits`.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from mimetypes import guess_type

from chatmemory.exceptions import UnknownEstimator
from chatmemory.known_models import known_model, known_models
from chatmemory.lint.rules import Fault
from chatmemory.lint.turns import ProviderWindow, Turn
from chatmemory.messages.estimators import count_tokens
from chatmemory.messages.estimators.openai import OpenAiTokenCountEstimator
from chatmemory.messages.json_values import JsonList, JsonMap, JsonValue
from chatmemory.messages.message import AiMessage, ChatMessage, MessageType, UserMessage, text_of

_AI, _USER = MessageType.AI, MessageType.USER

# Blocks of Anthropic, and parts of Gemini


def _blocks(turn: Turn, *types: str) -> Iterator[JsonMap]:
    """Yield the blocks of a turn that have one of these types."""
    for value in turn.values:
        for block in _list_in(value, "content"):
            if isinstance(block, Mapping) and block.get("type") in types:
                yield block


def _nested(value: JsonValue) -> Iterator[JsonMap]:
    """Yield the blocks of a message, and the blocks within them."""
    for name in ("content", "system"):
        for block in _list_in(value, name):
            if isinstance(block, Mapping):
                yield block
                yield from _nested(block)


def _list_in(value: JsonValue, name: str) -> JsonList:
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, list) else []


def blank_text(sent: ProviderWindow) -> Iterator[Fault]:
    """Find messages with text parts that a provider rejects beside other content:

    - an empty text beside another text
    - a blank text beside other content without text, such as an image

    White space beside another text is accepted (https://github.com/LibreChat-AI/agents/pull/124).
    """
    for turn in sent.turns:
        texts = [
            text for each in _blocks(turn, "text") if isinstance(text := each.get("text"), str)
        ]
        is_alone = isinstance(turn.message, UserMessage) and not text_of(turn.message).strip()
        is_blank = bool(texts) and not any(text.strip() for text in texts)
        if (is_blank and not is_alone) or ("" in texts and not is_blank):
            how = "an empty" if "" in texts else "a blank"
            yield Fault([turn], f"Message {turn.name} has {how} text part beside other content.")


def blanks_at_the_end(sent: ProviderWindow) -> Iterator[Fault]:
    """Find the last message of the window if it is from the assistant, has no tool calls, and ends
    with white space.
    """
    last = _last_answer(sent)
    text = _last_text(last) if last else ""
    if last and text and text != text.rstrip():
        what = f"The last message, {last.name}, ends with a space."
        yield Fault([last], what, is_pending=True)


def answer_at_the_end(sent: ProviderWindow) -> Iterator[Fault]:
    """Find the last message of the window if it is from the assistant and has no tool calls. The
    model would continue this message (a prefill).
    """
    if last := _last_answer(sent):
        what = f"The last message, {last.name}, is from the assistant (a prefill)."
        yield Fault([last], what, is_pending=True)


def _last_answer(sent: ProviderWindow) -> Turn | None:
    """Return the last message of the provider's list if the assistant wrote it and it calls no
    tool, else None.
    """
    last = sent.listed[-1] if sent.listed else None
    is_answer = last is not None and last.type is _AI and not last.calls and last.message
    return last if is_answer else None


def _last_text(turn: Turn) -> str:
    content = turn.values[-1].get("content") if turn.values else None
    last = content[-1] if isinstance(content, list) and content else content
    text = last.get("text") if isinstance(last, Mapping) else last
    return text if isinstance(text, str) else ""


def empty_error(sent: ProviderWindow) -> Iterator[Fault]:
    for turn in sent.turns:
        for block in _blocks(turn, "tool_result"):
            if block.get("is_error") is True and not _says(block.get("content")):
                yield Fault([turn], f"Tool result {turn.name} reports an error without content.")
                break


def _says(content: JsonValue) -> bool:
    """Return whether a content has anything but empty texts."""
    if not isinstance(content, list):
        return bool(content)
    return any(not isinstance(each, Mapping) or each.get("text") != "" for each in content)


_MOST_MARKS, _MOST_IMAGES = 4, 100


def many_marks(sent: ProviderWindow) -> Iterator[Fault]:
    marked = [turn for turn, block in _all_blocks(sent) if block.get("cache_control")]
    if len(marked) > _MOST_MARKS:
        what = f"{len(marked):,} blocks have cache_control, but the maximum is {_MOST_MARKS}."
        yield Fault(_once(marked), what, {"length": len(marked)})


def many_images(sent: ProviderWindow) -> Iterator[Fault]:
    shown = [turn for turn, block in _all_blocks(sent) if block.get("type") == "image"]
    if len(shown) > _MOST_IMAGES:
        what = f"There are {len(shown):,} images, but the maximum is {_MOST_IMAGES}."
        yield Fault(_once(shown), what, {"length": len(shown)})


def _all_blocks(sent: ProviderWindow) -> Iterator[tuple[Turn, JsonMap]]:
    for turn in sent.turns:
        for value in turn.values:
            for block in _nested(value):
                yield turn, block


def _once(turns: list[Turn]) -> list[Turn]:
    """Return the first and the last of the turns."""
    return [turns[0]] if turns[0] is turns[-1] else [turns[0], turns[-1]]


_BEGINNINGS = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


def other_media_type(sent: ProviderWindow) -> Iterator[Fault]:
    """Find images whose bytes are of a type that differs from the `media_type` in their JSON."""
    for turn, block in _all_blocks(sent):
        source = block.get("source")
        if block.get("type") != "image" or not isinstance(source, Mapping):
            continue
        declared, found = source.get("media_type"), _kind_of_bytes(source.get("data"))
        if found and declared in _BEGINNINGS.values() and declared != found:
            types = f"is declared as {declared}, but the bytes are {found}"
            what = f"An image of {turn.name} {types}."
            yield Fault([turn], what, {"told": declared, "found": found})


def _kind_of_bytes(data: JsonValue) -> str:
    if not isinstance(data, str):
        return ""
    try:
        first = b64decode(data[:16])
    except (NoBase64, ValueError):
        return ""
    kinds = (kind for begin, kind in _BEGINNINGS.items() if first.startswith(begin))
    kind = next(kinds, "")
    return kind if kind != "image/webp" or first[8:] == b"WEBP" else ""


def unsigned_call(sent: ProviderWindow) -> Iterator[Fault]:
    """Find AI messages of the current turn that call tools, but whose first tool call has no
    `thoughtSignature`.

    Gemini sends this field with its tool calls.
    """
    current_turn = _start_of_turn(sent)
    for turn in _unsigned(sent):
        if turn.position > current_turn:
            yield Fault([turn], f"Tool call {turn.name} has no thoughtSignature.", _calling(turn))


def unsigned_earlier_call(sent: ProviderWindow) -> Iterator[Fault]:
    """Find AI messages in earlier turns whose first tool call has no `thoughtSignature`.

    Gemini sends this field with its tool calls.
    """
    current_turn = _start_of_turn(sent)
    for turn in _unsigned(sent):
        if turn.position < current_turn:
            what = f"Tool call {turn.name} of an earlier turn has no thoughtSignature."
            yield Fault([turn], what)


def _start_of_turn(sent: ProviderWindow) -> int:
    return max((turn.position for turn in sent.turns if turn.type is _USER), default=-1)


def _unsigned(sent: ProviderWindow) -> Iterator[Turn]:
    for turn in sent.listed:
        values = [value for part in sent.parts(turn) for value in part.values]
        parts = [part for value in values for part in _list_in(value, "parts")]
        calls = [part for part in parts if _names_one_of(part, "functionCall", "function_call")]
        if calls and not _names_one_of(calls[0], "thoughtSignature", "thought_signature"):
            yield turn


def _names_one_of(part: JsonValue, *names: str) -> bool:
    return isinstance(part, Mapping) and any(part.get(name) for name in names)


def _calling(turn: Turn) -> dict[str, object]:
    message = turn.message
    calls = message.tool_execution_requests if isinstance(message, AiMessage) else ()
    return {"name": next((call.name for call in calls if call), "")}


def empty_part(sent: ProviderWindow) -> Iterator[Fault]:
    """Find messages without parts, and messages with a part that has only an empty text. An empty
    text in a part with a signature is allowed.
    """
    for turn in sent.turns:
        if isinstance(turn.message, UserMessage) and not text_of(turn.message).strip():
            continue  # the message as a whole is empty
        for value in turn.values:
            parts = value.get("parts")
            if parts == [] or any(map(_is_empty, _list_in(value, "parts"))):
                yield Fault([turn], f"Message {turn.name} has an empty part.")
                break


def _is_empty(part: JsonValue) -> bool:
    return isinstance(part, Mapping) and part.keys() <= {"text", "thought"} and not part.get("text")


# Items of OpenAI Responses


def _items(sent: ProviderWindow, type: str = "") -> Iterator[tuple[Turn, JsonMap]]:
    for turn in sent.turns:
        for item in turn.values:
            if type in ("", item.get("type")):
                yield turn, item


def repeated_item(sent: ProviderWindow) -> Iterator[Fault]:
    earlier: dict[str, Turn] = {}
    for turn, item in _items(sent):
        id = item.get("id")
        if isinstance(id, str) and item.get("type") not in _TWICE:
            if other := earlier.get(id):
                what = f"Items of {other.name} and {turn.name} have the same ID {id}."
                yield Fault([turn, other], what, {"id": id})
            earlier[id] = turn


# Items that refer to another item, and the types of calls with the types of their results
_TWICE = (
    *("item_reference", "mcp_approval_response", "local_shell_call_output"),
    *("mcp_call", "code_interpreter_call", "web_search_call", "file_search_call"),
    "image_generation_call",
)


def call_without_reasoning(sent: ProviderWindow) -> Iterator[Fault]:
    """Find tool calls with an item id of OpenAI, such as `fc_1`, but without a reasoning item
    before them in the same answer.
    """
    has_reasoning = False
    for turn, item in _items(sent):
        type, id = item.get("type"), item.get("id")
        if type == "reasoning":
            has_reasoning = True
        elif turn.type is not _AI:
            has_reasoning = False
        elif type == "function_call" and isinstance(id, str) and not has_reasoning:
            what = f"Tool call {turn.name} has the ID {id}, but no reasoning item before it."
            yield Fault([turn], what, {"id": id})


def stored_item(sent: ProviderWindow) -> Iterator[Fault]:
    """Find items whose content only OpenAI has stored: references to items, and reasoning items
    with an id but without encrypted content.
    """
    for turn, item in _items(sent):
        is_bare = item.get("type") == "reasoning" and not item.get("encrypted_content")
        id = item.get("id")
        if (is_bare or item.get("type") == "item_reference") and isinstance(id, str):
            yield Fault(
                [turn],
                f"Message {turn.name} refers to item {id}, which only OpenAI has stored.",
                {"id": id},
            )


# Messages of chat completions


def call_without_thinking(sent: ProviderWindow) -> Iterator[Fault]:
    """Find tool calls whose message lacks `reasoning_content`, which DeepSeek requires in thinking
    mode.
    """
    for turn in sent.turns:
        if turn.calls and turn.values and "reasoning_content" not in turn.values[-1]:
            yield Fault([turn], f"Tool call {turn.name} has no reasoning_content.")


def system_role(sent: ProviderWindow) -> Iterator[Fault]:
    for turn in sent.systems:
        if any(value.get("role") == "system" for value in turn.values):
            what = f"Message {turn.name} has the role system, which some models do not accept."
            yield Fault([turn], what)


_SMALLEST, _CHARACTERS = 128_000, 4  # tokens where no model is named; characters a token at most
KNOWN_CONTEXTS = "|".join(each.names.pattern for each in known_models())
SMALLEST_CONTEXTS = "|".join(
    each.names.pattern for each in known_models() if each.prompt <= _SMALLEST
)


def long_window(sent: ProviderWindow) -> Iterator[Fault]:
    """Find a window with more tokens than the model's context window. For an unknown model, and
    without a model, the limit is 128,000 tokens.
    """
    known = known_model(sent.model)
    most = known.prompt if known else _SMALLEST
    messages = [turn.message for turn in sent.turns if turn.message]
    characters = sum(map(_length, messages))
    if characters * _CHARACTERS <= most:  # of UTF-8, each of which may be a token
        return
    length = _counted(messages, sent.model) if sent.model else characters // _CHARACTERS
    if length > most:
        what = f"The window has {length:,} tokens, but the context window has {most:,}."
        yield Fault((), what, {"length": length, "most": most})


def _length(message: ChatMessage) -> int:
    calls = message.tool_execution_requests if isinstance(message, AiMessage) else ()
    return len(text_of(message)) + sum(len(call.arguments or "") for call in calls if call)


def _counted(messages: list[ChatMessage], model: str) -> int:
    """Return the number of tokens, counted for this model, or for gpt-4o if the model is
    unknown.
    """
    try:
        estimator = OpenAiTokenCountEstimator(model.rpartition("/")[2])
    except UnknownEstimator:
        estimator = OpenAiTokenCountEstimator("gpt-4o")
    return sum(count_tokens(estimator, message) for message in messages)


# Messages as Converse gets them


def blank_content(sent: ProviderWindow) -> Iterator[Fault]:
    """Find user messages, AI messages and tool results with blank text, which Bedrock's Converse
    API does not accept.
    """
    for turn in sent.turns:
        message = turn.message
        if not isinstance(message, ChatMessage) or turn.type is MessageType.SYSTEM:
            continue
        if not text_of(message).strip():
            yield Fault([turn], f"Message {turn.name} is blank.")


# Faults in parts that exist in one format only


def lone_reasoning(sent: ProviderWindow) -> Iterator[Fault]:
    """Find reasoning items of OpenAI that are not directly followed by an item with an id. OpenAI
    requires the text or tool call to which the reasoning led.

    Reasoning items from OpenAI have ids that begin with `rs_`. Other reasoning items are not
    checked.
    """
    for turn, following in zip_longest(sent.turns, sent.turns[1:]):
        for item, after in zip_longest(turn.own, turn.own[1:]):
            id = item.get("id")
            if item.get("type") == "reasoning" and isinstance(id, str) and id.startswith("rs_"):
                after = after or _first_item(following)
                if after is None or not after.get("id"):
                    what = f"The item that must follow the reasoning of {turn.name} is missing."
                    yield Fault([turn], what, {"id": id})


def _first_item(turn: Turn | None) -> JsonMap | None:
    return turn.own[0] if turn and turn.own and turn.type is MessageType.AI else None


def developer_role(sent: ProviderWindow) -> Iterator[Fault]:
    for turn in sent.systems:
        if any(value.get("role") == "developer" for value in turn.own):
            what = f"Message {turn.name} has the role developer, which some models do not accept."
            yield Fault([turn], what)


def unsupported_file(sent: ProviderWindow) -> Iterator[Fault]:
    """Find `input_file` parts that hold sound or video, which OpenAI does not accept as a file."""
    for turn in sent.turns:
        for value in turn.own:
            kinds = filter(None, map(_kind_of_file, _parts(value)))
            if kind := next(kinds, None):
                what = f"Message {turn.name} has a file of a type that is not accepted: {kind}."
                yield Fault([turn], what, {"kind": kind})
                break


def _parts(value: JsonMap) -> Iterator[JsonValue]:
    for name in ("content", "output"):
        parts = value.get(name)
        yield from parts if isinstance(parts, list) else ()


def _kind_of_file(part: JsonValue) -> str | None:
    if not isinstance(part, Mapping) or part.get("type") != "input_file":
        return None
    url, data = part.get("file_url"), part.get("file_data")
    kind: str | None = None
    if isinstance(data, str) and data.startswith("data:"):
        kind = data[5:].partition(";")[0]
    elif isinstance(url, str):
        kind = guess_type(url.partition("?")[0])[0]
    return kind if kind and kind.partition("/")[0] in ("audio", "video") else None
