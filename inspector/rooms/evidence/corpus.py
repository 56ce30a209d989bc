"""Decides which terms are rare, by counting the conversations that mention a term. Of all
conversations with a compaction, only the 200 that were changed last are counted.

In this module, a digest is a 4-byte hash of a term. Rows store the digests of a conversation's
terms, not the texts.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from base64 import b64decode, b64encode
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

from django.db.models import Count, F, Max, QuerySet

from chatmemory import database
from chatmemory.models import Memory
from chatmemory.recall.compactions import RARE, Level, headline
from inspector.rooms.evidence.models import KeptCompactions

NEWEST = 200
_BYTES = 4


def digest_of(term: str) -> int:
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest()
    return int.from_bytes(digest)


# The digests of a conversation are one text. Its first part has the digests of settled messages.
_BETWEEN = " "


def packed(digests: Iterable[int]) -> str:
    """Encode digests of terms as a text, for a database column."""
    return b64encode(array("I", sorted(set(digests))).tobytes()).decode()


def joined(first: str, others: str) -> str:
    """Join two texts that encode digests (see `packed`) into one text."""
    return _BETWEEN.join((first, others))


def first_part(text: str) -> str:
    return text.partition(_BETWEEN)[0]


def unpacked(text: str) -> set[int]:
    """Return the digests that a text encodes (see `packed` and `joined`). Parts that cannot be
    decoded are ignored.
    """
    digests = array("I")
    for part in text.split(_BETWEEN):
        with suppress(ValueError):
            digests.frombytes(b64decode(part))
    return set(digests)


@dataclass(frozen=True)
class Corpus:
    """The conversations that decide which terms are rare: of all conversations with a compaction,
    the 200 that were changed last. A conversation and its branches count as one conversation.

    - `size` is the number of these conversations.
    - `mentions` maps a term's digest to the number of conversations that mention the term.
    - `losing` has the IDs of the conversations whose summaries lost a needed term. Only terms of
      the group that `headline` returns count.
    """

    size: int
    mentions: Counter[int]
    losing: frozenset[str]

    @property
    def headline(self) -> Level:
        """The group of terms that pages count first: `Level.RARE`, or `Level.TOLD` while `size` is
        less than 5. `Level.TOLD` are the terms that a user or a tool gave to the assistant.
        """
        return headline(self.size)

    def is_told_first(self, digest: int) -> bool:
        """Return whether a term is in the group that pages count first (see `headline`). `digest`
        must belong to a term that a user or a tool gave to the assistant.

        True if at most two conversations mention the term. While `size` is less than 5, always
        True.
        """
        return self.headline is Level.TOLD or self.has_few(digest)

    def has_few(self, digest: int) -> bool:
        """Return whether at most two conversations mention the term with this digest."""
        return self.mentions[digest] <= RARE


def rows_with_sources(rows: QuerySet[KeptCompactions]) -> QuerySet[KeptCompactions]:
    """Return rows with an attribute `source`: for a branch, the ID of the conversation from which
    the branch was copied, else None.

    The rows are sorted by the last change of their conversation, the newest first.
    """
    return rows.order_by("-memory__updated_at", "memory_id").annotate(
        source=F("memory__branched_from")
    )


def roots_of(rows: Iterable[KeptCompactions]) -> dict[str, str]:
    """Return, by conversation ID, the ID of the original conversation.

    If A has a branch B and B has a branch C, the original of C is A. A conversation that is no
    branch is its own original. The rows must have `source` (see `rows_with_sources`).
    """
    parents: dict[str, str | None] = {row.pk: getattr(row, "source", None) for row in rows}
    ids = list(parents)
    while waiting := {each for each in parents.values() if each} - parents.keys():
        found = Memory.objects.filter(database.in_list("id", waiting))
        parents |= dict.fromkeys(waiting) | dict(found.values_list("id", "branched_from"))
    return {each: _root(each, parents) for each in ids}


def _root(memory_id: str, parents: Mapping[str, str | None]) -> str:
    seen: set[str] = set()
    while memory_id not in seen and (parent := parents.get(memory_id)):
        seen.add(memory_id)
        memory_id = parent
    return memory_id


def corpus_now() -> Corpus:
    """Return the current corpus: the conversations that decide which terms are rare. The corpus is
    cached until the stored compactions of any conversation change.
    """
    state = _rows().aggregate(newest=Max("kept_at"), count=Count("memory"))
    return _corpus(state["newest"], state["count"]) if state["count"] else NONE


NONE = Corpus(0, Counter(), frozenset())


def _rows() -> QuerySet[KeptCompactions]:
    return KeptCompactions.objects.filter(compacted__gt=0)


@lru_cache(maxsize=1)
def _corpus(newest: int, count: int) -> Corpus:
    """Return the corpus. `newest` and `count` identify the state of the stored rows: a cached
    corpus is returned while both stay the same.
    """
    rows = list(rows_with_sources(_rows().defer("content"))[:NEWEST])
    roots = roots_of(rows)
    digests: defaultdict[str, set[int]] = defaultdict(set)
    for row in rows:
        digests[roots[row.pk]] |= unpacked(row.mentioned)
    mentions = Counter(digest for each in digests.values() for digest in each)
    corpus = Corpus(len(digests), mentions, frozenset())
    losing = (row.pk for row in rows if any(map(corpus.is_told_first, _digests(row.lost))))
    return replace(corpus, losing=frozenset(losing))


def _digests(text: str) -> list[int]:
    """Return the digests in a column; [] if somebody altered the column."""
    with suppress(ValueError, TypeError):
        return [each for each in json.loads(text) if isinstance(each, int)]
    return []
