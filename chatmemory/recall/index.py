"""The index: one message in memory that lists exact terms of evicted messages. Needs no model.

If the policy has an index, the index is renewed after each add or compaction that evicts messages.
The index stands before the first message that can leave. Its text lists terms that no message in
memory mentions: those with the highest weight first, as many as fit.

An attribute of the index message has the listed terms and further terms. Each has a weight and the
numbers of the messages with the term. If somebody chose to leave out a term, its weight is below 0.

The next index is made only from this attribute, the messages evicted since then, and the messages
in memory. So a verification can compute each index again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from chatmemory.messages.json_values import JsonValue
from chatmemory.messages.message import ChatMessage, MessageType, UserMessage
from chatmemory.messages.tombstones import is_tombstone, tombstone_of
from chatmemory.recall.facts import texts_with_facts
from chatmemory.recall.labels import LONGEST_LABEL, labels_in, lines_of
from chatmemory.recall.lexicon import Lexicon
from chatmemory.recall.term_search import Terms
from chatmemory.windows.eviction import FOR_ROOM, Eviction, Head, Reason
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import total_under
from chatmemory.windows.transitions import Change, Transition, unchanged
from chatmemory.windows.window import Entry, Window

RULE = 2  # the version of the rule: raise it with each change of what an index has
NOTE = f"index rule {RULE}"
CHOSEN = f"{NOTE} after a term was left out or listed again"
TITLE = "Exact terms of earlier messages that are no longer shown"
KEPT = 4  # so many times the listed terms are remembered, to be listed later
SOURCES = 8  # the newest messages that said a term
LONGEST_TERM = 400
INDEXED = (*FOR_ROOM, Reason.STUBBED, Reason.SUMMARIZED)
_WEIGHTS = {MessageType.USER: 3, MessageType.AI: 3}  # others: 1, as for summaries


class Row(NamedTuple):
    """A term of an index. `label` is what messages call the term. `weight` sorts the terms, and is
    below 0 for a term that somebody left out.

    `sources` are the seqs of the newest messages with the term, oldest first; 0 for a message
    without a seq.
    """

    term: str
    label: str
    weight: int
    sources: tuple[int, ...]

    @property
    def last(self) -> int:
        return self.sources[-1] if self.sources else 0

    @property
    def is_left_out(self) -> bool:
        return self.weight < 0

    @property
    def shown(self) -> tuple[str, str]:
        """The label, and the term with the number of its last message, such as ("order", "A-1182
        #25").
        """
        return self.label, f"{self.term} #{self.last}" if self.last else self.term


class Left(NamedTuple):
    """An evicted message with its seq; 0 if it has none."""

    message: ChatMessage
    number: int


@dataclass(frozen=True)
class Index:
    """The content of an index message.

    - `rows`: all terms of the index. The text lists the first `shown` of them.
    - `left`: the number of all evicted messages so far.
    - `of`: the seqs of the messages that were evicted just before this index was made.
    """

    rows: tuple[Row, ...] = ()
    shown: int = 0
    left: int = 0
    of: tuple[int, ...] = ()

    @property
    def listed(self) -> tuple[Row, ...]:
        return self.rows[: self.shown]

    @property
    def left_out(self) -> frozenset[str]:
        """The terms that somebody chose to leave out. The text of the index message does not list
        them.
        """
        return frozenset(row.term for row in self.rows if row.is_left_out)

    def message(self) -> UserMessage:
        """Return the index as a message. Its text has the listed terms, and an attribute has all of
        the index, for `index_of`.
        """
        rows = [[*row[:3], list(row.sources)] for row in self.rows]
        state = {"rule": RULE, "left": self.left, "of": list(self.of), "shown": self.shown}
        return UserMessage(self.text, attributes={"chatmemory": {"index": {**state, "rows": rows}}})

    @property
    def text(self) -> str:
        title = f"[{TITLE} ({self.left:,} messages)]"
        return "\n".join([title, *lines_of(row.shown for row in self.listed)])

    def without(self, redacted: Collection[int]) -> Index:
        """Return the index without the text of the messages whose seqs are in `redacted`. A term
        whose `sources` are all redacted is replaced by a text such as `[redacted #12]`, and loses
        its label.
        """
        return replace(self, rows=tuple(_blanked(row, redacted) for row in self.rows))

    def renumbered(self, numbers: Mapping[int, int]) -> Index:
        """Return the index for a branch, where messages have other seqs. `numbers` maps old seqs to
        new seqs. Terms without a message in the branch are removed.
        """

        def known(old: Iterable[int]) -> tuple[int, ...]:
            return tuple(numbers[each] for each in old if each in numbers)

        rows = [row._replace(sources=known(row.sources)) for row in self.rows]
        shown = sum(1 for row in rows[: self.shown] if row.sources)
        kept = tuple(row for row in rows if row.sources)
        return replace(self, rows=kept, of=known(self.of), shown=shown)


def _blanked(row: Row, redacted: Collection[int]) -> Row:
    if row.sources and set(row.sources) <= {*redacted}:
        return Row(tombstone_of(row.last), "", row.weight, row.sources)
    return row


def index_of(message: ChatMessage | None) -> Index | None:
    """Return the index in an index message; None for any other message."""
    attributes = message.attributes if isinstance(message, UserMessage) else {}
    own = attributes.get("chatmemory")
    state = own.get("index") if isinstance(own, Mapping) else None
    if not isinstance(state, Mapping):
        return None
    try:
        rows = tuple(_row(each) for each in state["rows"])
        numbers = state["shown"], state["left"], *state["of"]
    except (KeyError, TypeError, ValueError):
        return None
    if None in rows or any(type(each) is not int or each < 0 for each in numbers):
        return None
    known = tuple(row for row in rows if row is not None)
    return Index(known, state["shown"], state["left"], tuple(state["of"]))


def _row(value: JsonValue) -> Row | None:
    """Return the row that an attribute describes. None for anything else, which a client may have
    sent.
    """
    term, label, weight, sources = value
    are_texts = isinstance(term, str) and isinstance(label, str)
    numbers = [abs(weight), *sources]
    if not are_texts or any(type(each) is not int or each < 0 for each in numbers):
        return None
    is_short = len(term) <= LONGEST_TERM and len(label) <= LONGEST_LABEL
    return Row(term, label, weight, tuple(sources)) if is_short else None


def is_index(message: ChatMessage | None) -> bool:
    return index_of(message) is not None


def blank_index(text: str) -> UserMessage:
    """Return an index message with this text and no terms. It replaces an index that was
    redacted.
    """
    return UserMessage(text, attributes=Index().message().attributes)


def is_for_index(eviction: Eviction) -> bool:
    """Return whether the index lists the terms of an evicted message. It does if there was no room
    for the message, or if a placeholder or summary replaced it.
    """
    return eviction.reason in INDEXED


def indexed(
    window: Window,
    left: Sequence[Left],
    policy: Policy | None,
    entry_of: Callable[[ChatMessage], Entry],
) -> Transition:
    """Return the transition that renews the index message after an eviction. `left` are the evicted
    messages. Nothing changes if there are none, or if the policy has no index. If no term can be
    listed, the index message is removed.

    The index takes at most half of the room that a trim frees. If a full memory is trimmed from
    8,000 to 6,000 tokens, the index takes at most 1,000 tokens. `entry_of` makes an entry, with its
    tokens, from the index message.
    """
    if policy is None or not left or not policy.indexed_terms or policy.meters_only:
        return unchanged(window, policy)
    old, others = apart(window)
    before = (index_of(old.message) if old else None) or Index()
    left = [each for each in left if not is_index(each.message)]
    found = _fitted(before, left, old, others, policy, entry_of, NOTE)
    return found or unchanged(window, policy)


def chosen(
    window: Window,
    left_out: Collection[str],
    policy: Policy | None,
    entry_of: Callable[[ChatMessage], Entry],
) -> Transition:
    """Return the transition to an index message that leaves out exactly the terms `left_out`.

    Nothing changes if memory or the policy has no index. `entry_of` makes an entry, with its
    tokens, from the index message.
    """
    old, others = apart(window)
    before = index_of(old.message) if old else None
    if policy is None or before is None or not policy.indexed_terms or policy.meters_only:
        return unchanged(window, policy)
    rows = tuple(
        row._replace(weight=-abs(row.weight) if row.term in left_out else abs(row.weight))
        for row in before.rows
    )
    found = _fitted(replace(before, rows=rows), [], old, others, policy, entry_of, CHOSEN)
    return found or unchanged(window, policy)


def apart(window: Window) -> tuple[Entry | None, list[Entry]]:
    """Return the index message of a window, or None; and the list of all other messages."""
    entries = window.with_messages()
    old = next((each for each in entries if each.pinned and is_index(each.message)), None)
    return old, [each for each in entries if each is not old]


def _fitted(
    before: Index,
    left: Sequence[Left],
    old: Entry | None,
    others: Sequence[Entry],
    policy: Policy,
    entry_of: Callable[[ChatMessage], Entry],
    note: str,
) -> Transition | None:
    """Return the transition to a renewed index with as many terms as fit. None if there was no
    index, and there is none now.
    """
    stay = [each.message for each in others if each.message is not None]
    found = renewed(before, left, stay, policy)
    rest = total_under(policy, others)
    room = (policy.limit - policy.low_mark) // 2

    def entry_with(shown: int) -> Entry:
        return replace(entry_of(replace(found, shown=shown).message()), pinned=True)

    def has_no_room(shown: int) -> bool:
        entry = entry_with(shown)
        cost = policy.weigh(entry)
        return cost > room or policy.is_exceeded_by(rest.plus(entry, cost))

    counts = range(1, found.shown + 1)
    most = bisect_left(counts, True, key=has_no_room) if counts else 0
    new = entry_with(most) if most else None
    return replaced(others, old, new, policy, note) if old or new else None


def given_way(window: Window, policy: Policy | None) -> Transition:
    """Return the transition that removes the index message, so that another message has room.
    Nothing changes without an index message.
    """
    old, others = apart(window)
    return replaced(others, old, None, policy, NOTE) if old else unchanged(window, policy)


def replaced(
    others: Sequence[Entry],
    old: Entry | None,
    new: Entry | None,
    policy: Policy | None,
    note: str,
) -> Transition:
    """Return the transition that replaces the index message `old` by `new`. Without `old`, `new` is
    added; without `new`, `old` is removed. `others` are all other messages of the window.
    """
    place = place_of(others, policy)
    after = [*others[:place], *([new] if new else []), *others[place:]]
    before = total_under(policy, [*others, *([old] if old else [])])
    return Transition(
        Change.INDEX,
        before=before,
        after=total_under(policy, after),
        policy=policy,
        policy_before=policy,
        arrivals=after,
        evictions=(Eviction(old, Reason.INDEXED, new),) if old else (),
        note=note,
    )


def place_of(entries: Sequence[Entry], policy: Policy | None) -> int:
    """Return the position for an index message: after the messages that cannot leave (the leading
    system message, pinned messages and summaries).
    """
    if policy is None:
        return 0
    return Head(entries, total_under(policy, entries), policy).oldest


def renewed(
    before: Index, left: Sequence[Left], stay: Sequence[ChatMessage], policy: Policy
) -> Index:
    """Return the index after the messages `left` were evicted. `before` is the old index, and
    `stay` are the messages in memory.

    The policy limits how many terms are listed. Terms that a message in memory mentions are kept,
    but not listed.
    """
    left = sorted(left, key=attrgetter("number"))
    shown_messages = [each for each in stay if not is_index(each)]
    lexicon = Lexicon([*(each.message for each in left), *shown_messages])
    rows = {row.term: row for row in before.rows if not is_tombstone(row.term)}
    for each, facts in zip(left, lexicon.of, strict=False):
        terms = {facts.own[name] for name in facts.own.keys() - facts.pairs}
        weight = _WEIGHTS.get(facts.speaker, 1)
        labels = labels_in(each.message, terms)
        for term in terms:
            rows[term] = _merged(rows.get(term), term, labels.get(term, ""), weight, each.number)
    ranked = sorted(rows.values(), key=rank)
    mentioned = _mentioned(ranked, shown_messages, lexicon)
    left_out = [row for row in ranked if row.is_left_out]
    others = [row for row in ranked if not row.is_left_out]
    visible = [row for row in others if row.term not in mentioned]
    hidden = [row for row in others if row.term in mentioned]
    most = policy.indexed_terms
    kept = (*islice((*visible, *hidden), most * KEPT), *left_out[: most * KEPT])
    return Index(
        kept,
        min(len(visible), most),
        before.left + len(left),
        tuple(each.number for each in left),
    )


def rank(row: Row) -> JsonValue:
    """Return the sort key of a term: the heaviest terms first. Of equally heavy terms, the term
    mentioned last comes first.
    """
    return -row.weight, -row.last, row.term


def _merged(old: Row | None, term: str, label: str, weight: int, number: int) -> Row:
    if old is None:
        return Row(term, label, weight, (number,))
    sources = (*(each for each in old.sources if each != number), number)[-SOURCES:]
    added = -weight if old.is_left_out else weight
    return Row(term, label or old.label, old.weight + added, sources)


def _mentioned(rows: Iterable[Row], messages: Iterable[ChatMessage], lexicon: Lexicon) -> set[str]:
    """Return those terms of `rows` that the messages mention."""
    texts = [text for each in messages for text in texts_with_facts(each)]
    terms = Terms(row.term for row in rows)
    found = set[str]().union(*map(terms.found_in, texts))
    names = lexicon.mentioned_in(texts) if texts else frozenset()
    written = {name: term for each in lexicon.of for name, term in each.own.items()}
    return found | {written[name] for name in names if name in written}
