"""Things that packages and projects add by name: policy kinds, formats, estimators."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Registry(Mapping[str, T]):
    """Items by name: the built-in ones, those registered, and those of an entry point group.

    Entry points are loaded when a name is not found among the others, or when all names are asked
    for. An entry point that cannot be loaded is logged and left out, so that one broken package
    does not stop the rest.
    """

    def __init__(self, group: str, builtin: Mapping[str, T]) -> None:
        self.group = group
        self._items: dict[str, T] = dict(builtin)
        self._has_loaded = False

    def register(self, name: str, item: T) -> None:
        """Add an item, or replace the one of that name."""
        self._items[name] = item

    def unregister(self, name: str) -> None:
        del self._items[name]

    def __getitem__(self, name: str) -> T:
        if name not in self._items:
            self._load()
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(tuple(self._items))

    def __len__(self) -> int:
        self._load()
        return len(self._items)

    def _load(self) -> None:
        if self._has_loaded:
            return
        self._has_loaded = True
        for entry in entry_points(group=self.group):
            try:
                self._items.setdefault(entry.name, entry.load())
            except Exception:
                logger.exception("%s %r cannot be loaded: it is left out", self.group, entry.name)
