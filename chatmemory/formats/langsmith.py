"""LangSmith: runs, as its pages and its API export them. This format is only read.

- A run of type llm is a model call, with messages under `inputs` and `outputs`. If a trace has no
  llm run, its outermost run is read.
- All runs of a thread are one conversation, in order of time. So are the runs of a trace without a
  thread.
- Two traces without a thread are one conversation if one repeats the messages of the other.
- `session_id` is the project, not a conversation.

Source of the shapes: LangSmith's documentation, run data format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chatmemory.formats.exchanges import Call, format_of_calls
from chatmemory.formats.json_properties import dict_in, dicts_in, name_of
from chatmemory.formats.times import said_at_of
from chatmemory.formats.words import Beside
from chatmemory.messages.json_values import JsonDict, JsonValue

_THREAD = ("thread_id", "session_id", "conversation_id")
_CALL, _OUTERMOST, _INNER = range(3)


def _finds(value: JsonValue) -> bool:
    if not isinstance(value, dict):
        return False
    is_run = isinstance(value.get("run_type"), str) and isinstance(value.get("inputs"), dict)
    return is_run or any(map(_finds, dicts_in(value, "runs")[:1]))


def _runs(value: JsonValue, trace: str | None = None) -> Iterator[tuple[JsonDict, str | None]]:
    """Yield the runs of a value, each with its trace. A run that names no trace has the trace of
    the run around it.
    """
    if not isinstance(value, dict):
        return
    if "run_type" in value:
        trace = name_of(value, "trace_id") or trace or name_of(value, "id")
        yield value, trace
    for name in ("runs", "child_runs"):
        for each in dicts_in(value, name):
            yield from _runs(each, trace)


def _calls(values: Iterable[JsonValue]) -> Iterator[Call]:
    for run, trace in (each for value in values for each in _runs(value)):
        level = _CALL if run["run_type"] == "llm" else _INNER if _is_inner(run) else _OUTERMOST
        answer, beside_answer = _messages_of(dict_in(run, "outputs"))
        request, beside_request = _messages_of(dict_in(run, "inputs"))
        time, at = name_of(run, "start_time", "dotted_order"), said_at_of(run)
        answer = answer or {"error": run.get("error")}
        around = _BESIDE.without(run, "inputs", "outputs", "runs", "child_runs")
        around |= {"inputs": beside_request, "outputs": beside_answer}
        yield Call(request, answer, _thread(run), trace, trace, level, time or "", at, around)


# Properties of runs about a call
_BESIDE = Beside(
    texts=("tags", "dotted_order", "start_time", "end_time", "first_token_time", "session_name"),
    wholes=("extra", "events", "serialized", "feedback_stats", "error", "manifest"),
)


def _is_inner(run: JsonDict) -> bool:
    return bool(run.get("parent_run_id") or run.get("parent_run_ids"))


def _thread(run: JsonDict) -> str | None:
    return name_of(dict_in(dict_in(run, "extra"), "metadata"), *_THREAD)


def _messages_of(value: JsonDict) -> tuple[JsonValue, JsonValue]:
    """Return the messages in a run's input or output, and the properties beside them. If there is
    only one text, it is returned in place of the messages.
    """
    texts = [each for each in value.values() if isinstance(each, str) and each.strip()]
    has_more = any(isinstance(each, list | dict) and each for each in value.values())
    prompts = value.get("prompts")
    if isinstance(prompts, list) and len(prompts) == 1:
        return prompts[0], {name: each for name, each in value.items() if name != "prompts"}
    return (texts[0] if len(texts) == 1 and not has_more else value), None


FORMAT = format_of_calls("langsmith", _finds, _calls)
