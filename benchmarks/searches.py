"""Measure searches of 100,000 conversations with 2,000,000 messages."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.fleets import ABSENT, COMMON, MESSAGES, RARE, fleet
from benchmarks.made import made, opened
from benchmarks.measuring import QUICK, Figure, compared, in_turns

MANY = int(os.environ.get("CONVERSATIONS", 5_000 if QUICK else 100_000))
ROUNDS = 40
SIZE = 25
WORD, PHRASE = 10, 100
SEARCHES = {
    f"a common word, {COMMON}": (COMMON, WORD),
    f"a rare word, {RARE}": (RARE, WORD),
    f"an absent word, {ABSENT}": (ABSENT, WORD),
    "a common phrase": (f"about the {COMMON}", PHRASE),
    "a rare phrase": (f"{RARE} coast", PHRASE),
    "an absent phrase of common words": (f"{COMMON} about the", PHRASE),
}


def figures(folder: str) -> Iterator[Figure]:
    with opened(made(f"fleet-{MANY}", partial(fleet, MANY))):
        yield from searches()


def searches() -> Iterator[Figure]:
    """Compare a page of search results, with the matching lines, to a page of a search by id."""
    from chatmemory.reading.finding import MemoryFilter
    from chatmemory.reading.overview import memory_page, overview_page

    def page(words: str) -> None:
        overview_page(MemoryFilter(search=words), size=SIZE)

    def found(words: str) -> None:
        memory_page(MemoryFilter(search=words), size=SIZE)

    floor: dict[str, Callable[[], object]] = {
        "a page by id": lambda: memory_page(ordering="id", size=SIZE),
    }
    for name, (words, limit) in SEARCHES.items():
        assert_found(words)
        times = in_turns({"the search": partial(found, words), **floor}, ROUNDS)
        yield compared(f"search for {name}, {MANY * MESSAGES:,} messages", limit, times)
    with_lines = {"a page by id": lambda: overview_page(ordering="id", size=SIZE)}
    times = in_turns({"with lines found": partial(page, COMMON), **with_lines}, ROUNDS)
    yield compared("overview's rows of a common word", WORD, times)


def assert_found(words: str) -> None:
    from chatmemory.reading.finding import MemoryFilter
    from chatmemory.reading.overview import overview_page

    rows = overview_page(MemoryFilter(search=words)).rows
    is_absent = words in (ABSENT, SEARCHES["an absent phrase of common words"][0])
    assert bool(rows) != is_absent
    assert all(row.mention and words in row.mention.text for row in rows)
