"""A kind of policy for tests: it keeps the messages from the last user message on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from chatmemory.windows.eviction import Eviction, Head
from chatmemory.windows.policies import Policy
from chatmemory.windows.window import Weighable


@dataclass(frozen=True)
class PageWindow(Policy):
    kind: ClassVar[str] = "page_window"
    label: ClassVar[str] = "Page window"
    unit: ClassVar[str] = "pages"
    short_unit: ClassVar[str] = "pg"
    limit_name: ClassVar[str] = "max_pages"

    def cost(self, message: Weighable) -> int:
        return 1

    def evict(self, head: Head) -> Iterator[Eviction]:
        while self.is_exceeded_by(head.totals) and head.peek(0):
            yield from head.evict(0)
