"""Decodes the JSON bodies of requests. If a body begins like an earlier body, only its new part is
decoded.

Most bodies begin like an earlier body, because a program sends all earlier messages again with each
call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from chatmemory.messages.json_values import JsonDict, JsonValue
from inspector.rooms.calls.bodies import loaded
from inspector.rooms.calls.newest import Newest
from inspector.rooms.calls.spelling import separator, style_of, written

LEAST = 4  # items of a list whose beginning is kept


class ReadBody(NamedTuple):
    """The JSON value of a request's body (None if the body is no JSON), and the style in which it
    was written (see `spelling`).
    """

    request: JsonValue
    style: str = ""


@dataclass(frozen=True)
class _Beginning:
    """The beginning of a decoded body: its bytes (`data`) up to the end of the list `name`.

    The list begins at `start`. `ends` are the positions at which its `items` end.
    """

    name: str
    style: str
    data: bytes
    start: int
    items: Sequence[JsonValue]
    ends: Sequence[int]

    @property
    def key(self) -> tuple[str, bytes]:
        return self.name, self.data[: self.ends[1]]

    def common_with(self, body: bytes) -> int:
        """Return a number of leading items that a body surely repeats. The body may repeat more.

        Longer beginnings are tried first, because mostly all items are repeated.
        """
        back = 0
        while back < len(self.items):
            end = self.ends[-1 - back]
            if body[:end] == self.data[:end]:
                return len(self.items) - back
            back = 2 * back + 1
        return 0


_NEWEST: Newest[tuple[str, bytes], _Beginning] = Newest()


def read_body(body: bytes, name: str) -> ReadBody:
    """Decode the body of a request. `name` is the name of the member that has the request's
    messages, such as `messages`.
    """
    for known in _NEWEST.values():
        if known.name == name and body.startswith(known.key[1]):
            if found := _continued(known, body):
                return found
            break
    request = loaded(body)
    if not isinstance(request, dict):
        return ReadBody(request)
    style = style_of(body, request)
    _keep_beginning(body, request, name, style)
    return ReadBody(request, style)


def _continued(known: _Beginning, body: bytes) -> ReadBody | None:
    """Decode a body that begins like `known`; None if its rest is in another style."""
    count = known.common_with(body)
    if count < LEAST:
        return None
    end, comma = known.ends[count - 1], separator(known.style)
    rest = body[end:]
    new = known.data[: known.start] + rest.removeprefix(comma)  # without the known items
    request = loaded(new)
    if not isinstance(request, dict) or written(request, known.style) != new:
        return None
    items = request[known.name]
    if not isinstance(items, list) or bool(items) != rest.startswith(comma):
        return None
    ends = [*known.ends[:count], *_ends(items, end + len(comma), known.style)]
    items = request[known.name] = [*known.items[:count], *items]
    _keep(_Beginning(known.name, known.style, body[: ends[-1]], known.start, items, ends))
    return ReadBody(request, known.style)


def _keep_beginning(body: bytes, request: JsonDict, name: str, style: str) -> None:
    """Cache the beginning of a body that was decoded as a whole."""
    items = request.get(name)
    if not style or not isinstance(items, list) or len(items) < LEAST:
        return
    inside = written(items, style)[1:-1]
    start = body.find(inside)
    end = start + len(inside)
    if loaded(body[:start] + body[end:]) == {**request, name: []}:  # this is its place
        _keep(_Beginning(name, style, body[:end], start, items, _ends(items, start, style)))


def _ends(items: Sequence[JsonValue], start: int, style: str) -> list[int]:
    """Return the positions at which these items end in a body. The first item begins at `start`."""
    comma = len(separator(style))
    sizes = [len(written(each, style)) for each in items]
    return [start + each - comma for each in accumulate(size + comma for size in sizes)]


def _keep(beginning: _Beginning) -> None:
    _NEWEST.put(beginning.key, beginning, len(beginning.data))
