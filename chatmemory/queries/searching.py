"""How a page of a search is found, however often the words were said.

Where few places have the words, the index tells all conversations. Where many have them, the first
conversations of the page's order are tried until it is full, which takes long only if hardly any
of them has the words: then the index tells all of them after all.
"""

from __future__ import annotations

from chatmemory import search
from chatmemory.managers import MemoryQuerySet
from chatmemory.models import Memory
from chatmemory.queries.filters import MemoryFilter

TRIED = (100, 2_000)  # conversations, in turn
READ_MAX = 200_000  # messages of these


def having(which: MemoryFilter, rows: MemoryQuerySet, number: int) -> MemoryQuerySet:
    """Select from sorted rows those that a search finds: all, or as many as a page needs."""
    words, ids = which.search, which.few
    if ids is None and search.scan_is_exact(words):
        ids = _first(words, rows, number)
    return rows.containing(words) if ids is None else rows.filter(id__in=ids)


def countable(which: MemoryFilter) -> MemoryQuerySet | None:
    """Return what matches a filter but for its columns, or None if its search finds too much."""
    rows = which.without_columns().searched()
    if not which.search:
        return rows
    if not search.searches_messages(which.search):
        return rows.containing(which.search)
    return None if which.few is None else rows.filter(id__in=which.few)


def _first(words: str, rows: MemoryQuerySet, number: int) -> list[str] | None:
    """Return the first conversations with the words, or None if there are not enough near."""
    tried: dict[str, int] = {}
    found: list[str] = []
    for end in TRIED:
        these = dict(rows.values_list("id", "last_seq")[len(tried) : end])
        tried |= these
        if sum(tried.values()) > READ_MAX:
            return None
        said = set(Memory.objects.filter(search.scan_filter(words), id__in=these).values_list("id"))
        found += [memory_id for memory_id in these if (memory_id,) in said]
        if len(found) >= number or len(tried) < end:
            return found[:number]
    return None
