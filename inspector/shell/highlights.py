"""What a room marks on the page of a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chatmemory.reading.rows import MessageDetail


@dataclass(frozen=True)
class Highlights:
    """The marks of a room on the conversation page: a `phrase` in its texts, and messages that are
    outlined; the history opens at the last one. A `band` on the timeline has ranges of steps, with
    `words`. Links of the page keep the parameters `kept`.
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
