"""The words for the reasons why messages leave memory. Only this module has such words.

Each reason has one `Cause`, with its words for pages, receipts, captions, the API, commands and
agents. The words have gaps, which functions fill with values of the change.

For a new reason, add a member to `Reason` and an entry to `CAUSES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from chatmemory.explain.wording import at_step, capitalized, decapitalized, of_limit, seqs
from chatmemory.ledger.changes import ChangeResult
from chatmemory.messages.texts import named
from chatmemory.windows.eviction import CannotFit, Eviction, Reason
from chatmemory.windows.policies import has_own_rule
from chatmemory.windows.stored_policies import can_decide


@dataclass(frozen=True)
class Cause:
    """The words for one reason why messages leave memory. Words in braces, such as `{messages}`,
    are gaps that functions of this module fill.

    Some messages leave because of another message, called the *other message* below. For a tool
    result, this is its tool call.

    - `short`: a few words, such as `memory was full`.
    - `sentence`: a sentence about a change in the past.
    - `conditional`: the sentence about a simulated change. If empty, `sentence` is used.
    - `beside`: a few words that name the other message. If `beside` is empty or the other message
      is unknown, `short` is used.
    - `listed`: the words in a caption for all messages that left for this reason.
    - `line`: the words after the name of a message in a receipt. If empty, `beside` or `short` is
      used.
    - `detail`: a sentence for the answers of *Why?* on pages. It may name the other message.
    - `other`: the words for an unknown other message in `detail` and `listed`, such as `a call`.
    """

    short: str
    sentence: str
    conditional: str = ""
    beside: str = ""
    listed: str = ""
    line: str = ""
    detail: str = ""
    other: str = ""

    def sentence_for(self, is_conditional: bool) -> str:
        """Return the sentence for a simulated change if `is_conditional`, else for a change in the
        past.
        """
        return (is_conditional and self.conditional) or self.sentence


# In the order in which captions name them.
CAUSES = {
    Reason.CAPACITY: Cause(
        "memory was full",
        "There was no room.",
        "There would be no room.",
        listed="{messages} {was} {choice}",
        line="{choice_or_next}",
    ),
    Reason.ORPHANED: Cause(
        "left with its call",
        "Its tool call left.",
        "Its tool call would leave.",
        beside="left with {other}",
        listed="{results} {messages} {left} with {others}",
        line="its result",
        detail="{Message} answers {other}, which {left_then}; a result stays only as long as its "
        "call.",
        other="a call",
    ),
    Reason.TURN: Cause(
        "rest of a trimmed turn",
        "Its turn had lost its beginning.",
        "Its turn would lose its beginning.",
        listed="{messages} {was} the rest of a turn",
        line="rest of its turn",
        detail="{Then_memory_was} trimmed, and the policy lets memory start "
        "only at a user message.",
    ),
    Reason.REPLACED: Cause(
        "system message replaced",
        "Another system message took its place.",
        "Another system message would take its place.",
        beside="replaced by {other}",
        listed="{messages} {became} replaced",
        detail="{Other} {arrived_then}, and a memory keeps one system message.",
        other="another system message",
    ),
    Reason.INTERRUPTED: Cause(
        "tool call not answered",
        "The call was not answered completely.",
        "The call would not be answered completely.",
        listed="{messages} belonged to a call that was not answered completely",
        line="not answered",
        detail="{Other} {arrived_then} without all results of {message} before it; the policy "
        "removes such a call.",
        other="another message",
    ),
    Reason.CLEARED: Cause(
        "cleared",
        "Memory was cleared.",
        listed="{messages} cleared",
        detail="{Then} all messages left; history keeps them.",
    ),
    Reason.SET: Cause(
        "list replaced",
        "The message list was replaced.",
        listed="{messages} not in the new list",
        detail="{Then} memory was replaced by a list without {message}.",
    ),
    Reason.MOVED: Cause("moved", "It moved."),
    Reason.STUBBED: Cause(
        "result cleared",
        "It was cleared to make room.",
        "It would be cleared to make room.",
        line="cleared",
        detail="{Then} a placeholder took its place; history keeps the result.",
    ),
    Reason.SUMMARIZED: Cause(
        "summarised",
        "A summary took its place.",
        beside="summarised by {other}",
        detail="{Other} {arrived_then}; history keeps {message}.",
        other="a summary",
    ),
    Reason.INDEXED: Cause(
        "index renewed",
        "A new index took its place.",
        "A new index would take its place.",
        listed="{messages} {was} an earlier index",
        line="earlier index",
        detail="{Then} the terms of more messages were indexed, or the earlier index had no room.",
    ),
}
_ORDER = list(CAUSES)
_OF_INTERRUPTED = replace(
    CAUSES[Reason.INTERRUPTED],
    line="its result",
    detail="{Message} answers {other}; both {left_then}.",
    other="a call",
)
_REPAIRED = Cause(
    "left out by a repair",
    "A repair left it out.",
    listed="{messages} left out",
    detail="{Then} memory was repaired without {message}.",
)
# What a client did is known from its lists alone. One add explains the first ones, and any change
# the last.
_BY_CLIENT = {
    Reason.CAPACITY: replace(
        CAUSES[Reason.CAPACITY],
        short="left out by the client",
        sentence="The client left it out of its list, as if memory were full.",
        detail="It left the head of the list {then}.",
    ),
    Reason.ORPHANED: replace(
        CAUSES[Reason.ORPHANED],
        short="left out by the client with its call",
        sentence="The client left it out of its list with its tool call.",
    ),
    Reason.REPLACED: replace(
        CAUSES[Reason.REPLACED],
        short="replaced in its list",
        sentence="The client put another system message in its place.",
    ),
    Reason.INTERRUPTED: replace(
        CAUSES[Reason.INTERRUPTED],
        short="left out, tool call not answered",
        sentence="The client left out a tool call that was not answered completely.",
    ),
    Reason.SET: Cause(
        "left out by the client",
        "The client left it out of its list.",
        listed="{messages} {was} left out by the client",
        detail="{Then} the list of the client was without {message}.",
    ),
}
_MISFITS = {
    CannotFit.TOO_BIG: Cause(
        "too large for the limit",
        "It was too large for the limit.",
        "It would be too large for the limit.",
    ),
    CannotFit.TOO_BIG_BESIDE_SYSTEM: Cause(
        "no room beside the system message",
        "It had no room beside the system message.",
        "It would have no room beside the system message.",
    ),
    CannotFit.NO_ROOM_BESIDE_PINS: Cause(
        "no room beside pinned messages",
        "It had no room beside the pinned messages.",
        "It would have no room beside the pinned messages.",
    ),
    CannotFit.SYSTEM_TOO_BIG: Cause(
        "system message larger than the limit",
        "The system message alone is larger than the limit.",
    ),
    CannotFit.SYSTEM_FILLS: Cause(
        "system message fills the limit",
        "The system message alone fills the limit.",
    ),
}


# A cause without the change


def cause_of(
    reason: Reason, misfit: CannotFit | None = None, by_client: bool = False, kind: str = ""
) -> Cause:
    """Return the words for a reason why a message left memory.

    - `misfit`: why the message could not stay, if it left in the step that added it; else None.
    - `by_client`: whether a client decided the change. The words then only say what the client's
      message list shows.
    - `kind`: the kind of the step. Only "repair" makes a difference to the words.
    """
    if by_client and reason in _BY_CLIENT:
        return _BY_CLIENT[reason]
    if kind == "repair" and reason is Reason.SET:
        return _REPAIRED
    return _MISFITS[misfit] if misfit else CAUSES[reason]


def short_reason(reason: Reason, misfit: CannotFit | None = None, by_client: bool = False) -> str:
    """Return a few words for a reason, such as `memory was full`. The words name no message. The
    arguments are those of `cause_of`.
    """
    return cause_of(reason, misfit, by_client).short


def reason_of(evicted: Eviction) -> str:
    """Return a few words for the reason of an eviction. They name the message that caused the
    eviction, if known.
    """
    cause = cause_of(evicted.reason, evicted.misfit)
    if evicted.because_seq and cause.beside:
        return cause.beside.format(other=named(evicted.because_seq))
    return cause.short


# A cause with the change that decided it


def cause_in(change: ChangeResult, evicted: Eviction) -> Cause:
    """Return the words for the reason why a message left in a change."""
    is_result = evicted.reason is Reason.INTERRUPTED and not evicted.has_calls
    if is_result and not change.by_client:
        return _OF_INTERRUPTED
    return cause_of(evicted.reason, evicted.misfit, change.by_client, change.kind)


def choice(change: ChangeResult) -> str:
    """Return which messages a change evicted because of the limit, in words such as `the oldest`.
    The words can follow "was" or "were".

    If older messages stayed because they are pinned, the words are `the oldest that could leave`.
    If the policy has its own rule of eviction, the words are those of `own_choice`.
    """
    oldest = "the oldest that could leave" if change.passed_pins else "the oldest"
    return own_choice(change) or oldest


def own_choice(change: ChangeResult) -> str:
    """Return words for the messages that were chosen by a policy's own rule of eviction. The words
    can follow "was": `chosen by the policy’s own rule`.

    Returns "" if the policy evicts the oldest messages.
    """
    for policy in filter(None, (change.policy, change.policy_before)):
        if not can_decide(policy):
            return "chosen by a rule that is not installed"
        if has_own_rule(type(policy)):
            return policy.choice or "chosen by the policy’s own rule"
    return ""


def note_of(change: ChangeResult, evicted: Eviction) -> str:
    """Return a few words about an evicted message, such as `oldest` or the reason why it left."""
    if change.by_client:
        return cause_in(change, evicted).short
    if evicted.reason is Reason.CAPACITY and not evicted.misfit:
        return choice(change).removeprefix("the ")
    return reason_of(evicted)


def line_of(change: ChangeResult, evicted: Eviction, is_first: bool) -> str:
    """Return why a message left, in the words that follow the name of the message in a receipt:
    `the oldest`, `next oldest` or `cleared`.

    `is_first` is True for the first message that leaves because of the limit. That message is `the
    oldest`, and later messages are `next oldest`.
    """
    line = cause_in(change, evicted).line
    if not line:
        return reason_of(evicted)
    chosen = choice(change)
    return line.format(choice_or_next=chosen if is_first else chosen.replace("the ", "next ", 1))


def detail_of(change: ChangeResult, evicted: Eviction) -> str:
    """Return a sentence about the reason of an eviction, for the answers of *Why?* on pages.

    Returns "" if a policy evicted the message because of the limit (`Reason.CAPACITY`). For these
    evictions, `explain.reasons` writes a sentence with numbers.
    """
    would, cause, then = change.is_of_draft, cause_in(change, evicted), at_step(change)
    message = named(evicted.seq)
    other = named(evicted.because_seq) if evicted.because_seq else cause.other
    return cause.detail.format(
        message=message,
        Message=capitalized(message),
        other=other,
        Other=capitalized(other),
        then=then,
        Then=capitalized(then),
        left_then="would leave" if would else f"left {then}",
        arrived_then="would arrive" if would else f"arrived {then}",
        Then_memory_was="Memory would be" if would else f"{capitalized(then)} memory was",
    )


def listed(change: ChangeResult) -> list[str]:
    """Return why the messages of a change left, as one text for each reason: `#25 and #26 were the
    oldest`, `results #27 and #28 left with #26`.

    For a simulated change: `#25 and #26 are the oldest`, `results #27 and #28 would leave with
    #26`.
    """
    by_cause: dict[str, list[Eviction]] = {}
    for each in change.evicted:
        by_cause.setdefault(cause_in(change, each).short, []).append(each)
    groups = sorted(by_cause.values(), key=lambda left: _place(left[0]))
    return [words for left in groups for words in _listed(change, left)]


def _place(evicted: Eviction) -> tuple[int, bool]:
    """Return the sort key of a reason in a caption. Messages that did not fit come last."""
    reason = Reason.TURN if evicted.misfit else evicted.reason
    return _ORDER.index(reason), bool(evicted.misfit)


def _listed(change: ChangeResult, left: Sequence[Eviction]) -> Iterator[str]:
    cause, would, is_one = cause_in(change, left[0]), change.is_of_draft, len(left) == 1
    if misfit := next((each for each in left if each.misfit), None):
        sentence = decapitalized(cause.sentence_for(would).removesuffix("."))
        yield f"{named(misfit.seq)} could not stay: {sentence}"
    elif cause.listed:
        others = dict.fromkeys(each.because_seq for each in left if each.because_seq)
        yield cause.listed.format(
            messages=seqs([each.seq for each in left]),
            was=("is" if is_one else "are") if would else "was" if is_one else "were",
            became="would be" if would else "was",
            left="would leave" if would else "left",
            results="result" if is_one else "results",
            others=seqs(list(others)) if others else cause.other,
            choice=choice(change),
        )


def why_no_fit(change: ChangeResult, message: Eviction) -> str:
    """Return why an added message did not fit, as a sentence with a sum: `With the system message,
    #5 needs 905 of 800 tokens.`

    `message` is the eviction of this message, in the step that added the message. Returns "" if the
    policy is not installed.
    """
    policy, name = change.policy, named(message.seq)
    remaining = change.after.without(change.pinned)
    if not can_decide(policy):
        return ""
    if message.misfit is not None and message.misfit.is_of_system:
        return f"It takes {of_limit(policy, remaining)}: nothing else can stay."
    if message.misfit is CannotFit.TOO_BIG:
        return f"{capitalized(name)} alone needs {of_limit(policy, policy.total([message]))}."
    if message.misfit is CannotFit.NO_ROOM_BESIDE_PINS:
        all_of_it = change.after.plus(message, policy.weigh(message))
        return f"With the pinned messages, {name} needs {of_limit(policy, all_of_it)}."
    both = remaining.plus(message, policy.weigh(message))
    return f"With the system message, {name} needs {of_limit(policy, both)}."
