"""The history: pages of it, single messages, and a search for a phrase."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice

from django.db.models import Max, Q, QuerySet

from chatmemory import search
from chatmemory.core.exceptions import InvalidValue, MessageNotFound
from chatmemory.core.phrases import SEARCHED
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.models import Memory, Message, Step
from chatmemory.queries.rows import MessageRow, Page, step_row
from chatmemory.queries.stays import with_stays

NEAREST_WORDS = 5
NEAREST_PLACES = 20
WORD_MAX = 100
# A word, in which a number may have signs between its digits.
_START_OF_WORD = re.compile(r"(?:[\w-]|(?<=\d)[.,/:](?=\d))*")
_END_OF_WORD = re.compile(r"(?:[\w-]|(?<=\d)[.,/:](?=\d|$))*$")


@dataclass(frozen=True)
class Part:
    """A part of the history: the last `size` messages, or those before, after or around a seq."""

    before: int | None = None
    after: int | None = None
    around: int | None = None
    size: int = 50


LATEST = Part()


@one_snapshot()
def history(memory_id: str, part: Part = LATEST, at: int | None = None) -> Page:
    """Return a part of the history up to step `at`, in order of seq.

    Raises MemoryNotFound, StepNotFound, and InvalidValue for a part with several edges.
    """
    edges = (part.before, part.after, part.around)
    if sum(edge is not None for edge in edges) > 1:
        raise InvalidValue("before, after and around exclude one another: give one of them")
    memory = find_memory(memory_id)
    extent = memory if at is None else find_step(memory, at)
    return history_page(memory_id, part, extent.last_seq, extent.said_count)


def history_page(memory_id: str, part: Part, newest: int, said_count: int) -> Page:
    """Return a part of the history up to message `newest`, which has `said_count` messages."""
    messages = said_by(memory_id, newest)
    if part.after is not None:
        found = list(messages.filter(seq__gt=part.after).order_by("seq")[: part.size])
    else:
        edge = part.before if part.before is not None else newest + 1
        if part.around is not None:
            following = messages.filter(seq__gte=part.around).order_by("seq")[: part.size // 2 + 1]
            edge = max([seq for (seq,) in following.values_list("seq")], default=newest) + 1
        found = list(messages.filter(seq__lt=edge).order_by("-seq")[: part.size])[::-1]
    rows = with_stays(memory_id, found)
    if not found:
        return Page(rows)
    # Without messages that nobody said the seqs have no gaps, and nothing needs to be counted.
    has_gaps = said_count != newest
    first = found[0].seq
    earlier = messages.filter(seq__lt=first).count() if has_gaps else first - 1
    return Page(rows, earlier, said_count - earlier - len(found))


@one_snapshot()
def message(memory_id: str, seq: int) -> MessageRow:
    """Return one message with its stays and the step that redacted it.

    Raises MemoryNotFound, MessageNotFound.
    """
    return message_in(find_memory(memory_id), seq)


def message_in(memory: Memory, seq: int) -> MessageRow:
    """Return the same of a conversation that is already read. Raises MessageNotFound."""
    memory_id = memory.pk
    row = Message.objects.filter(memory=memory, seq=seq).first()
    if row is None:
        raise MessageNotFound(f"{memory_id!r} has no message #{seq}")
    (found,) = with_stays(memory_id, [row])
    if row.redacted_step is None:
        return found
    step = Step.objects.get(memory_id=memory_id, n=row.redacted_step)
    return replace(found, redacted=step_row(step))


def nearest(memory_id: str, phrase: str, newest: int) -> str:
    """Return what was said up to message `newest` that is nearest to a phrase, or an empty string.

    It is the word that has the longest word of the phrase in it that was said; if there is none,
    one that has the longest beginning of its longest word. A part without a digit must have more
    than half of the longest word, and four letters if they are ASCII.
    """
    words = sorted(set(phrase.split()), key=len, reverse=True)[:NEAREST_WORDS]
    longest = words[0] if words else ""
    shorter = range(len(longest) - 1, max(2, len(longest) - 1 - NEAREST_WORDS), -1)
    beginnings = [longest[:length] for length in shorter]
    parts = [part for part in (*words, *beginnings) if _is_telling(part, longest)]
    if not parts:
        return ""
    said = said_by(memory_id, newest)
    saying = {f"part{i}": search.has(part) for i, part in enumerate(parts)}
    latest = said.aggregate(**{n: Max("seq", filter=Q(each)) for n, each in saying.items()})
    found = ((part, seq) for part, seq in zip(parts, latest.values(), strict=True) if seq)
    part, seq = next(found, ("", 0))
    return _word_with(part, said.get(seq=seq).text[:SEARCHED]) if part else ""


def _is_telling(part: str, longest: str) -> bool:
    is_word = len(part) > 3 or not part.isascii()
    return (is_word and 2 * len(part) > len(longest)) or any(map(str.isdigit, part))


def _word_with(part: str, text: str) -> str:
    """Return the shortest word of a text that has a part in it, or an empty string if all are long.

    A number is never cut: another one is offered as a whole.
    """
    words = []
    for place in islice(re.finditer(re.escape(part), text, re.IGNORECASE), NEAREST_PLACES):
        start, end = place.span()
        before = _END_OF_WORD.search(text[max(0, start - WORD_MAX) : start])
        after = _START_OF_WORD.match(text[end : end + WORD_MAX])
        words.append(f"{before[0] if before else ''}{place[0]}{after[0] if after else ''}")
    return min((word for word in words if len(word) <= WORD_MAX), key=len, default="")


def said_by(memory_id: str, newest: int) -> QuerySet[Message]:
    """Return the messages of the history up to `newest`."""
    return Message.objects.filter(memory_id=memory_id, seq__lte=newest, origin=Message.Origin.SAID)
