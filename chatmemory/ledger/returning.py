"""Messages that return: they are in the history, had left the window, and are in a new list.

Such a message is not said again. A stay begins, and the history does not change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from django.db.models import OuterRef, Subquery

from chatmemory.core.codec import payload_of
from chatmemory.core.estimators import family_named
from chatmemory.core.eviction import Reason
from chatmemory.ledger.redaction import mark_of
from chatmemory.ledger.replacement import Replacement, Returning
from chatmemory.models import Memory, Message, Stay, Step

ASKED_AT_ONCE = 10_000  # texts in one query; SQLite takes 250,000

# Messages that left, by payload and by the reason for which they left, in the order of the history.
_Left = Mapping[tuple[str, Reason], list[Returning]]


def returning_messages(memory: Memory, replacement: Replacement) -> dict[int, Returning]:
    """Return the message of the history that returns at each position of a new list.

    Of several equal messages the latest is used first, and each only once.
    """
    allowed = replacement.may_return(is_first=memory.last_seq == 0)
    if not allowed:
        return {}
    wanted = {replacement.payloads[position]: replacement.text(position) for position in allowed}
    left = _messages_that_left(memory, wanted, {entry.seq for entry in replacement.old})
    returning = {}
    for position in sorted(allowed, reverse=True):
        payload = replacement.payloads[position]
        found = [left[payload, reason] for reason in allowed[position] if left[payload, reason]]
        if found:
            returning[position] = max(found, key=_latest_seq).pop()
    marked = [
        message.seq
        for position, message in returning.items()
        if mark_of(message.seq) in replacement.payloads[position]
    ]
    tokens = _tokens_of_redacted(memory, marked)
    return {
        position: message._replace(tokens=tokens.get(message.seq))
        for position, message in returning.items()
    }


def _messages_that_left(
    memory: Memory, wanted: Mapping[str, str], in_window: Collection[int]
) -> _Left:
    """Return the messages that left of which `wanted` has the payload, and by that the text."""
    # By step first, because SQLite would look for the last number in the stays of all messages.
    stays = Stay.objects.filter(memory=memory, seq=OuterRef("seq"))
    last_stay = stays.order_by("-entered_step", "-n")
    rows = (
        Message.objects.filter(memory=memory)
        .annotate(left_for=Subquery(last_stay.values("reason")[:1]))
        .order_by("seq")
        .values_list("frame", "text", "seq", "origin", "left_for")
    )
    left: dict[tuple[str, Reason], list[Returning]] = defaultdict(list)
    asked = list(set(wanted.values()))
    for start in range(0, len(asked), ASKED_AT_ONCE):
        found = rows.filter(text__in=asked[start : start + ASKED_AT_ONCE])
        for frame, text, seq, origin, reason in found:
            payload = payload_of(frame, text)
            if payload in wanted and seq not in in_window:
                left[payload, Reason(reason)].append(Returning(seq, origin))
    return left


def _tokens_of_redacted(memory: Memory, seqs: Sequence[int]) -> dict[int, int]:
    """Return the tokens with which messages left that are redacted, by seq.

    Those that another family of estimators had counted are not in it.
    """
    entered = Step.objects.filter(memory=memory, n=OuterRef("entered_step"))
    stays = (
        Stay.objects.filter(memory=memory, message__redacted_step__isnull=False)
        .annotate(estimator=Subquery(entered.values("policy_estimator")))
        .order_by("entered_step", "n")
        .values_list("seq", "tokens", "estimator")
    )
    last = {}
    for start in range(0, len(seqs), ASKED_AT_ONCE):
        for seq, tokens, estimator in stays.filter(seq__in=seqs[start : start + ASKED_AT_ONCE]):
            last[seq] = tokens, estimator
    family = family_named(memory.policy_estimator)
    return {
        seq: tokens
        for seq, (tokens, estimator) in last.items()
        if family_named(estimator) == family
    }


def _latest_seq(messages: list[Returning]) -> int:
    return messages[-1].seq
