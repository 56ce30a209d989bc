"""The highlights that a room (feature) puts on the conversation page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chatmemory.reading.rows import MessageDetail


@dataclass(frozen=True)
class Highlights:
    """What a room (feature) highlights on the conversation page, such as a searched phrase.

    The page marks `phrase` in texts, and outlines the messages in `rows`; the history is scrolled
    to the last of them. `band` has the ranges of steps to mark on the timeline, and `words`
    describe these ranges. Links of the page keep the URL parameters in `kept`.
    """

    phrase: str = ""
    rows: Sequence[MessageDetail] = ()
    band: Sequence[tuple[int, int]] = ()
    words: str = ""
    kept: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def seqs(self) -> frozenset[int]:
        return frozenset(row.seq for row in self.rows)


NO_HIGHLIGHTS = Highlights()
