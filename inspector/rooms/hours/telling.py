"""Tells whether the change before a cause helped, from the figures by hour."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from chatmemory.flags import flags
from inspector.rooms.hours.changes import (
    SHOWN_FOR,
    Change,
    Effect,
    closing_of,
    effect_of,
)
from inspector.rooms.hours.fleet import Counting, Spent
from inspector.shell.times import written


def told(
    changes: Sequence[Change], rows: Sequence[Spent], now: datetime
) -> dict[str, tuple[str, bool, bool]]:
    """Return for each flag with past cases whether the newest change of the conversations with its
    cases helped: a sentence, whether its cause is closed, and whether it came back.
    """
    counting = Counting.today()
    found: dict[str, tuple[str, bool, bool]] = {}
    for flag in (each for each in flags() if each.name in counting.rules):
        having = {row.memory_id for row in rows if counting.cases(row).get(flag.name)}
        about = (each for each in changes if (each.changed | each.before) & having)
        change = next(about, None)
        if change is None:
            continue
        effect = effect_of(change, flag, rows, counting, now)
        if not effect.before.turns:
            continue
        closing = closing_of(change, flag, rows, counting, now)
        elsewhere = having - change.changed - change.before
        is_closed = closing.at is not None and not elsewhere
        if not is_closed or int(now.timestamp()) - (closing.at or 0) <= SHOWN_FOR:
            found[flag.name] = effect_words(effect), is_closed, closing.came_back
    return found


def effect_words(effect: Effect) -> str:
    """Return `3.1 per 100 turns before limit 3,000 of 19 Nov, 0.0 after`, or that nobody can tell
    yet.
    """
    change = f"{effect.change.words} of {written(effect.change.at, 'day')}"
    if not effect.is_known:
        turns = "turn" if effect.after.turns == 1 else "turns"
        return f"{change}: too early to tell: {effect.after.turns:,} {turns} since"
    return f"{effect.before.rate:.1f} per 100 turns before {change}, {effect.after.rate:.1f} after"
