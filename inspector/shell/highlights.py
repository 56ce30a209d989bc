"""The highlights that a room adds to the conversation page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chatmemory.reading.rows import MessageDetail


@dataclass(frozen=True)
class Highlights:
    """What a room highlights on the conversation page, such as a searched phrase.

    - `phrase`: the phrase to mark in texts, or "".
    - `rows`: the messages to outline. By default, the page shows the history around the last of
      them.
    - `band`: ranges of steps to mark on the timeline, each as its first and last step. `words`
      describe the ranges.
    - `kept`: URL parameters to add to the links of the page, such as the searched phrase.
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
