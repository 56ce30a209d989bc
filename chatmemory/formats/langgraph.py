"""LangGraph: the checkpoints of threads, as `get_state_history` returns them. This format is only
read.

    {"values": {"messages": […]}, "config": {"configurable": {"thread_id": …}}, "created_at": …}

All checkpoints of one `thread_id` are one conversation; they may be in any order. The conversation
has also the messages that a later checkpoint removed or summarized. Source of the shapes:
langgraph.types.StateSnapshot, and LangGraph's API, history of a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chatmemory.formats.exchanges import Call, format_of_calls
from chatmemory.formats.json_properties import dict_in, name_of
from chatmemory.formats.times import moment_of
from chatmemory.formats.words import Beside
from chatmemory.messages.json_values import JsonDict, JsonValue


def _finds(value: JsonValue) -> bool:
    return _thread(value) is not None and isinstance(_messages(value), list)


def _thread(value: JsonValue) -> str | None:
    for name in ("config", "checkpoint", "parent_config"):
        place = dict_in(value, name)
        if found := name_of(dict_in(place, "configurable") or place, "thread_id"):
            return found
    return None


def _messages(value: JsonValue) -> JsonValue:
    return _state(value).get("messages", [] if "values" in value else None)


def _state(value: JsonValue) -> JsonDict:
    """Return the part of a checkpoint that has the messages: the state of the graph."""
    return dict_in(value, "values") or dict_in(dict_in(value, "checkpoint"), "channel_values")


def _calls(values: Iterable[JsonValue]) -> Iterator[Call]:
    for value in values:
        if isinstance(value, dict):
            at, around, messages = moment_of(_created(value)), _around(value), _messages(value)
            yield Call(messages, None, _thread(value), time=_time(value), at=at, beside=around)


# Properties of a checkpoint about its run: names of nodes, and versions of channels
_OF_A_CONFIG = Beside(inner={"configurable": Beside(texts=("checkpoint_ns", "thread_ts"))})
_BESIDE = Beside(
    texts=("next", "checkpoint_ns", "thread_ts"),
    wholes=("versions_seen", "channel_versions"),
    inner={"config": _OF_A_CONFIG, "parent_config": _OF_A_CONFIG},
)


def _around(value: JsonDict) -> JsonDict:
    """Return what a checkpoint has besides its messages."""
    state, checkpoint = _state(value), value.get("checkpoint")
    inner = _beside_state(checkpoint, "channel_values", state)
    return {**_beside_state(value, "values", state), "checkpoint": inner}


def _beside_state(value: JsonValue, name: str, state: JsonDict) -> JsonValue:
    """Return an object without the messages of the state. The object may have the state under
    `name`.
    """
    if not isinstance(value, dict):
        return value
    rest = value.get(name)
    if rest is state:
        rest = {each: state[each] for each in state if each != "messages"}
    return {**_BESIDE.without(value, name), name: rest}


def _time(value: JsonDict) -> str:
    """Return a text that sorts checkpoints: the time, and the step number, because several may have
    the same time.
    """
    step = dict_in(value, "metadata").get("step")
    created = _created(value)
    return f"{created} {step:09}" if isinstance(step, int) and step >= 0 else created


def _created(value: JsonDict) -> str:
    created = name_of(value, "created_at", "ts") or name_of(dict_in(value, "checkpoint"), "ts")
    return created or ""


FORMAT = format_of_calls("langgraph", _finds, _calls)
