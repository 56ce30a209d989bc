"""Computes the transition of a repair, and of undoing a repair.

A repair replaces the window by a list of messages, as `set_messages` does (see
`ledger.client_list`). There are two differences. A repair identifies messages by their numbers, not
by their contents. And new messages of a repair, such as placeholders, are SYNTHETIC: not in
history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from chatmemory.exceptions import InvalidValue
from chatmemory.ledger.client_list import Numbering, Replacement
from chatmemory.ledger.windows import shown_message, stay_entry, stays_at
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.windows.eviction import IN_PLACE
from chatmemory.windows.lists import Payload
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.transitions import Transition, refill
from chatmemory.windows.window import Entry, Window

SYNTHETIC = str(Message.Origin.SYNTHETIC)


class _RepairNumbering(Numbering):
    """Numbers the messages of a list: known messages keep their numbers, and placeholders get new
    ones.
    """

    def origins(self) -> dict[int, str]:
        origins = dict.fromkeys(self.of.unmatched, SYNTHETIC)
        return origins | {position: row.origin for position, row in self.returning.items()}


def repair_transition(
    memory: Memory, window: Window, old: Sequence[Entry], new: Sequence[Entry]
) -> Transition:
    """Return the transition that replaces the whole window by the list `new`. `old` has the
    messages of the window.

    `new` can have messages of the window, messages that left memory earlier, and new messages, such
    as placeholders. New messages get numbers. If `new` exceeds the limit, the policy evicts
    messages from it.
    """
    names = [Payload(str(each.seq) if each.n else f"new {n}") for n, each in enumerate(new)]
    before, known = [Payload(str(each.seq)) for each in old], {each.seq for each in old}
    transition = refill(window, list(new), memory.policy if can_decide(memory.policy) else None)
    replacement = Replacement(old, transition, before, names, by_client=False)
    returning = {
        position: each for position, each in enumerate(new) if each.n and each.seq not in known
    }
    return _RepairNumbering(replacement, memory, returning).transition()


def before_repair(memory: Memory, step: Step, now: Sequence[Entry]) -> list[Entry]:
    """Return the window without the effects of a repair. `now` has the entries of the present
    window. `step` is the step of the repair.

    Messages that the repair removed are back at their positions, and its placeholders are gone.
    Messages that arrived after the repair are at the end. Raises InvalidValue if the step is not a
    repair.
    """
    if step.kind != Step.Kind.REPAIR:
        raise InvalidValue(f"step {step.n} is not a repair, and only a repair can be undone")
    here = {each.seq: each for each in now}
    left = Stay.objects.filter(memory=memory, left_step=step.n).exclude(reason__in=IN_PLACE)
    out = set(left.values_list("seq", flat=True)) - here.keys()
    entered = Stay.objects.filter(memory=memory, entered_step=step.n)
    came = set(entered.values_list("seq", flat=True))
    then = list(_entries(stays_at(_before(step))))
    stood = {each.seq for each in then}
    back = [here.get(each.seq, each) for each in then if each.seq in here or each.seq in out]
    later = [each for each in now if each.seq not in stood and each.seq not in came]
    return [*back, *later]


def _before(step: Step) -> Step:
    return Step.objects.get(memory=step.memory_id, n=step.n - 1)


def _entries(stays: Iterable[Stay]) -> Iterator[Entry]:
    for stay in stays.select_related("message"):  # type: ignore[attr-defined]  # mypy takes the stays for values
        entry = stay_entry(stay, shown_message(stay.message, stay.overrides))
        entry.origin = stay.message.origin
        yield entry
