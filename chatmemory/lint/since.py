"""Since which step a window breaks a rule, derived from when its messages came and others left.

Each rule of the catalog names one of these functions. It gets the numbers of the messages at fault
and returns the step from which on the window breaks the rule by them, or None where the times of
messages do not show: their order was changed since, or it is longer ago than is known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from chatmemory.messages.message import MessageType

CallIds = tuple[str | None, ...]

_SYSTEM, _USER, _AI = MessageType.SYSTEM, MessageType.USER, MessageType.AI
_RESULT, _CUSTOM = MessageType.TOOL_EXECUTION_RESULT, MessageType.CUSTOM
_SILENT = (_SYSTEM, _CUSTOM)  # types that are not said


class Place(NamedTuple):
    """The time of a message in a window, at one place: from step `entered` to before step `left`,
    or until now. `rank` orders a window. `n` numbers the places in the order in which they began.
    One that `is_moved` ended because the message went to another place, or was counted anew.
    """

    n: int
    seq: int
    type: MessageType
    has_calls: bool
    rank: int
    entered: int
    left: int | None = None
    is_moved: bool = False

    @property
    def was_seen(self) -> bool:
        """Whether it was in a window: a message may leave in the step that adds it."""
        return self.left is None or self.left > self.entered

    @property
    def is_said(self) -> bool:
        return self.type not in _SILENT


class Past:
    """The places of a window, and of what left it from step `known_from` on.

    `read_ids` returns the ids of the calls that messages make or answer, by number; it may leave
    out those that are too many to be read.
    """

    def __init__(
        self,
        places: Iterable[Place],
        read_ids: Callable[[Collection[int]], Mapping[int, CallIds]],
        known_from: int = 0,
    ) -> None:
        self._came: dict[int, int] = {}  # by the number of a place: since when the message is in
        self._read_ids = read_ids
        found = self._joined(places)
        self.window = sorted((each for each in found if each.left is None), key=attrgetter("rank"))
        self._places = {each.seq: each for each in self.window}
        self.left = sorted(
            (each for each in found if each.left is not None and each.was_seen),
            key=lambda each: (-(each.left or 0), -each.rank),
        )
        moved = (each.left or 0 for each in self.left if each.is_moved)
        self._ordered_since = max([known_from, *moved, *_inserted(found)])

    def _joined(self, places: Iterable[Place]) -> list[Place]:
        """Return places by rank, joining those of one message that follow without a pause."""
        found: dict[int, Place] = {}
        moved: dict[tuple[int, int], Place] = {}
        for each in sorted(places, key=attrgetter("n")):
            before = moved.pop((each.seq, each.entered), None)
            self._came[each.n] = self._came[before.n] if before else each.entered
            if before is not None and before.rank == each.rank:
                each = each._replace(n=before.n, entered=before.entered)
            found[each.n] = each
            if each.is_moved and each.left is not None:
                moved[each.seq, each.left] = each
        return list(found.values())

    def place(self, seq: int) -> Place:
        return self._places[seq]

    def came(self, seq: int) -> int:
        """Return the step since which a message has been in the window, at whatever place."""
        return self._came[self.place(seq).n]

    def sure(self, step: int, *named: Place) -> int | None:
        """Return a step that depends on the order of the window; None if that was changed since."""
        if step < self._ordered_since:
            return None
        came = (self._came[each.n] for each in named if each.entered == step)
        return step if all(each == step for each in came) else None

    def touching(self, seqs: Iterable[int], since: int) -> list[Place] | None:
        """Return what left after a step and made or answered a call with an id of these messages;
        None if it cannot be read.
        """
        left = [each for each in self.left_after(since) if each.has_calls or each.type is _RESULT]
        if not left:
            return []
        known = self._read_ids({*seqs, *(each.seq for each in left)})
        if any(each.seq not in known for each in left):
            return None
        ids = {id for seq in seqs for id in known.get(seq, (None,))}
        return [each for each in left if not ids.isdisjoint(known[each.seq])]

    def left_after(self, step: int) -> list[Place]:
        """Return the messages that left after a step, the last first."""
        return [each for each in self.left if (each.left or 0) > step]


def _inserted(places: Iterable[Place]) -> list[int]:
    """Return the steps at which messages came before others that were there. What a system message
    at the head follows does not change.
    """
    found, first = [], None
    for each in sorted(places, key=attrgetter("rank"), reverse=True):
        if first is not None and each.n > first and each.type is not _SYSTEM:
            found.append(each.entered)
        first = each.n if first is None else min(first, each.n)
    return found


# Where a provider takes several messages as one turn, the first of them is named, and its calls may
# be those of another: then it is not known since when.
Since = Callable[[Past, Sequence[int]], int | None]


def unknown(past: Past, seqs: Sequence[int]) -> int | None:
    """The times of messages do not show since when."""
    return None


def when_it_came(past: Past, seqs: Sequence[int]) -> int | None:
    """The message is at fault by itself."""
    return past.came(seqs[0])


def when_all_came(past: Past, seqs: Sequence[int]) -> int | None:
    """The messages are at fault in any place."""
    return max(map(past.came, seqs))


def when_two_came(past: Past, seqs: Sequence[int]) -> int | None:
    """There is more than one system message, the one that is named came first, and none left."""
    step = sorted(map(past.came, seqs))[1]
    has_left = any(each.type is _SYSTEM for each in past.left_after(step - 1))
    return None if has_left or past.came(seqs[0]) > step else step


def when_it_became_first(past: Past, seqs: Sequence[int]) -> int | None:
    place = past.place(seqs[0])
    before = (each for each in past.left_after(place.entered) if each.is_said)
    left = (each.left or 0 for each in before if each.rank < place.rank)
    return past.sure(max([place.entered, *left]), place)


def when_it_was_behind_others(past: Past, seqs: Sequence[int]) -> int | None:
    place = past.place(seqs[0])
    before = [each for each in past.window if each.is_said and each.rank < place.rank]
    is_certain = any(each.entered <= place.entered for each in before)
    return past.sure(place.entered, place) if is_certain else None


def when_it_followed_the_model(past: Past, seqs: Sequence[int]) -> int | None:
    """Directly before a call was neither a user nor a result since the last of those left."""
    place = past.place(seqs[0])
    if not place.has_calls:
        return None
    said = (each.rank for each in past.window if each.is_said and each.rank < place.rank)
    before = max(said, default=None)
    for each in past.left_after(place.entered):
        is_behind = before is None or each.rank > before
        if each.is_said and is_behind and each.rank < place.rank:
            if each.type is not _AI:
                return past.sure(each.left or 0, place)
            before = each.rank
    return past.sure(place.entered, place)


def when_its_call_left(past: Past, seqs: Sequence[int]) -> int | None:
    """A result is without its call since it came, or since the call left."""
    place = past.place(seqs[0])
    calls = past.touching(seqs[:1], place.entered)
    if calls is None or not all(each.has_calls for each in calls):
        return None
    return past.sure(max([place.entered, *(each.left or 0 for each in calls)]), place)


def when_it_was_passed(past: Past, seqs: Sequence[int]) -> int | None:
    """A call was not answered before another message came."""
    call = past.place(seqs[0])
    if not call.has_calls:
        return None
    behind = (each for each in past.window if each.rank > call.rank)
    passed = next((each for each in behind if each.type not in (_RESULT, _CUSTOM)), None)
    if passed is None:
        return None
    left = (each.rank for each in past.left_after(call.entered) if each.type is not _CUSTOM)
    if any(call.rank < rank < passed.rank for rank in left):
        return None
    step = max(call.entered, passed.entered)
    return None if past.touching(seqs[:1], step) != [] else past.sure(step, call, passed)


def when_both_came(past: Past, seqs: Sequence[int]) -> int | None:
    """A result is not directly behind its call, or not the only one."""
    one, other = (past.place(seq) for seq in seqs[:2])
    if other.type is _AI and not other.has_calls:
        return None
    step = max(one.entered, other.entered)
    first, last = sorted((one.rank, other.rank))
    if any(each.entered > step for each in past.window if first < each.rank < last):
        return None
    return None if past.touching(seqs[:1], step) != [] else past.sure(step, one, other)


def when_what_follows_came(past: Past, seqs: Sequence[int]) -> int | None:
    """The message that a message needs behind it never followed, or left."""
    place = past.place(seqs[0])
    behind = (each.rank for each in past.window if each.rank > place.rank)
    following = min(behind, default=None)
    for each in past.left_after(place.entered):
        if each.rank > place.rank and (following is None or each.rank < following):
            return None
    return past.sure(place.entered, place)


def when_no_user_was_left(past: Past, seqs: Sequence[int]) -> int | None:
    """Messages are in memory, and the last one of a user has left."""
    users = (each.left or 0 for each in past.left if each.type is _USER)
    last = max(users, default=None)
    others = [each for each in (*past.window, *past.left) if each.is_said]
    if last is None or not others:
        return None
    since = min(each.entered for each in others if each.left is None)
    for each in others:
        if each.left is not None and each.left < since:
            break  # the window was empty for a while
        since = min(since, each.entered)
    return max(since, last)
