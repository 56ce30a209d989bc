"""The parts of a page, so that a response brings only those that the reader's page lacks.

A template marks an element that has an id with `{% part %}`, and the content of an element whose
parts come and go with `{% parts "its-id" %}`; the ids of those parts begin with the list's id. On a
page each part has a digest of its own markup, without that of the parts inside it. A request tells
the digests that its page holds, in the order of the page, and `changes` are the out-of-band swaps
by which that page becomes the new one. https://htmx.org/attributes/hx-swap-oob/
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

_HELD = re.compile(r"([a-z][a-z0-9-]*):([\w-]{6})")
_MARK = re.compile(r"<(/?)parts?(?: ([a-z][a-z0-9-]*))?>")
_ID = re.compile(r'id="([a-z][a-z0-9-]*)"')

Held = Mapping[str, str]


@dataclass(frozen=True)
class Part:
    """An element with an id, and in it, where they stand, other parts and lists of parts."""

    pieces: tuple[Piece, ...]

    @cached_property
    def id(self) -> str:
        return self._begin[1]

    @cached_property
    def digest(self) -> str:
        own = [piece if isinstance(piece, str) else f"<{piece.id}>" for piece in self.pieces]
        return urlsafe_b64encode(hashlib.sha256("".join(own).encode()).digest())[:6].decode()

    def markup(self, attributes: str = "") -> str:
        """Return the element with its digest, other attributes and all that is in it."""
        stamp = f' data-part="{self.digest}"{attributes}'
        whole, end = markup_of(self.pieces), self._begin.end()
        return f"{whole[:end]}{stamp}{whole[end:]}"

    def changes(self, held: Held) -> Iterator[str]:
        if held.get(self.id) != self.digest:
            yield self.markup(' hx-swap-oob="true"')
        else:
            yield from changes(self.pieces, held)

    @cached_property
    def _begin(self) -> re.Match[str]:
        first = str(self.pieces[0])
        for found in _ID.finditer(first):
            before = first[: found.start()]
            if before.startswith("<") and before[-1].isspace() and ">" not in before:
                return found
        raise ValueError(f"a part begins with an element that has an id: {first!r}")


@dataclass(frozen=True)
class PartList:
    """The parts in the element `id`, which come and go."""

    id: str
    parts: tuple[Part, ...]

    def markup(self) -> str:
        return "".join([part.markup() for part in self.parts])

    def changes(self, held: Held) -> Iterator[str]:
        now = {part.id: part for part in self.parts}
        held_here = [id for id in held if id.startswith(f"{self.id}-")]
        staying = [id for id in held_here if id in now]
        if staying != [id for id in now if id in held]:
            yield _swap(f"innerHTML:#{self.id}", self.markup())
            return
        if gone := [f"#{id}" for id in held_here if id not in now]:
            yield _swap(f"delete:{','.join(gone)}")
        for id in staying:
            yield from now[id].changes(held)
        yield from self._arrivals(set(staying))

    def _arrivals(self, staying: set[str]) -> Iterator[str]:
        """Yield each run of new parts, beside one that stays or as all there is."""
        run: list[Part] = []
        before = ""
        for part in self.parts:
            if part.id not in staying:
                run.append(part)
                continue
            if run:
                place = f"afterend:#{before}" if before else f"beforebegin:#{part.id}"
                yield _swap(place, *(each.markup() for each in run))
            run, before = [], part.id
        if run:
            place = f"afterend:#{before}" if before else f"innerHTML:#{self.id}"
            yield _swap(place, *(each.markup() for each in run))


Piece = str | Part | PartList


def parts_in(markup: str) -> tuple[Piece, ...]:
    """Return rendered markup as text, parts and lists of parts."""
    stack: list[tuple[str, list[Piece]]] = [("", [])]
    position = 0
    for mark in _MARK.finditer(markup):
        _append(stack[-1][1], markup[position : mark.start()])
        position = mark.end()
        if not mark[1]:
            stack.append((mark[2] or "", []))
            continue
        id, pieces = stack.pop()
        closed = _part_list(id, pieces) if id else Part(tuple(pieces))
        stack[-1][1].append(closed)
    _append(stack[-1][1], markup[position:])
    return tuple(stack[0][1])


def held_parts(header: str) -> dict[str, str]:
    """Return the digests by id that a request tells; nothing if they are malformed."""
    pairs = [_HELD.fullmatch(word) for word in header.split()]
    return {} if None in pairs else {pair[1]: pair[2] for pair in pairs if pair}


def markup_of(pieces: Iterable[Piece]) -> str:
    """Return all markup, with the digests of the parts."""
    return "".join([piece if isinstance(piece, str) else piece.markup() for piece in pieces])


def changes(pieces: Iterable[Piece], held: Held) -> Iterator[str]:
    """Yield the swaps that turn the parts that are held into these."""
    for piece in pieces:
        if not isinstance(piece, str):
            yield from piece.changes(held)


def _part_list(id: str, pieces: list[Piece]) -> PartList:
    return PartList(id, tuple(piece for piece in pieces if isinstance(piece, Part)))


def _append(pieces: list[Piece], text: str) -> None:
    if text and not (text.isspace() and not pieces):
        pieces.append(text)


def _swap(how: str, *markup: str) -> str:
    """Return a swap whose element only carries what is put in its place."""
    return f'<div hx-swap-oob="{how}">{"".join(markup)}</div>'
