"""The checks of provider rules. Each function finds one kind of fault in a window, for any
provider.

A check yields its faults in the order of the window. Checks of a provider's JSON are in `rendered`
and `limits`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from mimetypes import guess_type

from chatmemory.exceptions import InvalidMessage
from chatmemory.lint.rules import Fault
from chatmemory.lint.turns import (
    ANTHROPIC,
    BEDROCK,
    GEMINI,
    OPENAI,
    RESPONSES,
    ProviderWindow,
    Turn,
)
from chatmemory.messages.codec import load_json
from chatmemory.messages.contents import (
    AudioContent,
    Content,
    ImageContent,
    Media,
    PdfFileContent,
    TextContent,
    VideoContent,
)
from chatmemory.messages.json_values import JsonList
from chatmemory.messages.message import (
    AiMessage,
    MessageType,
    ToolExecutionResultMessage,
    UserMessage,
    text_of,
)

_RESULT = MessageType.TOOL_EXECUTION_RESULT
_SPOKEN = {
    MessageType.USER: "User",
    MessageType.AI: "AI",
    _RESULT: "a tool result",
}

# The window as a whole


def nothing_to_send(sent: ProviderWindow) -> Iterator[Fault]:
    if not sent.turns:
        yield Fault((), "There is no message to send.", is_pending=True)
    elif not sent.listed:
        yield Fault(
            sent.turns,
            "There is only a system message, and no other message to send.",
            is_pending=True,
        )


def shorter_than_a_turn(sent: ProviderWindow) -> Iterator[Fault]:
    """Find a window that has lost all user messages. Providers accept it, but the model no longer
    sees the question.
    """
    dialogue = [turn for turn in sent.turns if turn.type is not MessageType.SYSTEM]
    if sent.has_left and dialogue and not any(turn.type is MessageType.USER for turn in dialogue):
        yield Fault((), "No user message is in memory.")


def first_not_user(sent: ProviderWindow) -> Iterator[Fault]:
    """Find a window whose first message after the system message is neither a user message nor a
    tool result.

    A repair is only offered for Bedrock. For other providers, a conversation may begin with a
    greeting of the assistant.
    """
    dialogue = [turn for turn in sent.turns if turn.type is not MessageType.SYSTEM]
    if dialogue and dialogue[0].type not in (MessageType.USER, _RESULT):
        first = dialogue[0]
        after = "" if sent.turns[0] is first else " after the system message"
        what = f"The first message{after}, {first.name}, is not from the user."
        is_repairable = sent.provider == BEDROCK and first_user(sent) is not None
        yield Fault([first], what, is_repairable=is_repairable)


def first_user(sent: ProviderWindow) -> int | None:
    """Return the index of the first user message in the window; None if there is none."""
    return next((turn.position for turn in sent.turns if turn.type is MessageType.USER), None)


def equal_roles(sent: ProviderWindow) -> Iterator[Fault]:
    """Find two user messages, or two AI messages, that follow each other.

    Two AI messages that are parts of one answer (see `Turn.joins`) are no fault.
    """
    dialogue = [turn for turn in sent.turns if turn.type is not MessageType.SYSTEM]
    for one, other in pairwise(dialogue):
        is_spoken = one.type in (MessageType.USER, MessageType.AI)
        if is_spoken and one.type is other.type and not other.joins:
            both = f"{_SPOKEN[one.type]} messages {one.name} and {other.name}"
            yield Fault([one, other], f"{both} follow each other directly.")


def system_in_middle(sent: ProviderWindow) -> Iterator[Fault]:
    has_begun = False
    for turn in sent.turns:
        if turn.type is not MessageType.SYSTEM:
            has_begun = True
        elif has_begun:
            yield Fault([turn], f"System message {turn.name} is not at the beginning.")


def several_systems(sent: ProviderWindow) -> Iterator[Fault]:
    if len(sent.systems) > 1:
        texts = {text_of(turn.message) for turn in sent.systems if turn.message}
        numbers = " and ".join(turn.name for turn in sent.systems[:2])
        more = f" and {len(sent.systems) - 2} more" if len(sent.systems) > 2 else ""
        what = f"There are {len(sent.systems)} system messages: {numbers}{more}."
        yield Fault(sent.systems, what, is_repairable=len(texts) < len(sent.systems))


# Calls and results


def orphan_result(sent: ProviderWindow) -> Iterator[Fault]:
    for turn in sent.pairing.orphans:
        what = f"Tool result {turn.name} has no matching tool call."
        yield Fault([turn], what, {"id": turn.answers or ""})


def dangling_call(sent: ProviderWindow) -> Iterator[Fault]:
    for left in sent.pairing.dangling:
        how = (
            f"not answered before {left.before.name}" if left.before else "waiting for its results"
        )
        ids = ", ".join(id or "" for id in left.open)
        what = f"Tool call {left.call.name} is {how}."
        yield Fault([left.call], what, {"ids": ids}, is_pending=left.before is None)


def results_apart(sent: ProviderWindow) -> Iterator[Fault]:
    for result, call in sent.pairing.apart:
        how = "stands before" if result.position < call.position else "does not directly follow"
        what = f"Tool result {result.name} {how} its call {call.name}."
        yield Fault([result, call], what, {"id": result.answers or "", "call": sent.place(call)})


def duplicate_result(sent: ProviderWindow) -> Iterator[Fault]:
    for result, other in sent.pairing.repeated:
        what = f"Tool result {result.name} answers the same tool call as {other.name}."
        error = {"id": result.answers or "", "other": sent.place(other)}
        yield Fault([result, other], what, error)


def duplicate_call_id(sent: ProviderWindow) -> Iterator[Fault]:
    for turn in sent.turns:
        counts = Counter(turn.calls) if len(turn.calls) > 1 else {}
        for id, times in counts.items():
            if id is not None and times > 1:
                yield Fault(
                    [turn],
                    f"Message {turn.name} has {times} tool calls with the ID {id}.",
                    {"id": id},
                )


def reused_call_id(sent: ProviderWindow) -> Iterator[Fault]:
    earlier: dict[str, Turn] = {}
    for turn in sent.turns:
        for id in dict.fromkeys(turn.calls):
            if id is not None:
                if other := earlier.get(id):
                    what = f"Tool calls {other.name} and {turn.name} have the same ID {id}."
                    yield Fault([turn, other], what, {"id": id})
                earlier[id] = turn


def missing_call_id(sent: ProviderWindow) -> Iterator[Fault]:
    for turn in sent.turns:
        if turn.message is None:
            continue
        if None in turn.calls:
            yield Fault([turn], f"Tool call {turn.name} has no ID.")
        elif turn.type is _RESULT and turn.answers is None:
            yield Fault([turn], f"Tool result {turn.name} has no ID.")


def call_after_model(sent: ProviderWindow) -> Iterator[Fault]:
    before: Turn | None = None
    for turn in sent.listed:
        if turn.calls and (before is None or before.type is MessageType.AI):
            what = f"Tool call {turn.name} does not follow a user message or a tool result."
            yield Fault([turn], what, is_repairable=turn.position < (first_user(sent) or 0))
        before = turn


def bad_arguments(sent: ProviderWindow) -> Iterator[Fault]:
    for turn in sent.turns:
        for call in _requests(turn):
            is_ours = call.id not in turn.optional
            if is_ours and call.arguments and not _is_object(call.arguments):
                what = f"The arguments of tool call {turn.name} are not a JSON object."
                yield Fault([turn], what)
                break


def _requests(turn: Turn) -> JsonList:
    message = turn.message
    calls = message.tool_execution_requests if isinstance(message, AiMessage) else ()
    return [call for call in calls if call is not None]


def _is_object(text: str) -> bool:
    try:
        return isinstance(load_json(text), dict)
    except InvalidMessage:
        return False


# Contents


def empty_content(sent: ProviderWindow) -> Iterator[Fault]:
    """Find user messages and AI messages without content. For Anthropic, the last message may be an
    empty AI message, which the model continues.
    """
    for turn in sent.turns:
        if turn is sent.turns[-1] and turn.type is MessageType.AI and sent.provider == ANTHROPIC:
            continue
        match turn.message:
            case UserMessage(contents=contents):
                is_empty = not any(map(_says, contents))
            case AiMessage(text=text) as message:
                is_empty = not (text or "").strip() and not message.tool_execution_requests
                is_thought = sent.provider == GEMINI and bool(message.thinking)
                is_empty = is_empty and not (turn.own or is_thought)
            case _:
                continue
        if is_empty:
            yield Fault([turn], f"Message {turn.name} is empty.")


def null_content(sent: ProviderWindow) -> Iterator[Fault]:
    for turn in sent.turns:
        match turn.message:
            case AiMessage(text=None, tool_execution_requests=()) if not turn.own:
                yield Fault([turn], f"Message {turn.name} has neither a text nor a tool call.")


def _says(content: Content | None) -> bool:
    if isinstance(content, TextContent):
        return bool(content.text.strip())
    return content is not None


_PICTURES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_TAKEN = {
    OPENAI: {*_PICTURES, "image/jpg"},
    RESPONSES: {*_PICTURES, "image/jpg"},
    ANTHROPIC: _PICTURES,
    GEMINI: {"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"},
    BEDROCK: {*_PICTURES, "image/jpg"},
}


def unsupported_image(sent: ProviderWindow) -> Iterator[Fault]:
    for turn in sent.turns:
        for content in _contents(turn):
            if isinstance(content, ImageContent):
                kind = _kind_of(content.image)
                if kind and kind not in _TAKEN[sent.provider]:
                    what = (
                        f"Message {turn.name} has an image of a type that is not accepted: {kind}."
                    )
                    yield Fault([turn], what, {"kind": kind})
                    break


def _kind_of(media: Media) -> str | None:
    """Return the media type of media: the declared type, or the type that the name of the file
    suggests. None if unknown.
    """
    kind = media.mime_type or guess_type((media.url or "").partition("?")[0])[0]
    return kind.lower() if kind else None


def media_left_out(sent: ProviderWindow) -> Iterator[Fault]:
    """Find media that cannot be sent, because the provider's format cannot express them."""
    for turn in sent.turns:
        left = [_left_out(content, turn, sent.provider) for content in _contents(turn)]
        if any(left):
            what = next(filter(None, left))
            yield Fault(
                [turn], f"Message {turn.name} has {what}, which cannot be sent to this provider."
            )


def _left_out(content: Content | None, turn: Turn, provider: str) -> str:
    """Return the kind of a content that the provider's format cannot express, such as "a video";
    else "".
    """
    if provider == GEMINI or turn.own:
        return ""
    is_chat, is_result = provider == OPENAI, turn.type is _RESULT
    match content:
        case VideoContent():
            return "a video"
        case AudioContent(audio=sound):
            return "" if is_chat and not is_result and _is_inline(sound) else "a sound"
        case PdfFileContent(pdf_file=pdf) if is_chat:
            return "" if not is_result and _is_inline(pdf) else "a file"
        case ImageContent() if is_chat and is_result:
            return "an image"
    return ""


def _is_inline(media: Media | None) -> bool:
    return media is not None and bool(media.base64_data or getattr(media, "binary_data", None))


def _contents(turn: Turn) -> Sequence[Content | None]:
    match turn.message:
        case UserMessage(contents=contents) | ToolExecutionResultMessage(contents=contents):
            return contents
    return ()
