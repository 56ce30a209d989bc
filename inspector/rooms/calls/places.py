"""Encodes the list of messages that a model call sent as a short text, such as `1,4-90,~2,~5-9`.

- `1` is message 1 of the history (its seq).
- `~2` is the `CallMessage` with number 2, which is not in history.
- `7s12` is message 7 of the history, sent as a cleared tool result of 12 tokens.
- `4-90` and `~5-9` are ranges.

A call has such a text only if its messages are not stored as a window of the conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from chatmemory.patterns import declared_pattern

STUB = "stub"  # in place of the overrides of a stay

_PART = declared_pattern(r"(~?)(\d+)(?:-(\d+)|s(\d+))?")


class Reference(NamedTuple):
    """A reference to a message that a call sent.

    - `seq` is the message's seq in the ledger. It is below 0 for a `CallMessage`, which is not in
      history.
    - `stub_tokens` is the size of the placeholder in tokens, if the call sent a cleared tool
      result. Otherwise it is None.
    """

    seq: int
    stub_tokens: int | None = None

    @property
    def overrides(self) -> str | None:
        return None if self.stub_tokens is None else STUB


def encoded(references: Iterable[Reference]) -> str:
    """Return references as a text such as `1,4-90,~2`, in the given order."""
    return ",".join(map(_written, _ranges(references)))


def _ranges(references: Iterable[Reference]) -> Iterator[tuple[Reference, int]]:
    """Yield the first reference of each range, and the number of references in it."""
    first, count = None, 0
    for each in references:
        if first is not None and _follows(first, count, each):
            count += 1
            continue
        if first is not None:
            yield first, count
        first, count = each, 1
    if first is not None:
        yield first, count


def _follows(first: Reference, count: int, each: Reference) -> bool:
    step = 1 if first.seq > 0 else -1
    is_whole = first.stub_tokens is None and each.stub_tokens is None
    return is_whole and each.seq == first.seq + step * count


def _written(part: tuple[Reference, int]) -> str:
    (seq, stub_tokens), count = part
    name = f"{'' if seq > 0 else '~'}{abs(seq)}"
    if stub_tokens is not None:
        return f"{name}s{stub_tokens}"
    return name if count == 1 else f"{name}-{abs(seq) + count - 1}"


def decoded(text: str) -> list[Reference]:
    """Return the references in a text such as `1,4-90,~2`, in the order of the text."""
    return [each for part in filter(None, text.split(",")) for each in _read(part)]


def _read(part: str) -> Iterator[Reference]:
    found = _PART.fullmatch(part)
    if found is None:
        return
    own, first, last, stub_tokens = found.groups()
    sign = -1 if own else 1
    if stub_tokens is not None:
        yield Reference(sign * int(first), int(stub_tokens))
        return
    for number in range(int(first), int(last or first) + 1):
        yield Reference(sign * number)
