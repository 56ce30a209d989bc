"""Tool calls and the results that answer them, in formats that leave ids out."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field


@dataclass
class Calls:
    """The calls of a conversation so far: paired by id, and by position where there are no ids.

    `taken` holds the ids that made-up ones must not repeat.
    """

    taken: frozenset[str] = frozenset()
    _made: int = 0
    _names: dict[str, str | None] = field(default_factory=dict)
    _waiting: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def opened(self, id: str | None, name: str | None) -> str:
        """Return the id of a new call: its own, else the next free of `call_1`, `call_2`…"""
        id = id or self._new_id()
        self._names[id] = name
        self._waiting[id] = None
        return id

    def answered(self, id: str | None, name: str | None = None) -> tuple[str | None, str | None]:
        """Return the call id and tool name of a result; without an id the oldest open call's."""
        id = id or next(iter(self._waiting), None)
        if id is None:
            return None, name
        self._waiting.pop(id, None)
        return id, name or self._names.get(id)

    def interrupted(self) -> None:
        """Close all open calls: a result after a user message cannot answer an earlier call."""
        self._waiting.clear()

    def _new_id(self) -> str:
        self._made += 1
        while (id := f"call_{self._made}") in self.taken:
            self._made += 1
        return id
