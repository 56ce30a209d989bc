"""Incidents on the overview: badges in the rows of conversations, and entries of its feed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from chatmemory.reading.feed import microseconds
from chatmemory.reading.rows import MemoryRow
from chatmemory.recall.incidents import incident_words
from inspector.rooms.evidence.lists import (
    NewestIncident,
    came_up_again,
    latest_incidents,
    newest_incidents,
)
from inspector.shell.room import Badge, FeedEntry

FOLDER = "rooms/evidence"


def badges(rows: Sequence[MemoryRow]) -> Mapping[str, list[Badge]]:
    """Return badges by conversation ID: the newest fact that a user had to repeat, or a note that
    the stored row cannot be read.
    """
    found = newest_incidents([row.id for row in rows])
    again = {memory_id: [_badge(each)] for memory_id, each in found.by_id.items()}
    unreadable = {
        memory_id: [Badge(f"{FOLDER}/_unreadable_row.html", {"unreadable": words})]
        for memory_id, words in found.unreadable.items()
    }
    return again | unreadable


def _badge(found: NewestIncident) -> Badge:
    context = {"again": found, "came_up_again": came_up_again(found)}
    words = incident_words(found.incident)
    return Badge(f"{FOLDER}/_again_row.html", context, words=words)


def news(size: int) -> Iterator[FeedEntry]:
    """Yield entries of the overview's feed, for at most `size` conversations. Stored rows that
    cannot be read come first, then the latest facts that users had to repeat.
    """
    latest = latest_incidents(size)
    for memory_id, words in latest.unreadable.items():
        context = {"memory_id": memory_id, "unreadable": words}
        yield FeedEntry(f"{FOLDER}/_unreadable_news.html", context, is_first=True)
    for again in latest.by_id.values():
        fact = {"again": again, "came_up_again": came_up_again(again)}
        moment = microseconds(again.at)
        yield FeedEntry(f"{FOLDER}/_again.html", fact, moment=moment, step=again.incident.step)
