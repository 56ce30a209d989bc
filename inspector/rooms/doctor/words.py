"""Words for problems of a window: titles of rules, how problems began, and names of providers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from chatmemory.explain.wording import capitalized, decapitalized, in_unit
from chatmemory.lint import PROVIDERS
from chatmemory.lint.catalog import RULES
from chatmemory.lint.linter import example, outline
from chatmemory.lint.recognition import Recognized
from chatmemory.lint.rules import Example, Law, Rule
from chatmemory.messages.texts import named
from chatmemory.windows.policies import Policy
from inspector.rooms.doctor.choosing import Choices
from inspector.rooms.doctor.diagnosing import KnownDiagnosis
from inspector.rooms.doctor.diagnosis import Diagnosis, Problem
from inspector.rooms.doctor.largest import TooSmallLimit
from inspector.rooms.doctor.reads import Issue
from inspector.rooms.doctor.using import InUse


def problem_title(rule: str) -> str:
    """Return the title of a rule that a window breaks, as a sentence without its period."""
    return RULES[rule].title


def how_it_began(problem: Problem, step: int) -> str:
    """Describe how a problem began: `Since step 41: the tool call of a tool result was not in
    memory (#12).`

    If the step at which the problem began is unknown, the text names the diagnosed step `step`
    instead: `Seen at step 50: …`.
    """
    when = f"Seen at step {step:,}" if problem.since is None else f"Since step {problem.since:,}"
    return f"{when}: {RULES[problem.rule].began}{_where(problem)}."


def _where(problem: Problem) -> str:
    return f" ({named(problem.seq)})" if problem.seq else ""


def provider_names(providers: Sequence[str]) -> str:
    """Return providers' names as text, such as `OpenAI, Anthropic`. For all providers, the text is
    `every provider`.
    """
    if len(providers) == len(PROVIDERS):
        return "every provider"
    return ", ".join(PROVIDERS[name] for name in providers)


def title_and_who_refuses(problem: Problem) -> str:
    """Return a sentence such as `Tool call without a result (rejected by OpenAI, Anthropic).`"""
    by = f" (rejected by {provider_names(problem.refused_by)})" if problem.refused_by else ""
    return f"{problem_title(problem.rule)}{by}."


def refused(found: KnownDiagnosis) -> str:
    """Return the words for a rejected window: `rejected by OpenAI, as of step 12`."""
    as_of = "" if found.as_of is None else f", as of step {found.as_of:,}"
    return f"rejected by {provider_names(found.refused_by)}{as_of}"


def refusal(found: KnownDiagnosis) -> str:
    """Return the warning for the page of a conversation: `OpenAI would reject this memory: tool
    call without a result. Since step 41: … (#12).`
    """
    assert found.diagnosis is not None
    problem = next(each for each in found.diagnosis.listed if each.refused_by)
    names = capitalized(provider_names(found.refused_by))
    title = decapitalized(problem_title(problem.rule))
    return (
        f"{names} would reject this memory: {title}. {how_it_began(problem, found.diagnosis.step)}"
    )


@dataclass(frozen=True)
class Answer:
    """What a provider does with a window: whether it `accepts` the window, and its `answer` in
    words. `provider` is the provider's title, such as `OpenAI`.
    """

    provider: str
    accepts: bool
    answer: str


def answers(diagnosis: Diagnosis, use: InUse) -> list[Answer]:
    """Return what each provider in use does with the diagnosed window."""
    found = diagnosis.under(use)
    return [_answer(found, provider) for provider in use.providers]


def _answer(diagnosis: Diagnosis, provider: str) -> Answer:
    name, minded = PROVIDERS[provider], diagnosis.for_provider(provider)
    minded = [each for each in minded if each.severity_for(provider) != "conditional"]
    if not minded:
        return Answer(name, True, "Yes.")
    # Refusals come first, and pending problems last
    first = min(minded, key=lambda each: (provider in each.mishandled_by, each.is_pending))
    what = f"{problem_title(first.rule)}{_where(first)}."
    if first.is_pending and first.rule == "dangling_call":
        what = f"Tool call {named(first.seq)} is waiting for its results."
    if provider in first.mishandled_by:
        return Answer(name, True, f"Accepted, but may be mishandled: {decapitalized(what)}")
    return Answer(name, False, f"{'Not yet' if first.is_pending else 'No'}. {what}")


_SEVERITIES = {
    "refused": "rejected",
    "conditional": "rejected under a condition",
    "mishandled": "accepted, but mishandled",
}


def severity_words(severity: str) -> str:
    """Return a word for what a provider does with a window that breaks a rule, such as `rejected`
    for the severity `refused`.
    """
    return _SEVERITIES[severity]


@dataclass(frozen=True)
class ShownRule:
    """A rule of the linter for display.

    - `laws` maps a provider's title to what this provider does with a window that breaks the rule.
    - `bad` is an example of a window that breaks the rule, as text. `good` is an example that
      follows the rule.
    - `is_listed` is True if the doctor lists conversations that break the rule.
    """

    id: str
    title: str
    laws: Mapping[str, Law]
    bad: str
    good: str
    is_listed: bool


def shown_rules() -> Iterator[ShownRule]:
    """Yield the rules of the linter for display. Rules for which most providers reject a window
    come first.
    """

    def refusals(rule: str) -> int:
        return sum(law.severity == "refused" for law in RULES[rule].laws.values())

    for name in sorted(RULES, key=refusals, reverse=True):
        rule = RULES[name]
        yield ShownRule(
            rule.id,
            rule.title,
            {PROVIDERS[each]: law for each, law in rule.laws.items()},
            "\n".join(_outline(rule, rule.bad)) or "(no messages)",
            "\n".join(_outline(rule, rule.good)),
            rule.is_listed,
        )


def _outline(rule: Rule, window: Example) -> list[str]:
    return outline(example(window, rule.example_provider), rule.example_provider)


# Causes

_VERBS = {
    "add_placeholder": "Add placeholder results…",
    "drop_result": "Remove orphaned results…",
    "drop_duplicate": "Remove duplicate results…",
    "move_result": "Move results after their calls…",
    "system_first": "Move system messages…",
    "begin_with_user": "Start memory at a user message…",
}


def verb(rule: str) -> str:
    """Return the label of the button that repairs windows which break a rule; "" if there is no
    repair.
    """
    repairs = RULES[rule].repairs
    return _VERBS[repairs[0]] if repairs else ""


def mend_verb(count: int) -> str:
    """Return the label of the button that opens the preview of repairing `count` conversations."""
    return f"Repair all {count:,}…" if count > 1 else "Repair memory…"


def verb_of(issue: Issue) -> str:
    return verb(issue.rule)


def issue_title(issue: Issue) -> str:
    """Return the title of a cause: `OpenAI, Anthropic: a tool call without its result`."""
    return cause_title(",".join(issue.providers), issue.rule)


def cause_title(providers: str, rule: str) -> str:
    """Return the title of a provider's rule: `OpenAI: a tool call without its result`.

    `providers` are names separated by commas. If it is "", only the rule is named. If `rule` is "",
    the title is `Memory that providers would reject`.
    """
    names = provider_names([each for each in providers.split(",") if each]) if providers else ""
    title = problem_title(rule) if rule else "Memory that providers would reject"
    return f"{capitalized(names)}: {decapitalized(title)}" if names else title


def issue_why(issue: Issue) -> str:
    """Return how the newest problem of an issue began, such as `In hooli/7, since step 41: …`.

    If the providers of the issue accept the window, the text begins with "Accepted, but may be
    mishandled.".
    """
    newest = issue.cases[0]
    how = how_it_began(newest.problem, newest.step)
    taken = "" if issue.severity == "refused" else "Accepted, but may be mishandled. "
    return f"{taken}In {newest.memory_id[:60]}, {decapitalized(how)}"


def in_use(made: Choices) -> str:
    """Return the chosen providers as text: `OpenAI, Anthropic (claude-opus-4-6)`, or a sentence if
    nobody has chosen.
    """
    if not made.is_made:
        return "none chosen, so problems for all providers are shown"
    uses = made.everywhere.models.items()
    shown = [
        PROVIDERS[name] + (f" ({', '.join(models)})" if models else "") for name, models in uses
    ]
    return ", ".join(shown) or "none"


@dataclass(frozen=True)
class ProviderRow:
    """A checkbox for a provider, with the number of conversations that use this provider.

    `would_fail` is the number of windows that the provider would reject; None if no conversation
    has been examined yet. `models` are the provider's models in use, separated by commas.
    """

    name: str
    label: str
    is_ticked: bool
    models: str
    conversations: int
    would_fail: int | None


def provider_rows(
    use: InUse | None, found: Mapping[str, int], conversations: Mapping[str, int]
) -> list[ProviderRow]:
    """Return the checkboxes of all providers. Providers in use are ticked. If nobody has chosen
    (`use` is None), providers that messages seem to come from are ticked.

    `found` maps a provider to the number of conversations that the provider would reject, and
    `conversations` to the number of conversations that use the provider.
    """
    models = use.models if use else {name: () for name, count in conversations.items() if count}
    return [
        ProviderRow(
            name,
            label,
            name in models,
            ", ".join(models.get(name, ())),
            conversations[name],
            found.get(name),
        )
        for name, label in PROVIDERS.items()
    ]


def place_of(found: Recognized) -> str:
    """Return a sentence that says which message of the request an error is about."""
    if found.at is None:
        return "The error does not name a message."
    return f"The error is about message {found.at + 1:,} of the request, whose index is {found.at}."


# Windows smaller than their largest turn


def raised_words(each: TooSmallLimit, to_set: Policy) -> str:
    """Describe how a conversation's limit would change with the policy `to_set`, such as `5 → 7
    messages`. If `to_set` evicts no message, the text is such as `5 messages → sending everything`.
    """
    if to_set.meters_only:
        return f"{in_unit(each.policy.limit, each.policy)} → sending everything"
    return f"{each.policy.limit:,} → {in_unit(to_set.limit, to_set)}"


def needed_words(each: TooSmallLimit) -> str:
    """Compare the limit that the largest turn needs with the limit of the conversation: `largest
    turn needs 7 messages, limit is 5`.
    """
    return f"largest turn needs {in_unit(each.needed, each.policy)}, limit is {each.policy.limit:,}"


SHORT = "A limit smaller than the largest recorded turn"


def short_verb(found: Sequence[TooSmallLimit]) -> str:
    """Return the label of the button for raising limits that are too small: `Raise 3 limits…`.

    The button opens a preview with the costs of higher limits and of sending everything.
    """
    return "Raise the limit…" if len(found) == 1 else f"Raise {len(found):,} limits…"


def short_why(newest: TooSmallLimit) -> str:
    """Return an example of a too small limit: `Not rejected yet. In hooli/7, the largest turn and
    the system message need 7 messages, but the limit is 5.`

    `newest` is the limit that became too small last.
    """
    needed = in_unit(newest.needed, newest.policy)
    return (
        f"Not rejected yet. In {newest.memory_id[:60]}, the largest turn and the system message "
        f"need {needed}, but the limit is {newest.policy.limit:,}."
    )
