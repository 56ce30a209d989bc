"""What is wrong with a window, in words: the title of a rule, and when it broke."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from chatmemory.core.lint import PROVIDERS, RULES
from chatmemory.core.lint.rules import Law
from chatmemory.core.texts import named
from chatmemory.ledger.health import KEPT, SHORT
from chatmemory.linting import outline
from chatmemory.queries import Problem

_SHORT = "A window shorter than one turn"
# What happened at the step at which a window broke a rule, behind "then"
_THEN = {
    SHORT: "no message of the user was left in memory",
    "orphan_result": "the call of a tool result was not in memory",
    "dangling_call": "another message followed a tool call before its result",
    "results_apart": "a tool result came that was not directly behind its call",
    "duplicate_result": "a second result of one tool call came",
    "duplicate_call_id": "tool calls of one message came with the same id",
    "missing_call_id": "a tool call or a result came without an id",
    "bad_arguments": "a tool call came whose arguments are not a JSON object",
    "empty_content": "a message without content came",
    "null_content": "a message came with neither a text nor a tool call",
    "unsupported_image": "an image came of a kind that is not taken",
    "unsupported_file": "a file came of a kind that is not taken",
    "media_left_out": "media came that are not sent",
    "developer_role": "a message of the role developer came",
    "call_after_model": "a tool call followed neither a user nor a tool result",
    "lone_reasoning": "reasoning was without the item that it led to",
    "first_not_user": "the first message was not the user's",
    "system_in_middle": "a system message was not at the beginning",
    "several_systems": "there was more than one system message",
}


def problem_title(rule: str) -> str:
    """Return the name of a problem, as a sentence without its period."""
    return _SHORT if rule == SHORT else RULES[rule].title


def how_it_began(problem: Problem) -> str:
    """`Healthy until step 41: then the call of a tool result was not in memory (#12).`"""
    then = _THEN[problem.rule]
    where = f" ({named(problem.seq)})" if problem.seq else ""
    if problem.since == 1:
        return f"At its first step {then}{where}."
    return f"Healthy until step {problem.since - 1:,}: then {then}{where}."


def provider_names(providers: Sequence[str]) -> str:
    """`every provider`, or `OpenAI, Anthropic`."""
    if len(providers) == len(PROVIDERS):
        return "every provider"
    return ", ".join(PROVIDERS[name] for name in providers)


@dataclass(frozen=True)
class ShownRule:
    """A rule as people read it: its law for each provider by name, and its examples line by line.

    `is_kept` tells that conversations are listed by it.
    """

    id: str
    title: str
    laws: Mapping[str, Law]
    bad: str
    good: str
    is_kept: bool


def shown_rules() -> Iterator[ShownRule]:
    """Yield the rules of the linter, those first that most providers refuse."""

    def refusals(rule: str) -> int:
        return sum(law.severity == "refused" for law in RULES[rule].laws.values())

    for name in sorted(RULES, key=refusals, reverse=True):
        rule = RULES[name]
        yield ShownRule(
            rule.id,
            rule.title,
            {PROVIDERS[each]: law for each, law in rule.laws.items()},
            "\n".join(outline(rule.bad, next(iter(rule.laws)))) or "(no messages)",
            "\n".join(outline(rule.good, next(iter(rule.laws)))),
            rule.id in KEPT,
        )
