"""Changes of one memory take turns in this process where its store cannot lock it."""

from __future__ import annotations

from threading import Lock, RLock
from typing import Any
from weakref import WeakValueDictionary

# By store and memory id. A memory keeps its store and its turn, so that a store that is gone does
# not share a number with a new one.
_turns: WeakValueDictionary[tuple[int, str], Any] = WeakValueDictionary()
_guard = Lock()


def turn_of(store: object, memory_id: str) -> Any:
    """Return the lock that all memories with this store and id share."""
    with _guard:
        return _turns.setdefault((id(store), memory_id), RLock())
