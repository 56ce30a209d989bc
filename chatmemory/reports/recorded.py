"""Compares two shares of prompt tokens: the share that was read from prompt caches, as providers
recorded it, and a prediction of this share.

The prediction is that a call reads its whole prompt from the cache, except the messages since the
previous call. A call that reads nothing is a cache miss.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from chatmemory.messages.estimators import estimator_for
from chatmemory.messages.message import AiMessage, ChatMessage
from chatmemory.printing import Options, Printer
from chatmemory.recall.history import History, history_of
from chatmemory.reports.files import transcripts

ESTIMATOR = "gpt-4o"
_USED = ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens")


class RecordedCall(NamedTuple):
    """A model call with the usage that the provider recorded.

    - `prompt`: the tokens of the whole prompt.
    - `read`: how many of these tokens were read from the cache.
    - `new_tokens`: the estimated tokens of the messages since the previous call with recorded
      usage. The answer to that call is included.
    - `age`: the seconds since that previous call; None if unknown.
    """

    prompt: int
    read: int
    new_tokens: int
    age: float | None = None


def used_in(messages: Sequence[ChatMessage], history: History) -> Iterator[RecordedCall]:
    """Yield the model calls of a conversation whose usage is recorded, except the first
    such call.
    """
    sums, last = [0], None
    for tokens in history.tokens:
        sums.append(sums[-1] + tokens)
    for position, message in enumerate(messages):
        usage = _usage_of(message)
        if usage is None:
            continue
        if last is not None:
            read, written, fresh = usage
            age = history.seconds(last, position)
            yield RecordedCall(read + written + fresh, read, sums[position] - sums[last], age)
        last = position


def _usage_of(message: ChatMessage) -> tuple[int, int, int] | None:
    """Return the prompt tokens read from the cache, written to it, and neither. None without
    recorded usage.
    """
    if not isinstance(message, AiMessage):
        return None
    for own in (message.attributes or {}).values():
        usage = own.get("usage") if isinstance(own, Mapping) else None
        if isinstance(usage, Mapping) and _USED[0] in usage:
            read, written, fresh = (int(usage.get(name) or 0) for name in _USED)
            return read, written, fresh
    return None


def shares(calls: Iterable[RecordedCall]) -> tuple[int, float, float]:
    """Return three figures of the calls that read from the cache: their number, the share of their
    prompt tokens that was read, and the predicted share. Without such calls, all are 0.
    """
    hits = [each for each in calls if each.read]
    whole = sum(each.prompt for each in hits) or 1
    recorded = sum(each.read for each in hits) / whole
    return len(hits), recorded, sum(max(0, each.prompt - each.new_tokens) for each in hits) / whole


def print_recorded(options: Options, printer: Printer) -> int:
    """Print, for each conversation, which share of the prompt tokens was read from the cache, and
    the predicted share. Then print the cache misses, sorted by the time since the previous call.

    Returns the exit code: 3 if a file or conversation could not be read, else 0.
    """
    misses: list[RecordedCall] = []
    found: list[RecordedCall] = []
    estimator = estimator_for(ESTIMATOR)
    for each in transcripts(options["files"], options["format"], printer):
        calls = list(used_in(each.messages, history_of(each.messages, estimator)))
        misses += [call for call in calls if not call.read]
        found += calls
        name, (count, recorded, predicted) = each.name or str(each.number), shares(calls)
        values = {"recorded": round(recorded, 4), "predicted": round(predicted, 4)}
        sentence = (
            f"{name}: {count:,} calls read {recorded:.1%} of their prompt tokens from the cache, "
        )
        printer.row(
            {"conversation": name, "calls": count, **values}, f"{sentence}predicted {predicted:.1%}"
        )
    for miss in sorted(misses, key=lambda each: each.age or 0):
        age = "an unknown time" if miss.age is None else f"{miss.age:,.0f} s"
        sentence = f"cache miss {age} after the previous call, with {miss.prompt:,} tokens"
        printer.row({"missed": miss.prompt, "age": miss.age}, sentence)
    count, recorded, predicted = shares(found)
    printer.total(
        {"calls": count, "misses": len(misses), "recorded": recorded, "predicted": predicted},
        f"{count:,} calls read {recorded:.1%}, predicted {predicted:.1%}; {len(misses):,} misses",
    )
    return printer.code
