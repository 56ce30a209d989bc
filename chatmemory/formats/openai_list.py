"""Pages of OpenAI's API: the messages of a thread, or the items of a conversation. This format is
only read.

    {"object": "list", "data": [newest, …, oldest], "first_id": …, "last_id": …, "has_more": …}

A page, or a list of messages without a page around it, is reversed if it begins with the newest
message. A message of a thread has its text under `text.value`. Source of the shapes: OpenAI's API
reference, list messages, list conversation items.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory.formats.exchanges import format_around, format_of
from chatmemory.formats.format import Loss, RawTranscript
from chatmemory.formats.json_properties import (
    dict_in,
    dicts_in,
    is_list_of,
    list_in,
    name_of,
    unread,
)
from chatmemory.formats.order import is_newest_first
from chatmemory.messages.json_values import JsonDict, JsonValue

_OF_A_PAGE = ("object", "data", "first_id", "last_id", "has_more")
_MORE = "messages of other pages: `has_more` is true"


def find(value: JsonValue) -> RawTranscript | None:
    if is_list_of(value, "object", "thread_id") and value[0]["object"] == "thread.message":
        is_reversed, losses = is_newest_first(value)
        turns = value[::-1] if is_reversed else value
        return RawTranscript(name_of(value[0], "thread_id"), turns, losses)
    is_page = isinstance(value, dict) and value.get("object") == "list"
    data = list_in(value, "data")
    if not is_page or format_of([_plain(each) for each in data if isinstance(each, dict)]) is None:
        return None
    losses = (*unread("conversation", value, _OF_A_PAGE),)
    losses += (Loss("conversation", _MORE),) if value.get("has_more") else ()
    turns = data[::-1] if _is_newest_first(data) else data
    first = next(each for each in data if isinstance(each, dict))
    return RawTranscript(name_of(first, "thread_id"), turns, losses)


def _is_newest_first(data: Sequence[JsonValue]) -> bool:
    data = [each for each in data if isinstance(each, dict)]
    times = [each["created_at"] for each in data if isinstance(each.get("created_at"), int | float)]
    if len(times) > 1 and times[0] != times[-1]:
        return bool(times[0] > times[-1])
    roles = [each["role"] for each in data if "role" in each]
    return len(data) > 1 and roles[:1] not in (["user"], ["system"], ["developer"])


def _plain(item: JsonValue) -> JsonValue:
    """Return a message of a thread in the shape of chat completions. Other items are returned
    unchanged.
    """
    if not isinstance(item, dict) or item.get("object") != "thread.message":
        return item
    parts = [_part(each) for each in dicts_in(item, "content")]
    parts += [
        {"type": "text", "text": f"[file {each.get('file_id')}]"}
        for each in dicts_in(item, "attachments")
    ]
    about: JsonDict = {n: item[n] for n in ("id", "created_at") if n in item}
    return {**about, "role": item.get("role"), "content": parts}


def _part(part: JsonDict) -> JsonDict:
    match part.get("type"):
        case "text":
            return {"type": "text", "text": dict_in(part, "text").get("value")}
        case "image_file":
            name = dict_in(part, "image_file").get("file_id")
            return {"type": "text", "text": f"[image {name}]"}
    return part


FORMAT = format_around("openai_list", find, _plain)
