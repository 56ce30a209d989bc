"""Words for incidents and compactions: the limit that would have kept a fact, the messages that a
summary replaced, and how lost terms came back.
"""

from __future__ import annotations

from chatmemory import Policy, can_decide
from chatmemory.explain.reasons import short_cause
from chatmemory.explain.wording import counted, in_unit
from chatmemory.messages.texts import named
from chatmemory.recall.compactions import ReturnedBy
from inspector.conversation.keeping import TRIED_TOO_LONG
from inspector.rooms.evidence.losses import StoredEvidence
from inspector.rooms.evidence.reads import ShownIncident, UnseenUses

_BACK = {
    ReturnedBy.TOOL: "fetched again",
    ReturnedBy.USER: "repeated by the user",
    ReturnedBy.UNKNOWN: "no recorded mention in between",
}


def cure(shown: ShownIncident, today: Policy | None) -> tuple[str, str]:
    """Return two texts about the limit that would have kept the fact: the limit, such as “A limit
    of 60 messages”, and the rest of the sentence.

    If no limit would have kept the fact, or if the limit is unknown, the first text is "" and the
    second text says why. `today` is the conversation's current policy, or None if the client
    decides what memory holds.
    """
    keeping, policy = shown.incident.shown.keeping, shown.policy
    if keeping is None:
        return "", f"Which limit would have kept it in memory is not known. {TRIED_TOO_LONG}"
    if keeping.limit is None or not can_decide(policy):
        return "", f"No limit would have kept it in memory: {_why_no_limit(shown)}."
    about = "about " if keeping.tried_every > 1 else ""
    tried = f" Limits were tried in steps of {keeping.tried_every:,}." if about else ""
    comparison = _compared_with(today, keeping.limit, policy)
    return f"A limit of {about}{in_unit(keeping.limit, policy)}", f"{comparison}.{tried}"


def _why_no_limit(shown: ShownIncident) -> str:
    left, last = shown.left, shown.incident.shown.last
    if left.by_client:
        return "the client decided what memory holds"
    if shown.incident.shown.cause.is_beyond_limits:
        return short_cause(left, last)
    if not can_decide(shown.policy):
        return f"no limit was in force at step {shown.incident.step:,}"
    return "even with room for everything, memory would not have held it"


def _compared_with(today: Policy | None, limit: int, policy: Policy) -> str:
    """Return a sentence that compares the limit that would have kept a fact with today's limit."""
    if today is None:
        return "would have kept it in memory (today the client decides what memory holds)"
    if not can_decide(today) or today.unit != policy.unit:
        return "would have kept it in memory"
    if today.limit < limit:
        return f"would have kept it in memory (today’s limit is {today.limit:,})"
    return (
        f"from the first message on would have kept it in memory; today’s limit is {today.limit:,}"
    )


def used_words(used: UnseenUses) -> str:
    """Describe how many facts the assistant used while they were not in memory: `Assistant used 2
    terms and 1 value of calls missing from memory`.
    """
    terms = counted(used.terms, "term") if used.terms else ""
    values = f"{counted(used.pairs, 'value')} of calls" if used.pairs else ""
    what = " and ".join(filter(None, (terms, values)))
    if used.are_imported:
        return f"{what} would have been missing"
    return f"Assistant used {what} missing from memory"


# Compactions


def what_became_a_summary(evidence: StoredEvidence) -> str:
    """Describe the messages that a summary replaced: `#1 to #411 became one summary`."""
    first, last, count = evidence.first, evidence.last, evidence.replaced
    if first is None or last is None:
        return "A summary of messages that are not recorded"
    if count > 1 and last - first + 1 == count:
        return f"{named(first)} to {named(last)} became one summary"
    return f"{counted(count, 'message')} became one summary"


def tokens_around(evidence: StoredEvidence, window: tuple[int, int]) -> str:
    """Describe the sizes of the prompts before and after a compaction, as a coding agent recorded
    them. `prompts of 91,204 tok in 2,711` means 91,204 tokens before and 2,711 after.

    `window` has the tokens of memory before and after, which the page already shows. Return "" if
    the recorded sizes equal `window`, or if no size is recorded.
    """
    before, after = evidence.tokens_before, evidence.tokens_after
    if (before, after) == window:
        return ""
    if before is None:
        return "" if after is None else f"prompts of {after:,} tok afterwards"
    return f"prompts of {before:,} tok" + (" before" if after is None else f" in {after:,}")


def came_back(back: ReturnedBy) -> str:
    """Describe how a lost term came back: `fetched again`, `repeated by the user` or `no recorded
    mention`. The last text does not claim that the model invented the term.
    """
    return _BACK[back]
