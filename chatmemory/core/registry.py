"""Items that packages and projects add by name: policy kinds, formats, estimators."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from threading import RLock
from typing import Any, TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Registry(Mapping[str, T]):
    """A mapping of built-in items, registered items and those of an entry point group.

    - Entry points are loaded when a name is not found among the others, or when all names are asked
      for.
    - An entry point that cannot be loaded, or whose item `accepts` refuses, is logged and left out,
      so that one broken package does not stop the rest.
    - Its item goes by the attribute `named_by`, or else by the entry point's own name.
    """

    def __init__(
        self,
        group: str,
        builtin: Mapping[str, T],
        accepts: Callable[[Any], bool] | None = None,
        named_by: str = "",
    ) -> None:
        self.group = group
        self.named_by = named_by
        self._items: dict[str, T] = dict(builtin)
        self.accepts = accepts or (lambda item: True)
        self._has_loaded = False
        self._loading = RLock()

    def register(self, name: str, item: T) -> None:
        """Add an item, or replace the one of that name.

        Raises TypeError for an item of another type than the registry holds.
        """
        if not self.accepts(item):
            raise TypeError(f"{item!r} cannot be registered in {self.group}")
        self._items[name] = item

    def unregister(self, name: str) -> None:
        """Remove an item. Raises KeyError where there is none of that name."""
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
        with self._loading:
            if self._has_loaded:
                return
            # Set first: a module that is loaded below may ask this registry for something.
            self._has_loaded = True
            for entry in entry_points(group=self.group):
                self._load_one(entry.name, entry.load)

    def _load_one(self, name: str, load: Callable[[], T]) -> None:
        try:
            item = load()
            name = getattr(item, self.named_by) if self.named_by else name
            if name not in self._items:
                self.register(name, item)
        except Exception:
            logger.exception("%s %r cannot be loaded: it is left out", self.group, name)
