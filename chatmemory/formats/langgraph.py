"""LangGraph: the checkpoints of threads, as `get_state_history` returns them; only read.

    {"values": {"messages": […]}, "config": {"configurable": {"thread_id": …}}, "created_at": …}

All checkpoints of one `thread_id` are one conversation, in any order. Messages that a later
checkpoint removed or summarized are kept. Source of the shapes: langgraph.types.StateSnapshot, and
LangGraph's API, history of a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from chatmemory.formats.conversion import dict_in, name_of
from chatmemory.formats.exchanges import Call, format_of_calls
from chatmemory.formats.times import moment_of
from chatmemory.formats.words import Beside


def _finds(value: Any) -> bool:
    return _thread(value) is not None and isinstance(_messages(value), list)


def _thread(value: Any) -> str | None:
    for name in ("config", "checkpoint", "parent_config"):
        place = dict_in(value, name)
        if found := name_of(dict_in(place, "configurable") or place, "thread_id"):
            return found
    return None


def _messages(value: Any) -> Any:
    values = dict_in(value, "values") or dict_in(dict_in(value, "checkpoint"), "channel_values")
    return values.get("messages", [] if "values" in value else None)


def _calls(values: Iterable[Any]) -> Iterator[Call]:
    for value in values:
        if isinstance(value, dict):
            at, around, messages = moment_of(_created(value)), _around(value), _messages(value)
            yield Call(messages, None, _thread(value), time=_time(value), at=at, beside=around)


_CONFIGS = ("config", "parent_config")
_OF_A_CONFIG = Beside(texts=("checkpoint_ns", "thread_ts"))
# Properties of a checkpoint about its run: names of nodes, and interrupts
_BESIDE = Beside(wholes=("next", "tasks", "interrupts", "versions_seen", "channel_versions"))


def _around(value: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a graph beside its messages, and what else stands in a checkpoint."""
    checkpoint = dict_in(value, "checkpoint")
    inner = {"checkpoint": _OF_A_CONFIG.without(_BESIDE.without(checkpoint, "channel_values"))}
    for name in _CONFIGS:
        configurable = dict_in(value, name).get("configurable")
        inner[name] = {**dict_in(value, name), "configurable": _OF_A_CONFIG.without(configurable)}
    values = dict_in(value, "values") or dict_in(checkpoint, "channel_values")
    inner["values"] = {name: each for name, each in values.items() if name != "messages"}
    return {**_BESIDE.without(value), **inner}


def _time(value: dict[str, Any]) -> str:
    """Return a checkpoint's time and step number: several may have the same time."""
    step = dict_in(value, "metadata").get("step")
    created = _created(value)
    return f"{created} {step:09}" if isinstance(step, int) and step >= 0 else created


def _created(value: dict[str, Any]) -> str:
    created = name_of(value, "created_at", "ts") or name_of(dict_in(value, "checkpoint"), "ts")
    return created or ""


FORMAT = format_of_calls("langgraph", _finds, _calls)
