"""The ledger in words: what a step did, why a message left, with the sum that decided it.

Words follow the inspector's copy rules: forgotten, left, in memory, said; cause first, then the
sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chatmemory.core.eviction import Reason
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy, can_decide
from chatmemory.core.window import Totals
from chatmemory.queries import Departure, MessageRow, StepRow, StepView, WindowPlace, WindowView

MINUS = "−"

_ROLES = {
    MessageType.SYSTEM: "System",
    MessageType.USER: "User",
    MessageType.AI: "AI",
    MessageType.TOOL_EXECUTION_RESULT: "Tool result",
    MessageType.CUSTOM: "Custom",
}


@dataclass(frozen=True)
class ReceiptLine:
    """One line of the sum. `amount` is a total, or signed when `kind` is plus or minus.

    Kinds: total, plus, minus, over (more than the limit), fits. `sub` lines belong to the one
    above.
    """

    label: str
    amount: int
    kind: str
    sub: bool = False
    seq: int | None = None

    @property
    def css(self) -> str:
        """How the inspector's stylesheet calls this kind of line."""
        return {"over": "over", "minus": "minus", "fits": "rule ok"}.get(self.kind, "")


@dataclass(frozen=True)
class Explanation:
    """An answer: the question, its cause in a few words, the rest in a sentence, the sum."""

    question: str
    cause: str
    detail: str
    receipt: tuple[ReceiptLine, ...] = ()

    @property
    def summary(self) -> str:
        return f"{self.cause} {self.detail}".strip()


def role(type: MessageType, has_calls: bool = False) -> str:
    return "Tool call" if has_calls else _ROLES[type]


def reason_words(departure: Departure, arrived: int | None = None) -> str:
    """A reason in four words at most."""
    if departure.seq == arrived:
        return "too big on its own"
    because = departure.because_seq
    return {
        Reason.CAPACITY: "capacity",
        Reason.ORPHANED: f"left with #{because}",
        Reason.REPLACED: f"replaced by #{because}" if because else "replaced",
        Reason.CLEARED: "cleared",
        Reason.SET: "list was set",
        Reason.MOVED: "moved",
    }[departure.reason]


def amount(number: int, unit: str = "") -> str:
    """1,043 · −24; with a unit where one is given."""
    written = f"{abs(number):,}"
    return f"{MINUS if number < 0 else ''}{written}{' ' + unit if unit else ''}"


def seqs(numbers: Sequence[int]) -> str:
    """`#26`, `#26 and #27`, `#26, #27 and #30`; longer runs as `#26 to #40`."""
    names = [f"#{number}" for number in numbers]
    if len(numbers) > 4:
        if list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
            return f"{names[0]} to {names[-1]}"
        names = [*names[:3], f"{len(numbers) - 3} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# The sum


def receipt(view: StepView) -> tuple[ReceiptLine, ...]:
    """The arithmetic of a step, line by line; empty where no policy decided it."""
    policy = view.step.policy
    if not can_decide(policy) or view.step.kind not in ("add", "set"):
        return ()
    return tuple(_Receipt(view, policy).lines())


class _Receipt:
    def __init__(self, view: StepView, policy: Policy) -> None:
        self.view, self.policy = view, policy
        self.totals = view.step.before
        self.arrived = {row.seq for row in view.arrivals}
        replaced = (Reason.REPLACED, Reason.SET)
        self.replaced = [d for d in view.departures if d.reason in replaced]
        self.evicted = [d for d in view.departures if d.reason not in replaced]
        self.oldest = next((d.seq for d in self.evicted), None)

    def lines(self) -> Iterable[ReceiptLine]:
        yield ReceiptLine("In memory before", self.load, "total")
        if self.over:
            yield ReceiptLine(f"Over the limit, {self.over_words}", self.load, "over")
            yield from self.evictions()
        for departure in self.replaced:
            yield self.leave(departure)
        if not self.totals.count and self.policy.overhead and self.view.arrivals:
            yield ReceiptLine("Every request starts with", self.policy.overhead, "plus")
        for row in self.view.arrivals:
            yield self.arrive(row)
        if self.over:
            yield ReceiptLine(f"Needed, {self.over_words}", self.load, "over")
            yield from self.evictions()
        yield ReceiptLine("In memory after", self.policy.load(*self.view.step.after), "fits")

    def evictions(self) -> Iterable[ReceiptLine]:
        while self.evicted and (self.over or self.evicted[0].reason is Reason.ORPHANED):
            departure = self.evicted.pop(0)
            yield self.leave(departure)
            followed = self.evicted and self.evicted[0].reason is Reason.ORPHANED
            if self.over and self.evicted and not followed:
                yield ReceiptLine(f"Still {self.over_words}", self.load, "over")

    def arrive(self, row: MessageRow) -> ReceiptLine:
        self.totals = Totals(self.totals.count + 1, self.totals.tokens + row.tokens)
        label = f"#{row.seq} {role(row.type, row.has_calls)} arrives"
        return ReceiptLine(label, self.policy.cost(row.tokens), "plus", seq=row.seq)

    def leave(self, departure: Departure) -> ReceiptLine:
        self.totals = Totals(self.totals.count - 1, self.totals.tokens - departure.tokens)
        orphaned = departure.reason is Reason.ORPHANED
        return ReceiptLine(
            self.label(departure),
            -self.policy.cost(departure.tokens),
            "minus",
            orphaned,
            departure.seq,
        )

    def label(self, departure: Departure) -> str:
        name = f"#{departure.seq} {role(departure.type, departure.has_calls)}"
        if departure.seq in self.arrived:
            return f"{name} itself"
        if departure.reason is Reason.ORPHANED:
            return f"#{departure.seq} its result"
        if departure.reason is Reason.CAPACITY:
            return f"{name}, {'the' if departure.seq == self.oldest else 'next'} oldest"
        return f"{name}, {reason_words(departure)}"

    @property
    def load(self) -> int:
        return self.policy.load(*self.totals)

    @property
    def over(self) -> int:
        return max(0, self.load - self.policy.limit)

    @property
    def over_words(self) -> str:
        limit = " the limit" if self.policy.unit == "tokens" else ""
        return f"{self.over:,} over{limit}"


# Why one message left


def why_left(view: StepView, seq: int) -> Explanation:
    """Why a message left at this step. Raises LookupError if it did not."""
    departure = next((d for d in view.departures if d.seq == seq), None)
    if departure is None:
        raise LookupError(f"#{seq} did not leave at step {view.step.n}")
    cause, detail = _cause(view, departure)
    return Explanation(f"Why did #{seq} leave?", cause, detail, receipt(view))


def _cause(view: StepView, departure: Departure) -> tuple[str, str]:
    step, seq, because = view.step, departure.seq, departure.because_seq
    arrived = view.arrivals[0].seq if view.arrivals else None
    match departure.reason:
        case Reason.CAPACITY if seq == arrived:
            return "It was too big on its own.", _no_room(view, arrived)
        case Reason.CAPACITY:
            oldest = f", and #{seq} was the oldest message that could leave."
            return "There was no room.", _no_room(view, arrived).rstrip(".") + oldest
        case Reason.ORPHANED:
            return (
                "Its tool call left.",
                (
                    f"#{seq} answers #{because}, which left at step {step.n}; a result stays only "
                    "as long as its call."
                ),
            )
        case Reason.REPLACED:
            return (
                "Another system message took its place.",
                f"#{because} arrived at step {step.n}, and a memory keeps one system message.",
            )
        case Reason.CLEARED:
            return "Memory was cleared.", f"At step {step.n} everything left; history keeps it all."
    return "The list was set.", f"At step {step.n} memory became a list without #{seq}."


def _no_room(view: StepView, arrived: int | None) -> str:
    policy, step = view.step.policy, view.step
    if not can_decide(policy) or arrived is None:
        return f"It left the head of the list at step {step.n}."
    needed = Totals(
        step.before.count + len(view.arrivals),
        step.before.tokens + sum(row.tokens for row in view.arrivals),
    )
    units = policy.unit
    needs = f"{policy.load(*needed):,} of {policy.limit:,} {units}"
    return f"When #{arrived} arrived, memory needed {needs}."


# What a step did


@dataclass(frozen=True)
class Caption:
    """A step in one sentence, in pieces: what happened, what came (+85), what left, who left
    why.
    """

    event: str
    gain: str = ""
    loss: str = ""
    detail: str = ""

    @property
    def summary(self) -> str:
        event = " ".join(filter(None, [self.event, self.gain])) + "."
        if not self.loss:
            return " ".join(filter(None, [event, self.detail]))
        return f"{event} {self.loss}: {self.detail}" if self.detail else f"{event} {self.loss}."


def caption(view: StepView) -> Caption:
    """One plain sentence; a reader who reads only this understands the step."""
    step, policy = view.step, view.step.policy
    in_tokens = policy is None or policy.unit == "tokens"
    gained = sum(row.tokens for row in view.arrivals)
    lost = sum(departure.tokens for departure in view.departures)
    count = len(view.departures)
    loss = f"{count:,} message{'s' if count != 1 else ''} left" if count else ""
    return Caption(
        event=_event(step, view.arrivals),
        gain=f"+{gained:,}" if in_tokens and gained else "",
        loss=f"{loss} {amount(-lost)}" if loss and in_tokens and lost else loss,
        detail=_who_left(view) if count else ("" if step.kind != "add" else "It fits."),
    )


def _event(step: StepRow, arrivals: Sequence[MessageRow]) -> str:
    if step.kind == "policy":
        return f"The policy became {policy_words(step.policy)}"
    if step.kind == "labels":
        return "The labels changed"
    if step.kind == "clear":
        return "Memory was cleared"
    if step.kind == "redact":
        return f"Message #{step.seq} was redacted"
    if len(arrivals) == 1:
        (row,) = arrivals
        name = role(row.type, row.has_calls)
        noun = name if name.startswith("Tool") else f"{name} message"
        return f"{noun} #{row.seq} arrived"
    if step.kind == "set":
        return f"Memory was set; {len(arrivals):,} messages came"
    return f"{len(arrivals):,} messages arrived"


def _who_left(view: StepView) -> str:
    arrived = {row.seq for row in view.arrivals}
    own = [d.seq for d in view.departures if d.seq in arrived]
    of: dict[Reason, list[int]] = {}
    calls: list[int] = []
    for departure in view.departures:
        if departure.seq not in arrived:
            of.setdefault(departure.reason, []).append(departure.seq)
        if departure.reason is Reason.ORPHANED and departure.because_seq not in calls:
            calls += [departure.because_seq] if departure.because_seq else []
    said = []
    if oldest := of.get(Reason.CAPACITY):
        said.append(f"{seqs(oldest)} {'was' if len(oldest) == 1 else 'were'} the oldest")
    if orphans := of.get(Reason.ORPHANED):
        results = "result" if len(orphans) == 1 else "results"
        said.append(f"{results} {seqs(orphans)} left with {seqs(calls) if calls else 'a call'}")
    if own:
        said.append(f"{seqs(own)} is too big on its own")
    if replaced := of.get(Reason.REPLACED):
        said.append(f"{seqs(replaced)} was replaced")
    for reason, words in ((Reason.SET, "not in the new list"), (Reason.CLEARED, "cleared")):
        if gone := of.get(reason):
            said.append(f"{seqs(gone)} {words}")
    return ", ".join(said) + "."


def policy_words(policy: Policy | None) -> str:
    """`Token window 1,000`, `Message window 20`, or that the client decides."""
    if policy is None:
        return "the client’s own"
    return f"{policy_name(policy)} {policy.limit:,}"


def policy_name(policy: Policy | None) -> str:
    if policy is None:
        return "Client decides"
    return policy.label


# Why one message is still in


def why_in(window: WindowView[WindowPlace], seq: int) -> Explanation:
    """What keeps a message in memory, and how much room is left before it goes.

    Raises LookupError if it is not in this window.
    """
    position = next((i for i, row in enumerate(window.rows) if row.seq == seq), None)
    if position is None:
        raise LookupError(f"#{seq} is not in memory at step {window.step}")
    row, policy = window.rows[position], window.policy
    question = f"Why is #{seq} still in memory?"
    if policy is None or window.load is None:
        return Explanation(question, "The client keeps it.", "It decides what memory holds.")
    if position == 0 and row.type is MessageType.SYSTEM:
        return Explanation(
            question,
            "It is the system message.",
            "At the head of memory it stays, until another system message takes its place.",
        )
    room = room_before(window, position)
    units = policy.unit
    return Explanation(
        question,
        "There is room for it.",
        f"It leaves when {room:,} more {units} arrive." if room else "It is the next to leave.",
    )


def room_before(window: WindowView[WindowPlace], position: int) -> int:
    """How much can be added before the message at this place leaves, in the policy's unit.

    Everything older leaves first; a leading system message stays. A tool result leaves with its
    call.
    """
    policy = window.policy
    assert policy is not None
    assert window.load is not None
    rows = list(window.rows)
    while position and rows[position].type is MessageType.TOOL_EXECUTION_RESULT:
        position -= 1
        if rows[position].has_calls:
            break
    start = 1 if rows[0].type is MessageType.SYSTEM else 0
    older = sum(policy.cost(row.tokens) for row in rows[start:position])
    return policy.limit - window.load + older + 1


# Does it still remember?


def remembers(
    phrase: str,
    rows: Sequence[MessageRow],
    total: int,
    step: int,
    last: StepView | None = None,
) -> Explanation:
    """Whether a phrase is in memory at a step, and if not, since when and why.

    `rows` are the latest messages that hold it, `total` how many there are, `last` the step at
    which the last of them left.
    """
    question = f"Does it still remember “{phrase}”?"
    times = "once" if total == 1 else f"{total:,} times"
    inside = [row.seq for row in rows if row.is_in_window(step)]
    if not rows:
        return Explanation(question, "It was never said.", "No message holds these words.")
    if inside:
        are = "is" if len(inside) == 1 else "are"
        return Explanation(question, "Yes.", f"Said {times}; {seqs(inside)} {are} in memory.")
    detail = f"Said {times}, and all of it has left."
    if last is None:
        return Explanation(question, "No.", detail)
    gone = [d.seq for d in last.departures if d.seq in {row.seq for row in rows}]
    return Explanation(
        question,
        "No.",
        f"{detail} The last of it, {seqs(gone)}, left at step {last.step.n:,}. "
        f"{caption(last).summary}",
        receipt(last),
    )


def without(seqs_gone: Sequence[int], phrase: str) -> str:
    """What a departure means for a phrase that was looked for."""
    return f"Without {seqs(seqs_gone)}, nothing in memory mentions “{phrase}”."
