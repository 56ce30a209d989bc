"""The words and number formats that all explanations share. The words for reasons are in
`causes`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from chatmemory.ledger.changes import ChangeResult
from chatmemory.messages.message import MessageType
from chatmemory.messages.texts import named
from chatmemory.patterns import declared_pattern
from chatmemory.reading.budget import Budget
from chatmemory.windows.option_words import option_words
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.window import Totals

MINUS = "−"
LISTED_SEQS = 4
_QUOTED = declared_pattern(r"(?<!\w)'([^']*)'(?!\w)")

_ROLES = {
    MessageType.SYSTEM: "System",
    MessageType.USER: "User",
    MessageType.AI: "AI",
    MessageType.TOOL_EXECUTION_RESULT: "Tool result",
    MessageType.CUSTOM: "Custom",
}

_KINDS = {
    "add": "a message arrived",
    "set": "the message list was replaced",
    "clear": "memory was cleared",
    "policy": "the policy changed",
    "labels": "the labels changed",
    "pin": "a message was pinned",
    "unpin": "a message was unpinned",
    "repair": "memory was repaired",
    "stub": "old tool results were cleared",
    "redact": "a message was redacted",
    "index": "the index was renewed",
}


def happened(kind: str) -> str:
    """Return a few words for what a step of this kind did, such as `memory was cleared`."""
    return _KINDS[kind]


def role(type: MessageType, has_calls: bool = False) -> str:
    """Return the name of a message's role: User, AI, Tool call, Tool result, System or Custom."""
    return "Tool call" if has_calls else _ROLES[type]


def amount(number: int) -> str:
    """Return a number as text: `1,043` or `−24`."""
    return f"{MINUS if number < 0 else ''}{abs(number):,}"


def counted(number: int, noun: str) -> str:
    """Return a number with a noun: `1 message` or `1,043 messages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(part: int, whole: int) -> str:
    """Return a share in whole percent, or "" if `whole` is 0.

    The text is `100 %` only if `part` equals `whole`, and `0 %` only if `part` is 0.
    """
    if not whole:
        return ""
    rounded = round(100 * part / whole)
    if 0 < part < whole:
        rounded = min(max(rounded, 1), 99)
    return f"{rounded} %"


def in_unit(number: int, policy: Policy) -> str:
    """Return a number in the unit of a policy: `1 message` or `1,043 tokens`."""
    return counted(number, policy.unit.removesuffix("s"))


def is_of_turns(policy: Policy | None) -> bool:
    """Return whether a policy's limit counts turns."""
    return can_decide(policy) and policy.unit == "turns"


def load_words(policy: Policy | None, totals: Totals) -> str:
    """Return the load of a window in the unit of its policy, such as `16 messages`. Without an
    installed policy, the unit is tokens.
    """
    if can_decide(policy):
        return in_unit(policy.load(totals), policy)
    return counted(totals.tokens, "token")


def window_size_words(policy: Policy | None, totals: Totals) -> str:
    """Return the size of a window, with its limit: `16 messages, 672 of 800 tokens` or `16 of 20
    messages, 672 tokens`.

    Without an installed policy, the limit is left out.
    """
    count, tokens = counted(totals.count, "message"), counted(totals.tokens, "token")
    if not can_decide(policy):
        return f"{count}, {tokens}"
    load = of_limit(policy, totals)
    return f"{count}, {load}" if policy.unit == "tokens" else f"{load}, {tokens}"


def system_share(budget: Budget) -> str:
    """Return a sentence about the share of the system message: `The system message takes 63 % of
    the limit: 748 tokens remain for other messages`.

    If the window is over its limit, the share is in tokens: `takes 252 of the limit’s 1,000
    tokens`. If no tokens remain for other messages, the sentence is: `The system message needs
    1,252 tokens, the limit is 1,000: no token remains for other messages`.
    """
    limit = budget.limit or 0
    if not budget.remaining:
        needs = f"The system message needs {budget.system:,} tokens, the limit is {limit:,}"
        return f"{needs}: no token remains for other messages"
    share = f"{budget.system_percent} % of the limit"
    if budget.used > limit:
        share = f"{budget.system:,} of the limit’s {limit:,} tokens"
    remaining = counted(budget.remaining, "token")
    verb = "remains" if budget.remaining == 1 else "remain"
    return f"The system message takes {share}: {remaining} {verb} for other messages"


def at_step(change: ChangeResult) -> str:
    """Return when a change happened: `at step 43`, or `in the simulation`."""
    return "in the simulation" if change.is_of_draft else f"at step {change.step or 0:,}"


def capitalized(words: str) -> str:
    """Return a text with a capital first letter; the rest is unchanged."""
    return words[:1].upper() + words[1:]


def decapitalized(words: str) -> str:
    """Return a text with a small first letter; the rest is unchanged."""
    return words[:1].lower() + words[1:]


def seqs(numbers: Sequence[int]) -> str:
    """Return message numbers as text: `#26`, `#26 and #27`, or `#26, #27 and #30`. More than four
    numbers become `#26 to #40` if they are consecutive, else `#26, #28, #31 and 5 more`.
    """
    names = [named(number) for number in numbers[:LISTED_SEQS]]
    if len(numbers) > LISTED_SEQS:
        run = range(numbers[0], numbers[-1] + 1)
        if len(run) == len(numbers) and list(numbers) == list(run):
            return f"{names[0]} to {named(numbers[-1])}"
        names = [*names[:3], f"{len(numbers) - 3:,} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def policy_name(policy: Policy | None) -> str:
    """Return the display name of a policy's kind; `Client decides` for None."""
    return "Client decides" if policy is None else policy.label


def policy_words(policy: Policy | None, before: Policy | None = None) -> str:
    """Return a policy with its limit and options: `Token window 1,000, trimmed to 60 % when full`.
    For None, return `the client’s own, so the client decides what memory holds`.

    If the previous policy `before` is given, changes that this text does not show are appended. An
    option that only `before` has becomes `no longer …`. A changed estimator is also named.
    """
    if policy is None:
        return "the client’s own, so the client decides what memory holds"
    parts = _parts(policy)
    if before is not None and before != policy:
        parts += [f"no longer {each}" for each in option_words(before) if each not in parts]
        if policy.estimator != before.estimator:
            parts.append(f"counted as {policy.estimator}")
        elif parts == _parts(before):
            parts += _differing(policy, before)
    return ", ".join(parts)


def _parts(policy: Policy) -> list[str]:
    return [f"{policy.label} {policy.limit:,}", *option_words(policy)]


def _differing(policy: Policy, before: Policy) -> list[str]:
    """Return the options in which two policies differ, with their values in `policy`: `oversized
    evict`.
    """
    options, others = policy.to_dict(), before.to_dict()
    names = [name for name in {**others, **options} if options.get(name) != others.get(name)]
    return [_option(name, options.get(name)) for name in names]


def _option(name: str, value: object) -> str:
    words = name.replace("_", " ")
    if value is None:
        return f"without {words}"
    return f"{words} {value if isinstance(value, str) else json.dumps(value)}"


def of_limit(policy: Policy, totals: Totals) -> str:
    """Return the load of a window and its limit: `672 of 800 tokens`."""
    return f"{policy.load(totals):,} of {in_unit(policy.limit, policy)}"


def sentence(problem: object) -> str:
    """Return an error as a sentence for pages. The text `'m' has no step 9` becomes `“m” has no
    step 9.`
    """
    words = _QUOTED.sub("“\\1”", str(problem).strip())
    # Names such as max_messages and messages[0] keep their first letter
    is_name = not {"_", "["}.isdisjoint(words.partition(" ")[0])
    words = words if is_name else capitalized(words)
    return words if words.endswith((".", "!", "?")) else f"{words}."
