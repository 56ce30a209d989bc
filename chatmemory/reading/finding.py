"""Finds the conversations that match a filter or a search, and the best match of the search in
each.

Rare words are looked up in the search index. For words with more than 2,000 matches, conversations
are scanned in the sort order of the requested page until the page is full. If a scan of up to 2,000
conversations does not fill the page, the search index is used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from operator import attrgetter

from django.db.models import Case, DateTimeField, DurationField, F, Q, Value, When
from django.db.models.expressions import Combinable

from chatmemory import search
from chatmemory.flag import Flag
from chatmemory.managers import MemoryQuerySet, of_policy
from chatmemory.messages.message import MessageType
from chatmemory.messages.phrases import sought_words, speaker_of, word_places
from chatmemory.models import PROTECTED, Memory, Message, Stay
from chatmemory.search.conditions import Has

FEW = 2_000  # the most places with the words for which the index returns all
TRIED = (100, 2_000)  # conversations, one round after the other
READ_MAX = 200_000  # messages of these
MENTIONS_COUNTED = 100
RANK = timedelta(days=365_000)
BEFORE = 200
EXCERPT = 10_000


@dataclass(frozen=True)
class MemoryFilter:
    """A filter of conversations. A conversation must match every field that is set.

    - `search`: words that must all be in one message, in the id and labels, or in one text that a
      room stores.
    - `policy`: the kind of the policy, or `managers.CLIENT` for conversations without a policy.
    - `label`: `name` or `name:value`.
    - `id_prefix`: the beginning of the id; case matters.
    - `active_since`, `active_before`: the last activity must be at `active_since` or later, and
      before `active_before`.
    - `flag`: the flag that the conversation must have.
    - `also`: any further query condition.
    """

    search: str = ""
    policy: str = ""
    label: str = ""
    id_prefix: str = ""
    active_since: datetime | None = None
    active_before: datetime | None = None
    flag: Flag | None = None
    also: Q | None = field(default=None, compare=False)

    def rows(self) -> MemoryQuerySet:
        rows = self.searched()
        return rows.containing(self.search) if self.search else rows

    def searched(self) -> MemoryQuerySet:
        """Return the query for the conversations that match all fields except `search`."""
        rows: MemoryQuerySet = Memory.objects.beginning_with(self.id_prefix).filter(self.columns())
        return rows.with_label(self.label) if self.label else rows

    @cached_property
    def few(self) -> list[str] | None:
        """The ids of the conversations that match `search`, whether or not they match the other
        fields. None if there are more than 2,000 matches, or if the words are too short for the
        search index.

        A conversation has several matches if several of its messages match.
        """
        return search.index().few(self.search, FEW)

    def by_match(self) -> Combinable:
        """Return an expression for sorting conversations by how well they match the search. Its
        descending order is:

        - the conversation whose id is the searched text,
        - conversations whose id and labels contain all words,
        - if there are several words, conversations that contain them as one phrase in one text,
        - all other conversations.

        Among equal matches, the latest activity comes first. If there is no search, or if `few` is
        None, the expression is only the time of the last activity.
        """
        activity = F("updated_at")
        if not self.search or self.few is None:
            return activity
        index, is_found = search.index(), Q(id__in=self.few)
        ranks = {3: Q(pk=self.search), 2: is_found & index.named(self.search)}
        if len(self.search.split()) > 1:
            ranks[1] = Q(id__in=index.few_with_phrase(self.search, FEW) or [])
        cases = [
            When(condition, then=activity + Value(rank * RANK, output_field=DurationField()))
            for rank, condition in ranks.items()
        ]
        return Case(*cases, default=activity, output_field=DateTimeField())

    def columns(self) -> Q:
        """Return the query condition for the fields `policy`, `active_since`, `active_before`,
        `flag` and `also`.
        """
        condition = Q()
        if self.policy:
            condition &= of_policy(self.policy)
        if self.active_since:
            condition &= Q(updated_at__gte=self.active_since)
        if self.active_before:
            condition &= Q(updated_at__lt=self.active_before)
        if self.also is not None:
            condition &= self.also
        return condition & self.flag.where if self.flag else condition

    def without_columns(self) -> MemoryFilter:
        """Return a copy of the filter in which the fields that `columns` uses are not set."""
        return replace(self, policy="", active_since=None, active_before=None, flag=None, also=None)


EVERYTHING = MemoryFilter()


@dataclass(frozen=True)
class BestMatch:
    """The message that matches a search best among the messages of a conversation.

    - `text`: the part of the message's text around the searched words.
    - `count`: the number of messages in the conversation that contain the words. 101 means more
      than 100.
    - `left_step`: the step at which the message left memory; None if the message is in memory.
    - `is_in`: whether the model sees the message. A lowered limit can hide a message that is in
      memory.
    - `echo`: the seq of the latest message that contains the words and is seen by the model. None
      if there is no such message, or if `is_in` is True.
    """

    seq: int
    type: MessageType
    has_calls: bool
    text: str
    count: int
    left_step: int | None
    is_in: bool
    echo: int | None


@dataclass(frozen=True)
class _Mention:
    seq: int
    type: MessageType
    has_calls: bool
    left_step: int | None
    is_in: bool
    is_phrase: bool = True

    @property
    def order(self) -> tuple[bool, int, bool, int]:
        """The sort value of a match. Best are messages with the whole phrase, then those of users
        and tools, then those in memory, then later messages.
        """
        return not self.is_phrase, speaker_of(self.type), not self.is_in, -self.seq


def narrow_to_search(which: MemoryFilter, rows: MemoryQuerySet, number: int) -> MemoryQuerySet:
    """Return the query for those of `rows` that the filter's search finds, in the order of `rows`.

    If the search has more than 2,000 matches, the query may end after the first `number` of the
    found rows.
    """
    words, ids = which.search, which.few
    if ids is None:
        ids = _first(words, rows, number)
    return rows.containing(words) if ids is None else rows.filter(id__in=ids)


def countable(which: MemoryFilter) -> MemoryQuerySet | None:
    """Return a query for counting the conversations that match a filter. None if the search has too
    many matches to count.

    The query lacks the condition `which.columns()`. Add this condition before you count.
    """
    rows = which.without_columns().searched()
    if not which.search:
        return rows
    if not search.searches_messages(which.search):
        return rows.containing(which.search)
    return None if which.few is None else rows.filter(id__in=which.few)


def _first(words: str, rows: MemoryQuerySet, number: int) -> list[str] | None:
    """Return the ids of the first conversations with the words. None if a scan finds too few."""
    tried: dict[str, int] = {}
    found: list[str] = []
    for end in TRIED:
        these = dict(rows.values_list("id", "last_seq")[len(tried) : end])
        tried |= these
        if sum(tried.values()) > READ_MAX:
            return None
        saying = Memory.objects.filter(search.index().scan_filter(words), id__in=these)
        matching = set(saying.values_list("id", flat=True))
        found += [memory_id for memory_id in these if memory_id in matching]
        if len(found) >= number or len(tried) < end:
            return found[:number]
    return None


def best_matches(
    words: str, memory_ids: Sequence[str], hidden: Mapping[str, Collection[int]]
) -> dict[str, BestMatch]:
    """Return the best match of the words in each conversation, by conversation id. Conversations
    without a match are left out.

    `hidden` maps conversation ids to the seqs of messages that a lowered limit hides from the
    model.

    Matches are compared by these rules, in this order:

    - A message with the words as one phrase comes first.
    - Messages of users and tools come before messages of the assistant, and system messages come
      last.
    - A message that the model sees comes first.
    - The higher seq comes first.

    Usually, only the latest 100 matches of each conversation are compared.
    """
    if not search.searches_messages(words):
        return {}
    found = search.index().mentions(words, memory_ids, MENTIONS_COUNTED + 1)
    mentions = _mentions(
        {memory_id: seqs[:MENTIONS_COUNTED] for memory_id, seqs in found.items()}, hidden
    )
    _mark_phrases(words, mentions)
    beyond = [
        memory_id
        for memory_id, seqs in found.items()
        if len(seqs) > MENTIONS_COUNTED and not _best(mentions[memory_id]).is_in
    ]
    for memory_id, older in _mentions(_protected(words, beyond), hidden).items():
        mentions[memory_id] += older
    chosen = {memory_id: _best(each) for memory_id, each in mentions.items()}
    texts = _excerpts(words, {memory_id: each.seq for memory_id, each in chosen.items()})
    return {
        memory_id: BestMatch(
            seq=each.seq,
            type=each.type,
            has_calls=each.has_calls,
            text=texts[memory_id],
            count=len(found[memory_id]),
            left_step=each.left_step,
            is_in=each.is_in,
            echo=None if each.is_in else _echo(mentions[memory_id]),
        )
        for memory_id, each in chosen.items()
        if memory_id in texts
    }


def _mark_phrases(words: str, mentions: dict[str, list[_Mention]]) -> None:
    """Note for each match whether the message has the words as one phrase."""
    if len(words.split()) < 2 or not mentions:
        return
    seqs = {memory_id: [each.seq for each in these] for memory_id, these in mentions.items()}
    rows = Message.objects.filter(any_of(seqs)).filter(search.has(words))
    exact = set(rows.values_list("memory_id", "seq"))
    for memory_id, these in mentions.items():
        mentions[memory_id] = [
            replace(each, is_phrase=(memory_id, each.seq) in exact) for each in these
        ]


def _best(mentions: Iterable[_Mention]) -> _Mention:
    return min(mentions, key=attrgetter("order"))


def _protected(words: str, memory_ids: Sequence[str]) -> dict[str, list[int]]:
    """Return the seqs of matching messages that limits do not evict: those in memory that are
    pinned or system messages. By conversation id.
    """
    found: dict[str, list[int]] = {}
    stays = Stay.objects.filter(PROTECTED, memory_id__in=memory_ids, left_step=None)
    has = Has(search.beginning("message__text"), sought_words(words))
    mentions = stays.filter(has).values_list("memory_id", "seq")
    for memory_id, seq in mentions if memory_ids else ():
        found.setdefault(memory_id, []).append(seq)
    return found


def _mentions(
    seqs: Mapping[str, Sequence[int]], hidden: Mapping[str, Collection[int]]
) -> dict[str, list[_Mention]]:
    """Return these messages as matches, by conversation id. Each has the step at which it last left
    memory.
    """
    if not seqs:
        return {}
    these = any_of({memory_id: list(each) for memory_id, each in seqs.items()})
    last: dict[tuple[str, int], _Mention] = {}
    stays = Stay.objects.filter(these).order_by("memory_id", "n")
    columns = ("memory_id", "seq", "type", "has_calls", "left_step")
    for memory_id, seq, type, has_calls, left_step in stays.values_list(*columns):
        is_in = left_step is None and seq not in hidden.get(memory_id, ())
        last[memory_id, seq] = _Mention(seq, MessageType(type), has_calls, left_step, is_in)
    mentions: dict[str, list[_Mention]] = {}
    for (memory_id, _), each in last.items():
        mentions.setdefault(memory_id, []).append(each)
    return mentions


def _echo(mentions: Sequence[_Mention]) -> int | None:
    """Return the seq of the latest match that the model sees, or None."""
    return max((each.seq for each in mentions if each.is_in), default=None)


def _excerpts(words: str, seqs: Mapping[str, int]) -> dict[str, str]:
    """Return the text of one message for each conversation. A long text is cut around the words."""
    if not seqs:
        return {}
    these = any_of({memory_id: [seq] for memory_id, seq in seqs.items()})
    rows = Message.objects.filter(these).annotate(searched=search.beginning("text"))
    return {
        memory_id: excerpt(text, words)
        for memory_id, text in rows.values_list("memory_id", "searched")
    }


def excerpt(text: str, words: str) -> str:
    """Return at most 10,000 characters of a text. A shorter text is returned unchanged.

    A longer text is cut: the excerpt begins shortly before the first place where one of `words`
    occurs. If none occurs, the excerpt is the beginning of the text.
    """
    if len(text) <= EXCERPT:
        return text
    places = word_places(text, words)
    begin = max(0, places[0].start - BEFORE) if places else 0
    return text[begin : begin + EXCERPT]


def any_of(seqs: Mapping[str, list[int]]) -> Q:
    """Return the query condition for the messages in `seqs`, which maps conversation ids to seqs.
    In a query for stays, the condition selects the stays of these messages.
    """
    condition = Q()
    for memory_id, each in seqs.items():
        condition |= Q(memory_id=memory_id, seq__in=each)
    return condition
