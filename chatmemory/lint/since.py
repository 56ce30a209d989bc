"""Finds the step since which a window breaks a rule, from the steps at which messages came and
left.

Each rule names a function of this module in its field `since`. The function gets the numbers of the
messages at fault. It returns None if the step is uncertain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from chatmemory.messages.message import MessageType

CallIds = tuple[str | None, ...]

_SYSTEM, _USER, _AI = MessageType.SYSTEM, MessageType.USER, MessageType.AI
_RESULT, _CUSTOM = MessageType.TOOL_EXECUTION_RESULT, MessageType.CUSTOM
_SILENT = (_SYSTEM, _CUSTOM)  # types that are no turn of a conversation


class PastStay(NamedTuple):
    """A stay of a message in memory, from step `entered` to step `left`. `left` is None while the
    message is in memory.

    - `n`: the number of the stay. Stays are numbered in the order in which they began.
    - `seq`: the number of the message.
    - `rank`: the number that orders the messages of a window.
    - `is_moved`: whether a new stay of the message began when this stay ended. This happens if the
      message is moved, pinned, cleared or counted again.
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
        """Whether the stay lasted at least until the next step. False if the step that added the
        message also removed it.
        """
        return self.left is None or self.left > self.entered

    @property
    def is_said(self) -> bool:
        return self.type not in _SILENT


class Past:
    """The stays of a conversation's messages. Stays that ended at step `known_from` or before may
    be missing.

    `read_ids` is a function that takes numbers of messages. For each of the numbers, it returns the
    ids of the tool calls that the message makes or answers. Messages whose ids cannot be read are
    missing in its result.
    """

    def __init__(
        self,
        stays: Iterable[PastStay],
        read_ids: Callable[[Collection[int]], Mapping[int, CallIds]],
        known_from: int = 0,
    ) -> None:
        self._entered_at: dict[int, int] = {}  # by the number of a stay
        self._read_ids = read_ids
        found = self._joined(stays)
        self.window = sorted((each for each in found if each.left is None), key=attrgetter("rank"))
        self._in_window = {each.seq: each for each in self.window}
        self.left = sorted(
            (each for each in found if each.left is not None and each.was_seen),
            key=lambda each: (-(each.left or 0), -each.rank),
        )
        moved = (each.left or 0 for each in self.left if each.is_moved)
        self._ordered_since = max([known_from, *moved, *_inserted(found)])

    def _joined(self, stays: Iterable[PastStay]) -> list[PastStay]:
        """Return the stays, with stays of one message that directly follow each other joined into
        one.
        """
        found: dict[int, PastStay] = {}
        moved: dict[tuple[int, int], PastStay] = {}
        for each in sorted(stays, key=attrgetter("n")):
            before = moved.pop((each.seq, each.entered), None)
            self._entered_at[each.n] = self._entered_at[before.n] if before else each.entered
            if before is not None and before.rank == each.rank:
                each = each._replace(n=before.n, entered=before.entered)
            found[each.n] = each
            if each.is_moved and each.left is not None:
                moved[each.seq, each.left] = each
        return list(found.values())

    def stay(self, seq: int) -> PastStay:
        return self._in_window[seq]

    def entered_at(self, seq: int) -> int:
        """Return the step since which a message has been in the window without a break. Moves
        within the window are no breaks.
        """
        return self._entered_at[self.stay(seq).n]

    def sure(self, step: int, *named: PastStay) -> int | None:
        """Return `step` if the order of the messages in the window is known since this step, else
        None.

        Also returns None if one of the messages `named` moved within the window at this step.
        """
        if step < self._ordered_since:
            return None
        steps = (self._entered_at[each.n] for each in named if each.entered == step)
        return step if all(each == step for each in steps) else None

    def touching(self, seqs: Iterable[int], since: int) -> list[PastStay] | None:
        """Return the messages that left after step `since` and share a tool call id with one of the
        messages `seqs`.

        None if the ids of a tool call or tool result that left after this step cannot be read.
        """
        left = [each for each in self.left_after(since) if each.has_calls or each.type is _RESULT]
        if not left:
            return []
        known = self._read_ids({*seqs, *(each.seq for each in left)})
        if any(each.seq not in known for each in left):
            return None
        ids = {id for seq in seqs for id in known.get(seq, (None,))}
        return [each for each in left if not ids.isdisjoint(known[each.seq])]

    def left_after(self, step: int) -> list[PastStay]:
        """Return the stays that ended after step `step`. The stay that ended last comes first."""
        return [each for each in self.left if (each.left or 0) > step]


def _inserted(stays: Iterable[PastStay]) -> list[int]:
    """Return the steps at which a message was put before a message that was already in the window.
    A system message at the head does not count.
    """
    found, first = [], None
    for each in sorted(stays, key=attrgetter("rank"), reverse=True):
        if first is not None and each.n > first and each.type is not _SYSTEM:
            found.append(each.entered)
        first = each.n if first is None else min(first, each.n)
    return found


# If a provider combines several messages into one turn, a fault names the first of them, although
# the calls may belong to another. Then the step is unknown.
Since = Callable[[Past, Sequence[int]], int | None]


def unknown(past: Past, seqs: Sequence[int]) -> int | None:
    """Return None: the step since which a window breaks the rule is unknown. Rules use this
    function if the stays of messages do not show this step.
    """
    return None


def when_it_came(past: Past, seqs: Sequence[int]) -> int | None:
    """Return the step since which the first message of `seqs` has been in the window. This function
    serves rules that a single message breaks.
    """
    return past.entered_at(seqs[0])


def when_all_came(past: Past, seqs: Sequence[int]) -> int | None:
    """Return the step since which all messages `seqs` are in the window. For rules that several
    messages break together, such as two messages with the same item id.
    """
    return max(map(past.entered_at, seqs))


def when_two_came(past: Past, seqs: Sequence[int]) -> int | None:
    """Return the step since which the window has at least two system messages. `seqs` are the
    system messages of the window, in order.

    None if the step is uncertain, for example because a system message has left since then.
    """
    step = sorted(map(past.entered_at, seqs))[1]
    has_left = any(each.type is _SYSTEM for each in past.left_after(step - 1))
    return None if has_left or past.entered_at(seqs[0]) > step else step


def when_it_became_first(past: Past, seqs: Sequence[int]) -> int | None:
    stay = past.stay(seqs[0])
    before = (each for each in past.left_after(stay.entered) if each.is_said)
    left = (each.left or 0 for each in before if each.rank < stay.rank)
    return past.sure(max([stay.entered, *left]), stay)


def when_it_was_behind_others(past: Past, seqs: Sequence[int]) -> int | None:
    stay = past.stay(seqs[0])
    before = [each for each in past.window if each.is_said and each.rank < stay.rank]
    is_certain = any(each.entered <= stay.entered for each in before)
    return past.sure(stay.entered, stay) if is_certain else None


def when_it_followed_the_model(past: Past, seqs: Sequence[int]) -> int | None:
    """Return the step since which an AI message with tool calls directly follows another AI
    message, or begins the window. System messages and custom messages are ignored.

    None if the step is uncertain.
    """
    stay = past.stay(seqs[0])
    if not stay.has_calls:
        return None
    ranks = (each.rank for each in past.window if each.is_said and each.rank < stay.rank)
    before = max(ranks, default=None)
    for each in past.left_after(stay.entered):
        is_behind = before is None or each.rank > before
        if each.is_said and is_behind and each.rank < stay.rank:
            if each.type is not _AI:
                return past.sure(each.left or 0, stay)
            before = each.rank
    return past.sure(stay.entered, stay)


def when_its_call_left(past: Past, seqs: Sequence[int]) -> int | None:
    """Return the step since which the window has a tool result but not its tool call. None if the
    step is uncertain.
    """
    stay = past.stay(seqs[0])
    calls = past.touching(seqs[:1], stay.entered)
    if calls is None or not all(each.has_calls for each in calls):
        return None
    return past.sure(max([stay.entered, *(each.left or 0 for each in calls)]), stay)


def when_it_was_passed(past: Past, seqs: Sequence[int]) -> int | None:
    """Return the step since which a tool call has no result although another message follows. None
    if the step is uncertain.
    """
    call = past.stay(seqs[0])
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
    """Return the step since which the first two messages of `seqs` are both in the window. None if
    the step is uncertain.

    For the rules about a tool result that does not directly follow its tool call, and about two
    results of one tool call.
    """
    one, other = (past.stay(seq) for seq in seqs[:2])
    if other.type is _AI and not other.has_calls:
        return None
    step = max(one.entered, other.entered)
    first, last = sorted((one.rank, other.rank))
    if any(each.entered > step for each in past.window if first < each.rank < last):
        return None
    return None if past.touching(seqs[:1], step) != [] else past.sure(step, one, other)


def when_what_follows_came(past: Past, seqs: Sequence[int]) -> int | None:
    """Return the step since which the first message of `seqs` breaks the rule `lone_reasoning`: the
    step at which this message came.

    None if the step is uncertain, for example because the message that followed has left.
    """
    stay = past.stay(seqs[0])
    behind = (each.rank for each in past.window if each.rank > stay.rank)
    following = min(behind, default=None)
    for each in past.left_after(stay.entered):
        if each.rank > stay.rank and (following is None or each.rank < following):
            return None
    return past.sure(stay.entered, stay)


def when_no_user_was_left(past: Past, seqs: Sequence[int]) -> int | None:
    """Return the step since which the window has messages, but no user message. None if the step is
    uncertain.
    """
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
