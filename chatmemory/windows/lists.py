"""Interprets a list of messages that a client sends as a whole: was one message added, or which
messages stayed, moved and left?

A LangChain4j service decides its memory itself: it trims the window, appends a message, trims again
and sends the whole list. The service does not send its limit. So `inferred_add` tries every
possible add under every limit. If exactly one add results in the list, this add is recorded.

The added message may have left at once, so that the new list does not have it. If the new list is
the beginning of the previous list, only such an add is possible.

If no add or several adds explain a list, the list was set as a whole. Its messages are matched with
the messages of the previous list.

Two messages are the same if their whole JSON is equal. If only their attributes differ, the new
message may count as the old message with changed attributes. Some sources do not tell the
attributes of a message ("open attributes"). Such a message is the same as an old message with any
attributes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import eq
from typing import Any, NamedTuple

from chatmemory.messages.codec import decode_json, split_attributes
from chatmemory.messages.message import MessageType, ToolExecutionResultMessage, UserMessage
from chatmemory.windows.policies import MessageWindow
from chatmemory.windows.recovery import interrupted_calls
from chatmemory.windows.transitions import Transition, admit
from chatmemory.windows.window import Entry, Window

_CUSTOM = '{"attributes":'

# Compares a payload of the new list with one of the old list
IsSame = Callable[[Any, Any], bool]  # of two payloads, of one kind or the other


class Payload(NamedTuple):
    """The content of a message, as a value that can be compared.

    `bare` is the JSON of the message without its attributes. `attributes` is the JSON of the
    attributes with sorted names, or "" without attributes. The attributes of a custom message are
    its content, and so a part of `bare`.
    """

    bare: str
    attributes: str = ""

    @classmethod
    def of(cls, payload: str, beside: str | None = None) -> Payload:
        """Return the comparable content of a message from its JSON, `payload`. Pass the JSON of the
        attributes as `beside` if `payload` does not contain them.
        """
        if payload.startswith(_CUSTOM):
            return cls(_sorted(payload))
        bare, attributes = split_attributes(payload)
        found = beside or attributes
        return cls(bare, _sorted(found) if found else "")

    @property
    def is_open(self) -> bool:
        """Whether the source of the message does not tell which attributes the message has."""
        return False

    def counts_as(self, known: Payload) -> bool:
        """Return whether a client's message is the same as `known`, a message of the previous list.
        Attributes are ignored if the source of the client's message does not tell them.
        """
        return self == known or (self.is_open and self.bare == known.bare)

    def changes(self, known: Payload) -> bool:
        """Return whether a client's message has other attributes than the known message. Use this
        method only for messages that are equal without their attributes.
        """
        return not self.is_open and self != known


class OpenPayload(Payload):
    """The content of a message whose source does not tell the attributes ("open attributes").

    `counts_as` ignores attributes. `==` treats the message as a message without attributes.
    """

    @property
    def is_open(self) -> bool:
        return True


def _sorted(text: str) -> str:
    return json.dumps(decode_json(text), sort_keys=True)


class _DownTo(MessageWindow):
    """A message window with a limit that was inferred from a client's list. Unlike other limits,
    the limit may be 0.
    """

    def __post_init__(self) -> None:
        """Accept the limit 0, for an empty list: the added message was too large and left at
        once.
        """


# Placeholders for a message that left in the add that brought it: the list does not have it.
_UNSEEN = Entry.of(UserMessage("unseen"))
_UNSEEN_RESULT = Entry.of(ToolExecutionResultMessage("unseen", "unseen", ""))
_NOT_LISTED = (_UNSEEN, _UNSEEN_RESULT)


def inferred_add(
    window: Window,
    before: Sequence[Hashable],
    arrivals: Sequence[Entry],
    after: Sequence[Hashable],
    is_same: IsSame = eq,
    recovers: bool | None = None,
) -> Transition | None:
    """Return the add that turns the window into a client's new list; None if no add does, or
    several adds do.

    - `before` and `after` are the payloads of the old and the new list.
    - `arrivals` are the entries of the new list.
    - `is_same` compares a payload of the new list with a payload of the old list.
    - `recovers` tells whether the client's policy probably removes interrupted tool calls; None if
      unknown.

    The window must have no pinned messages, as LangChain4j has no pins. The transition has no
    policy, because the client's policy is unknown. If the added message left at once, it is not in
    the new list, and the transition has no arrival.
    """
    is_beginning = _are_same(after, before[: len(after)], is_same)
    found: dict[Hashable, Transition] = {}
    for policies in _possible_policies(window, recovers):
        for transition in _possible_adds(window, len(before), arrivals, is_beginning, policies):
            made = _list_after(transition, window, before, after)
            if made is not None and _are_same(after, made, is_same):
                add = _by_client(transition)
                evicted = frozenset((each.entry, each.reason) for each in add.evictions)
                found.setdefault((add.arrivals, evicted), add)
        if found:
            break
    return next(iter(found.values())) if len(found) == 1 else None


def _possible_policies(window: Window, recovers: bool | None) -> Sequence[Sequence[bool]]:
    """Return the values of `recovers` to try: whether the client's policy removes interrupted
    calls. The second group of values is tried only if no add of the first group explains the list.
    """
    if not interrupted_calls(list(window)):
        return [[False]]
    return [[False, True]] if recovers is None else [[recovers], [not recovers]]


def appended(window: Window, arrival: Entry) -> Transition:
    """Return the transition of a client that appended a message to its list and evicted nothing."""
    length = window.totals.count
    return _by_client(_admit(window, arrival, length, length + 1))


def _are_same(new: Sequence[Hashable], old: Sequence[Hashable], is_same: IsSame) -> bool:
    return len(new) == len(old) and all(map(is_same, new, old))


def _possible_adds(
    window: Window,
    length: int,
    arrivals: Sequence[Entry],
    is_beginning: bool,
    policies: Sequence[bool],
) -> Iterator[Transition]:
    """Yield the adds that a client may have made, under each limit that its list allows.

    The limit may have been lowered before the add. Then messages leave before the arrival, not
    after it, and system messages and tool results are treated differently.
    """
    remaining = len(arrivals)
    for recovers in policies:
        for arrival, is_first in _possible_arrivals(arrivals, is_beginning, recovers):
            for limit_before in (length, remaining, remaining - 1):
                limits = limit_before, remaining
                transition = _admit(window, arrival, *limits, is_first=is_first, recovers=recovers)
                if not transition.ignored:
                    yield transition


def _admit(
    window: Window,
    arrival: Entry,
    *limits: int,
    is_first: bool = False,
    recovers: bool = False,
) -> Transition:
    """Return the add under two limits: the limit before the message is appended, and the limit
    after.
    """
    before, after = (
        _DownTo(
            limit,
            always_keep_system_message_first=is_first,
            auto_recover_orphaned_tool_messages=recovers,
        )
        for limit in limits
    )
    return admit(window, arrival, before, lambda: after)


def _possible_arrivals(
    arrivals: Sequence[Entry], is_beginning: bool, recovers: bool
) -> Iterator[tuple[Entry, bool]]:
    """Yield each message that may have been added, with True if it goes to the head of the window.

    The message may have left at once, and so be in no list: a made-up message stands for it.
    """
    yield _UNSEEN, False
    if recovers:
        yield _UNSEEN_RESULT, False
    if is_beginning:
        return
    yield arrivals[-1], False
    if arrivals[0].type is MessageType.SYSTEM:
        yield arrivals[0], True


def _list_after(
    transition: Transition,
    window: Window,
    before: Sequence[Hashable],
    after: Sequence[Hashable],
) -> list[Hashable] | None:
    """Return the payloads of the window after an add. None if the add contradicts the new list: a
    listed message left, or a message that is not listed stayed.
    """
    evicted = {eviction.entry for eviction in transition.evictions}
    (arrival,) = transition.arrivals
    if (arrival in _NOT_LISTED) != (arrival in evicted):
        return None
    stayed = [
        payload for entry, payload in zip(window, before, strict=True) if entry not in evicted
    ]
    if arrival in _NOT_LISTED:
        return stayed
    return [after[0], *stayed] if transition.at_head else [*stayed, after[-1]]


def _by_client(transition: Transition) -> Transition:
    """Return the add without policies and without made-up messages, which are in no list."""
    return transition._replace(
        policy=None,
        policy_before=None,
        arrivals=tuple(entry for entry in transition.arrivals if entry not in _NOT_LISTED),
        evictions=tuple(each for each in transition.evictions if each.entry not in _NOT_LISTED),
    )


def summarized(
    before: Sequence[str], after: Sequence[str], types: Sequence[MessageType], marked: bool = False
) -> range | None:
    """Return the positions, in the old list, of the messages that a new summary replaces. None if
    the new list has no new summary.

    `before` and `after` are the old and the new list, each message as JSON. `types` are the types
    of the messages in the new list. `marked` is True if an attribute marks one of the first two
    messages of the new list as a summary.

    Only one message of the new list can be the summary: the second if both lists begin with the
    same system message, else the first. This message is a summary if all of this is true:

    - It is not in the old list, and is not a system message.
    - It replaces at least two messages. The rest of the old list follows the summary in the same
      order.
    - If it replaces the last old message, the summary must end the new list, or `marked` must be
      True. Otherwise the client may have started a new conversation.
    """
    place = 1 if types[:1] == [MessageType.SYSTEM] and before[:1] == after[:1] else 0
    if len(after) <= place or types[place] is MessageType.SYSTEM or after[place] in before:
        return None
    behind = list(after[place + 1 :])
    for end in range(place + 2, len(before) + 1):
        kept = list(before[end:])
        if behind[: len(kept)] == kept and (kept or not behind or marked):
            return range(place, end)
    return None


@dataclass(frozen=True)
class Alignment:
    """The matches between the messages of two lists, an old and a new one. Both mappings lead from
    positions in the new list to positions in the old list.

    - `kept`: messages in the same order in both lists.
    - `moved`: messages in another order.
    - `slides` is True if the new list is the old list without its first messages. New messages may
      follow at the end. The very first message, such as the system message, may have stayed.

    A new position in neither mapping belongs to a message that has arrived. An old position in
    neither mapping belongs to a message that has left.
    """

    kept: dict[int, int]
    moved: dict[int, int]
    slides: bool = False

    def left(self, old_length: int) -> list[int]:
        """Return the positions of the old list whose messages have left."""
        stayed = {*self.kept.values(), *self.moved.values()}
        return [position for position in range(old_length) if position not in stayed]


def align_payloads(old: Sequence[Payload], new: Sequence[Payload], by_client: bool) -> Alignment:
    """Match the messages of a new list with the messages of an old list. Messages whose whole
    content is equal are matched first, then messages that differ only in attributes.

    - If the new list is the beginning of the old list, messages at equal positions are matched.
    - Two messages that differ only in attributes are matched if both stand between the same two
      matched messages. At other positions, they are matched only if `by_client` is False, or if the
      new message has open attributes.
    - `by_client` is True for a list that a client sends after each change. In such a list, an equal
      text at another position may be a repetition.
    - If no new message with attributes equals an old message, the client seems to drop attributes.
      Then the attributes of old messages are ignored.
    """
    in_place = Alignment({i: i for i in range(len(new))}, {})
    equal = sum(map(Payload.counts_as, new, old))
    if equal == len(new):
        return in_place
    keeps_attributes = not {each for each in new if each.attributes}.isdisjoint(old)
    known = old if keeps_attributes else [Payload(each.bare) for each in old]
    whole = align(known, new) if by_client else rearrange(known, new)
    bare = [each.bare for each in old]
    if equal >= len(whole.kept) and bare == [each.bare for each in new]:
        return in_place
    if whole.slides:
        return whole
    kept = {**whole.kept, **dict(_in_place(old, new, whole))}
    sent = [None if by_client and not each.is_open else each.bare for each in new]
    matched = Alignment(kept, whole.moved)
    return Alignment(kept, {**whole.moved, **_moves(bare, sent, matched)})


def _in_place(
    old: Sequence[Payload], new: Sequence[Payload], found: Alignment
) -> Iterator[tuple[int, int]]:
    """Yield (new position, old position) of messages that differ only in attributes and stand
    between the same two kept messages.
    """
    known = {*found.kept.values(), *found.moved.values()}
    ends = [*sorted(found.kept.items()), (len(new), len(old))]
    last_new, last_old = -1, -1
    for next_new, next_old in ends:
        places = [j for j in range(last_new + 1, next_new) if j not in found.moved]
        free = [i for i in range(last_old + 1, next_old) if i not in known]
        pairs = _common_subsequence([old[i].bare for i in free], [new[j].bare for j in places])
        yield from ((places[j], free[i]) for i, j in pairs)
        last_new, last_old = next_new, next_old


def align(old: Sequence[Hashable], new: Sequence[Hashable]) -> Alignment:
    """Match the messages of a client's previous list (`old`) and its new list (`new`). The client
    trims its list itself.

    - If one list is the beginning of the other list, messages at equal positions are matched.
    - If the client only removed messages from the beginning and added messages at the end, the
      remaining messages are matched in order. The very first message, such as the system message,
      may have stayed. Besides this message, at least two messages must remain, because two lists
      often share a single message such as "ok".
    - All other lists are matched by `rearrange`.
    """
    if list(new) == list(old[: len(new)]):
        return Alignment({i: i for i in range(len(new))}, {})
    # The slide comes first because it is what a sliding window does to its list. A longest common
    # subsequence may keep as many messages in another way: with repeated messages ("ok", "ok") it
    # can match a new message with one that left, and then the history would miss a message. One
    # message in common is no sign of a slide: two lists often share an "ok".
    for leading in (0, 1):
        shift = _slide(old[leading:], new[leading:]) if old[:leading] == new[:leading] else None
        if shift is not None and (shift == 0 or len(old) - leading - shift > 1):
            first = leading + shift
            slid = {leading + i: first + i for i in range(len(old) - first)}
            return Alignment({**{i: i for i in range(leading)}, **slid}, {}, slides=shift > 0)
    return rearrange(old, new)


def rearrange(old: Sequence[Hashable], new: Sequence[Hashable]) -> Alignment:
    """Match the equal messages of an old list and of a new list that was set as a whole. As many
    messages as possible are matched in the same order. The other equal messages count as moved.

    For the list of a client that removes its oldest messages, use `align`.
    """
    kept = {j: i for i, j in _common_subsequence(old, new)}
    return Alignment(kept, _moves(old, new, Alignment(kept, {})))


def _slide(old: Sequence[Hashable], new: Sequence[Hashable]) -> int | None:
    """Return the smallest k for which old[k:] is not empty and is a prefix of `new`; None if there
    is no such k.

    The lists are compared as texts with one character per message, which is fast: 20 ms for 10,000
    equal messages.
    """
    letters: dict[Hashable, str] = {}
    texts = [
        "".join(letters.setdefault(payload, chr(len(letters))) for payload in payloads)
        for payloads in (old, new)
    ]
    suffixes = (k for k in range(len(old)) if texts[1].startswith(texts[0][k:]))
    return next(suffixes, None)


def _moves(old: Sequence[Hashable], new: Sequence[Hashable], found: Alignment) -> dict[int, int]:
    """Match the equal messages that are not matched yet, from the end of the lists on. They are in
    both lists, in another order.
    """
    free: dict[Hashable, list[int]] = defaultdict(list)
    for i in found.left(len(old)):
        free[old[i]].append(i)
    matched = found.kept.keys() | found.moved.keys()
    candidates = (j for j in reversed(range(len(new))) if j not in matched)
    return {j: free[new[j]].pop() for j in candidates if free.get(new[j])}


def _common_subsequence(
    old: Sequence[Hashable], new: Sequence[Hashable]
) -> Iterator[tuple[int, int]]:
    """Yield the pairs (position in `old`, position in `new`) of a longest common subsequence.

    Of equal messages the last ones are matched, because windows lose their oldest messages. For two
    lists of 10,000 messages it takes 0.2 s and 13 MB.

    The method is Hyyrö's (Bit-parallel LCS-length computation revisited, 2004) on the reversed
    lists. Each row is an integer for a prefix of the reversed `old`. Bit j is 0 where one more
    message of the reversed `new` makes the subsequence longer.
    """
    places: defaultdict[Hashable, int] = defaultdict(int)
    for j, item in enumerate(reversed(new)):
        places[item] |= 1 << j
    row = everywhere = (1 << len(new)) - 1
    rows = [row]
    for item in reversed(old):
        matches = row & places[item]
        row = (row + matches | row - matches) & everywhere
        rows.append(row)
    j = len(new)
    for i, (row, shorter) in enumerate(pairwise(reversed(rows))):
        j = (~row & (1 << j) - 1).bit_length()  # the last place up to j where the length grows
        if j and shorter >> (j - 1) & 1:
            j -= 1
            yield i, len(new) - 1 - j
