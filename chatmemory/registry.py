"""Registries of policy kinds, formats and estimators. Packages and projects add their own items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from threading import RLock
from typing import TypeVar

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """A mapping from names to items. An item is built in, registered, or loaded from an entry point
    of the entry point group `group`.

    - Entry points are loaded when all names are listed, or when an unknown name is looked up.
    - An entry point is logged and left out if it fails to load, or if `accepts` returns False for
      its item.
    - A built-in item may be None. The first lookup of its name then calls `loads` with the name,
      and uses the result as the item.
    - A loaded item has the name of its entry point. If `named_by` is "kind", its name is
      `item.kind` instead.
    """

    def __init__(
        self,
        group: str,
        builtin: Mapping[str, T] | Mapping[str, None],
        accepts: Callable[[object], bool] | None = None,
        named_by: str = "",
        loads: Callable[[str], T] | None = None,
    ) -> None:
        self.group = group
        self.named_by = named_by
        self._items: dict[str, T | None] = dict(builtin)
        self._loads = loads
        self.accepts = accepts or (lambda item: True)
        self._is_loaded = False
        self._is_loading = False
        self._lock = RLock()

    def register(self, name: str, item: T) -> None:
        """Add an item under a name, or replace the item that has this name. Raises TypeError if
        `accepts` returns False for the item.
        """
        if not self.accepts(item):
            raise TypeError(f"{item!r} cannot be registered in {self.group}")
        self._items[name] = item

    def unregister(self, name: str) -> None:
        """Remove the item with this name. Raises KeyError for an unknown name."""
        del self._items[name]

    def __getitem__(self, name: str) -> T:
        item = self.get(name)
        if item is None:
            raise KeyError(name)
        return item

    def get(self, name: str, default: T | None = None) -> T | None:  # type: ignore[override]  # a registry has names only
        """Return the item with this name, or `default`. Loads entry points if the name is
        unknown.
        """
        if name not in self._items and not self._is_loaded:
            self._load()
        item = self._items.get(name, default)
        if item is None and self._loads and name in self._items:
            item = self._items[name] = self._loads(name)
        return item

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(tuple(self._items))

    def __len__(self) -> int:
        self._load()
        return len(self._items)

    def _load(self) -> None:
        if self._is_loaded:
            return
        with self._lock:
            # A module that is loaded below may use this registry.
            if self._is_loaded or self._is_loading:
                return
            self._is_loading = True
            from importlib.metadata import entry_points

            for entry in entry_points(group=self.group):
                self._load_one(entry.name, entry.load)
            self._is_loaded = True

    def _load_one(self, name: str, load: Callable[[], T]) -> None:
        try:
            item = load()
            name = getattr(item, self.named_by) if self.named_by else name
            if name not in self._items:
                self.register(name, item)
        except Exception:
            import logging

            logger = logging.getLogger(__name__)
            logger.exception("%s %r cannot be loaded and is ignored", self.group, name)
