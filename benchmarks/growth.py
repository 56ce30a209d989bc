"""Measure adds, pages and the overview at 100 messages or conversations, and at ten times as many,
up to 100,000. RECORD=1 draws them into docs/images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks.add import add_one
from benchmarks.database import ON_POSTGRESQL
from benchmarks.fleets import MESSAGES, fleet
from benchmarks.made import connected, copied, made, opened, use
from benchmarks.measuring import QUICK, Figure, compared, in_turns
from benchmarks.plots import Plot, draw
from benchmarks.record import IMAGES, RECORD
from benchmarks.server import client
from benchmarks.texts import texts

SIZES = (100, 1_000, 5_000) if QUICK else (100, 1_000, 10_000, 100_000)
FEW, MANY = SIZES[0], SIZES[-1]
ADDS, ROUNDS = 300, 40


def figures(folder: str) -> Iterator[Figure]:
    with copied(made(f"growing-{MANY}", make_conversations), folder) as copy, opened(copy):
        adds = in_turns({_of(n): partial(add_one, f"m-{n}", texts()) for n in SIZES}, ADDS)
        reader = client()
        pages = in_turns({_of(n): partial(read, reader, f"/c/m-{n}/") for n in SIZES}, ROUNDS)
    overviews = in_turns(dict(overviews_of_fleets()), ROUNDS)
    yield compared(f"add at {MANY:,} messages of history", 1.2, ends(adds, 1_000))
    yield compared("conversation page", 1.3, ends(pages, FEW))
    yield compared(f"overview, {MANY * MESSAGES:,} messages", 2, ends(overviews, FEW))
    if RECORD and not ON_POSTGRESQL:
        plot(adds, pages, overviews)


def make_conversations() -> None:
    from tests.long_conversations import long_conversation

    for size in SIZES:
        long_conversation(f"m-{size}", size)


def read(reader: Any, url: str) -> None:
    assert reader.get(url).status_code == 200, url


def overviews_of_fleets() -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield a read of the overview of each fleet, which is in a database of its own."""

    def look(connection: Any, reader: Any, size: int) -> None:
        use(connection, size)
        read(reader, "/")

    for size in SIZES:
        connection = connected(made(f"fleet-{size}", partial(fleet, size)))
        use(connection, size)
        yield _of(size), partial(look, connection, client(), size)


def ends(times: dict[str, float], smaller: int) -> dict[str, float]:
    """Return the time at the largest size and at a smaller one."""
    return {_of(size): times[_of(size)] for size in (MANY, smaller)}


def plot(adds: dict[str, float], *of_pages: dict[str, float]) -> None:
    history = "messages of history"
    draw(
        IMAGES / "performance-add.svg",
        Plot("An add by the length of the history", history, SIZES, {"services.add": _ms(adds)}),
    )
    names = ("a conversation, by its messages", "the overview, by conversations")
    pages = {name: _ms(times) for name, times in zip(names, of_pages, strict=True)}
    titled = "Pages by the size of what they show"
    draw(
        IMAGES / "performance-pages.svg",
        Plot(titled, "messages, or conversations of 20 messages", SIZES, pages),
    )


def _ms(times: dict[str, float]) -> tuple[float, ...]:
    return tuple(times[_of(size)] for size in SIZES)


def _of(size: int) -> str:
    return f"of {size:,}"
