"""Says on the overview whether a change of a policy or label helped against a problem. The hourly
figures before and after the change are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from chatmemory.flag import Flag
from inspector.rooms.hours.changes import (
    SHOWN_FOR,
    Change,
    Effect,
    closing_of,
    effect_of,
)
from inspector.rooms.hours.fleet import Counting, Spent, causes
from inspector.shell.times import written


@dataclass(frozen=True)
class Telling:
    """What the overview says about one problem: whether a change of a policy or label helped.

    - `effect`: a sentence, or "".
    - `closed`: the time at which the problem counts as ended, in seconds since 1970; else 0.
    - `is_again`: whether the problem had ended, and began again.
    - `is_shown`: whether the overview still shows a problem that has ended. False one week after
      the end.
    """

    effect: str
    closed: int = 0
    is_again: bool = False
    is_shown: bool = True


def told(
    changes: Sequence[Change],
    rows: Sequence[Spent],
    now: datetime,
    before: Mapping[str, Telling],
) -> dict[str, Telling]:
    """Return what to say about each problem, by name of its flag: whether a change of a policy or
    label helped. Problems about which there is nothing to say are left out.

    For each problem, one of the `changes` is chosen: the change that concerns the most
    conversations with this problem. `rows` are the hourly figures of all conversations.

    `before` is what this function returned the last time. A problem that had ended stays ended
    until it begins again, even if its change is too old to be in `changes`.
    """
    these = causes()
    counting, by_id = Counting.of(these), _by_id(rows)
    found = [row for row in rows if row.cases]
    said = {each.name: _told(each, found, changes, by_id, counting, now) for each in these}
    kept = {name: _since(before.get(name), each[0], each[1], now) for name, each in said.items()}
    return {name: each for name, each in kept.items() if each is not None}


def _by_id(rows: Iterable[Spent]) -> dict[str, list[Spent]]:
    found: defaultdict[str, list[Spent]] = defaultdict(list)
    for row in rows:
        found[row.memory_id].append(row)
    return found


def _told(
    cause: Flag,
    found: Sequence[Spent],
    changes: Sequence[Change],
    by_id: Mapping[str, Sequence[Spent]],
    counting: Counting,
    now: datetime,
) -> tuple[Telling | None, int]:
    """Return what to say about a cause, and the hour of its last case. None if there is nothing to
    say, and 0 if there is no case. `found` are the hours with a case of any cause.
    """
    cases = [row for row in found if counting.number(row, cause)]
    last = max((row.hour for row in cases), default=0)
    change = _change_of({row.memory_id for row in cases}, changes)
    if change is None:
        return None, last
    concerned = [each for each in (*change.hours, *change.before, *change.after) if each in by_id]
    own = [row for each in concerned for row in by_id[each]]
    effect = effect_of(change, cause, own, counting, now)
    if not effect.before.turns:
        return None, last
    others = [row for row in cases if not change.concerns(row.memory_id)]
    closing = closing_of(change, cause, [*own, *others], counting, now)
    words = effect_words(effect, is_closed=closing.at is not None)
    return Telling(words, closing.at or 0, closing.came_back), last


def _change_of(having: set[str], changes: Sequence[Change]) -> Change | None:
    """Return the change that concerns most of the conversations in `having`. If several do, return
    the newest.
    """
    numbers = {n: sum(map(each.concerns, having)) for n, each in enumerate(changes)}
    found = min(numbers, key=lambda n: (-numbers[n], n), default=None)
    return changes[found] if found is not None and numbers[found] else None


def _since(
    before: Telling | None, found: Telling | None, last: int, now: datetime
) -> Telling | None:
    """Return what to say now. `before` was said the last time, and `found` follows from today's
    figures. `last` is the hour of the last case.
    """
    if before and before.closed > last:
        found = replace(found or before, closed=before.closed)
    elif before and (before.closed or before.is_again):
        found = replace(found or Telling(""), is_again=True)
    if found is None or not found.closed:
        return found
    return replace(found, is_shown=int(now.timestamp()) - found.closed <= SHOWN_FOR)


def effect_words(effect: Effect, is_closed: bool = False) -> str:
    """Return a sentence about the effect of a change: `3.1 cases per 100 turns before limit 3,000
    of 19 Nov, 0.0 after`. Here, `limit 3,000 of 19 Nov` is the change and its day.

    If too little is known, the sentence says that it is too early to tell, or, with `is_closed`,
    that there was no case for 2 days.
    """
    change = f"{effect.change.full} of {written(effect.change.at, 'day')}"
    if is_closed and not effect.is_known:
        return f"no case for 2 days since {change}, and too few turns before it to compare"
    if not effect.is_known:
        turns = "turn" if effect.after.turns == 1 else "turns"
        return f"too early to tell if {change} helped: {effect.after.turns:,} {turns} since"
    before, after = f"{effect.before.rate:.1f}", f"{effect.after.rate:.1f}"
    return f"{before} cases per 100 turns before {change}, {after} after"
