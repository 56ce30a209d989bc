"""Reloads the server without a pause: old workers accept connections until a new worker has
started.

Gunicorn ends the old workers as soon as it has forked the new workers, which need seconds to import
everything. Without this module, no worker would answer requests during that time.
"""

from __future__ import annotations

from multiprocessing.sharedctypes import RawArray

# Shared by gunicorn and its workers, which gunicorn numbers by age: the newest worker when the last
# reload began, and the newest one that has started.
_ages = RawArray("q", 2)
_RELOADED, _STARTED = range(2)


def reload_begins(newest: int) -> None:
    _ages[_RELOADED] = newest


def worker_started(age: int) -> None:
    """Tell the waiting old workers that a new worker has started. `age` is gunicorn's number of the
    new worker.
    """
    _ages[_STARTED] = max(_ages[_STARTED], age)


worker_ended = worker_started  # it ends before it has started: nobody should wait for it


def must_wait(age: int) -> bool:
    """Return whether a worker must keep accepting connections: it is being replaced, but no newer
    worker has started yet. `age` is gunicorn's number of the worker.
    """
    reloaded, started = _ages
    return bool(started <= reloaded >= age)
