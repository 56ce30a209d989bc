"""The diagnosis of a window: which provider rules it breaks, for which providers, and since which
step.

The pages of the inspector, the API, the command `doctor` and the tools for agents all read the
class `Diagnosis`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from chatmemory.lint import PROVIDERS, ProviderWindow
from chatmemory.lint.catalog import RULES
from chatmemory.lint.linter import repair, turns_by_provider
from chatmemory.lint.rules import findings, refusing
from chatmemory.lint.since import Past
from chatmemory.lint.turns import OPENAI, Turn
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from chatmemory.messages.message import ChatMessage
from inspector.rooms.doctor.using import InUse

_LISTED_LAWS = [rule for rule in RULES.values() if rule.is_listed and rule.laws]
LOOKED_AT = 50  # faults of a rule whose first step is looked for
MARKS = {"refused": "!", "conditional": "?", "mishandled": "~"}

Named = tuple[int, ...]
# By rule and by whether it is pending: the messages at fault, and the severity by provider
FoundProblems = dict[tuple[str, bool], dict[Named, dict[str, str]]]


@dataclass(frozen=True)
class Problem:
    """A rule that a window breaks, with the providers that would reject or mishandle the window
    because of this rule.

    - `refused_by` are the providers that would reject the window, and `mishandled_by` the providers
      that would mishandle it.
    - `conditional_for` are the providers for which a rejection depends on the model or a parameter.
    - `seq` is the seq of a message that breaks the rule; 0 for the whole window.
    - `since` is the step at which the problem began; None if unknown.
    - `at` is the time of the step `since`. If this step is unknown, `at` is the time of the
      diagnosed step. None if the diagnosis has no times.
    - `repairable_for` are the providers for which a repair would end the problem.
    - `is_pending` means that the next messages will end the problem. An example is a tool call that
      still waits for its results.
    """

    rule: str
    seq: int
    since: int | None
    refused_by: tuple[str, ...] = ()
    mishandled_by: tuple[str, ...] = ()
    conditional_for: tuple[str, ...] = ()
    is_pending: bool = False
    at: datetime | None = None
    repairable_for: tuple[str, ...] = ()

    @property
    def is_listed(self) -> bool:
        """Whether the doctor lists a conversation for this problem. Three kinds of problems are not
        listed:

        - pending problems (see `is_pending`);
        - problems with a rule that the doctor does not list (see `Rule.is_listed`);
        - problems with `conditional_for` alone, where each rejection depends on the model or a
          parameter.
        """
        is_alarm = bool(self.refused_by or self.mishandled_by or not RULES[self.rule].laws)
        return is_alarm and RULES[self.rule].is_listed and not self.is_pending

    def severity_for(self, provider: str) -> str:
        """Return how a provider treats the window because of this problem: `refused`, `conditional`
        or `mishandled`. "" if the provider accepts the window despite the problem.

        `conditional` means that a rejection depends on the model or a parameter.
        """
        named = {
            "refused": self.refused_by,
            "conditional": self.conditional_for,
            "mishandled": self.mishandled_by,
        }
        return next((each for each, names in named.items() if provider in names), "")

    def marks(self) -> list[str]:
        """Return texts such as `openai:dangling_call!`, by which the database finds conversations
        with this problem. Empty if the doctor does not list the rule, or if the problem is pending.

        `openai:dangling_call!` means that OpenAI rejects (`!`) the window because of the rule
        `dangling_call`. The other signs are `?` (the answer depends on the model or a parameter)
        and `~` (mishandled). If all providers accept windows that break the rule, the text names no
        provider: `:RULE~`.
        """
        if self.is_pending or not RULES[self.rule].is_listed:
            return []
        if not RULES[self.rule].laws:
            return [f":{self.rule}~"]
        known = ((name, self.severity_for(name)) for name in PROVIDERS)
        return [mark(name, self.rule, severity) for name, severity in known if severity]

    def under(self, use: InUse) -> Problem | None:
        """Return this problem, limited to the providers in use and their models. None if all
        providers in use accept the window despite the problem.

        Some rules only warn, because every provider accepts the window. A problem with such a rule
        is always returned.
        """
        severities = {name: self._severity(name, models) for name, models in use.models.items()}
        if RULES[self.rule].laws and not any(severities.values()):
            return None
        return replace(
            self,
            refused_by=_of("refused", severities),
            mishandled_by=_of("mishandled", severities),
            conditional_for=_of("conditional", severities),
            repairable_for=tuple(name for name in self.repairable_for if name in use.models),
        )

    def _severity(self, provider: str, models: Sequence[str]) -> str:
        severity = self.severity_for(provider)
        if severity != "conditional" or not models:
            return severity
        of_models = {RULES[self.rule].laws[provider].severity_for_any(model) for model in models}
        known = (each for each in ("refused", "conditional") if each in of_models)
        return next(known, "")


def mark(provider: str, rule: str, severity: str) -> str:
    return f"{provider}:{rule}{MARKS[severity]}"


def _of(severity: str, severities: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name, each in severities.items() if each == severity)


@dataclass(frozen=True)
class Diagnosis:
    """The problems of the window after the step `step`.

    Problems for which a provider rejects the window come first, and then all other problems. In
    each of these two groups, the oldest problem comes first.
    """

    step: int
    problems: tuple[Problem, ...] = ()

    @property
    def listed(self) -> tuple[Problem, ...]:
        """The problems for which the doctor lists a conversation."""
        return tuple(each for each in self.problems if each.is_listed)

    @property
    def refused_by(self) -> tuple[str, ...]:
        """The providers that would reject the window for a listed problem."""
        found = {name for each in self.listed for name in each.refused_by}
        return tuple(name for name in PROVIDERS if name in found)

    @property
    def ill_at(self) -> datetime | None:
        """The time at which the oldest listed problem began (see `listed`). None if no problem is
        listed, or if the diagnosis has no times.
        """
        return min((each.at for each in self.listed if each.at), default=None)

    def under(self, use: InUse) -> Diagnosis:
        """Return the diagnosis limited to the providers in use and their models."""
        found = [each for problem in self.problems if (each := problem.under(use))]
        found.sort(key=lambda each: not each.refused_by)
        return replace(self, problems=tuple(found))

    def for_provider(self, provider: str) -> list[Problem]:
        """Return the problems for which a provider rejects or mishandles the window. Problems that
        depend on the model or a parameter are included.
        """
        return [each for each in self.problems if each.severity_for(provider)]

    def with_times(self, times: Mapping[int, datetime]) -> Diagnosis:
        """Return the diagnosis with the time at which each problem began.

        `times` maps steps to their times. A problem whose first step is unknown gets the time of
        the diagnosed step.
        """
        timed = (replace(each, at=times.get(each.since or self.step)) for each in self.problems)
        return replace(self, problems=tuple(timed))

    def to_list(self) -> list[JsonDict]:
        """Return the problems as values for JSON, without the step."""
        return [_written(each) for each in self.problems]

    @classmethod
    def from_list(cls, step: int, stored: JsonValue) -> Diagnosis:
        """Return the diagnosis of a step from the JSON that `to_list` returned.

        Raises ValueError, TypeError, LookupError or AttributeError for other JSON.
        """
        return cls(step, tuple(map(_read, stored)))


def _written(problem: Problem) -> JsonDict:
    return {
        "rule": problem.rule,
        "seq": problem.seq,
        "since": problem.since,
        "refused_by": list(problem.refused_by),
        "mishandled_by": list(problem.mishandled_by),
        "conditional_for": list(problem.conditional_for),
        "is_pending": problem.is_pending,
        "at": problem.at and problem.at.isoformat(),
        "mendable_for": list(problem.repairable_for),
    }


def _read(stored: JsonMap) -> Problem:
    rule, seq, since = stored["rule"], stored["seq"], stored["since"]
    minding = ("refused_by", "mishandled_by", "conditional_for")
    providers = {name for each in minding for name in stored[each]}
    if rule not in RULES or not providers <= PROVIDERS.keys():
        raise ValueError(
            f"the stored diagnosis has an unknown rule {rule!r}, or an unknown provider among "
            f"{sorted(providers)}"
        )
    if type(seq) is not int or (since is not None and type(since) is not int):
        raise TypeError(
            f"a stored problem must have whole numbers for seq and since, but has {seq!r} and "
            f"{since!r}"
        )
    return Problem(
        rule,
        seq,
        since,
        tuple(stored["refused_by"]),
        tuple(stored["mishandled_by"]),
        tuple(stored["conditional_for"]),
        bool(stored["is_pending"]),
        stored["at"] and datetime.fromisoformat(stored["at"]),
        tuple(stored["mendable_for"]),
    )


def listed_rules() -> tuple[str, ...]:
    """Return the names of the rules for which the doctor lists conversations."""
    return tuple(sorted(rule.id for rule in RULES.values() if rule.is_listed))


def diagnose(
    messages: Sequence[ChatMessage],
    numbers: Sequence[int],
    *,
    step: int = 0,
    has_left: bool = False,
    past_of: Callable[[Collection[int]], Past] | None = None,
    for_answers: bool = False,
) -> Diagnosis:
    """Return the diagnosis of a window. The time `at` of each problem is None.

    - `numbers` has the seq of each of the `messages`.
    - `step` is the step after which the window had these messages.
    - `has_left` tells whether any message has ever left the window.
    - `past_of` takes seqs of messages, and returns the conversation's `Past` with all stays of
      these messages. Without this function, `since` of each problem is None.
    - `for_answers` is True if the caller only shows what providers do with the window. Then the
      diagnosis is faster, but each problem's `repairable_for` is empty, and its `since` may be
      None.
    """
    found: FoundProblems = {}
    turns = turns_by_provider(messages, PROVIDERS, numbers)
    for provider in PROVIDERS:
        sent = ProviderWindow(turns[provider], provider, has_left)
        for each in findings(sent, RULES.values()):
            named = tuple(numbers[position] for position in each.positions)
            of_rule = found.setdefault((each.rule, each.is_pending), {})
            of_rule.setdefault(named, {})[provider] = each.severity
    sent = ProviderWindow(turns[OPENAI], OPENAI, has_left)
    for rule in RULES.values():
        if not rule.laws and any(True for _ in rule.check_of(None)(sent)):  # no provider minds it
            found[rule.id, False] = {(): {}}
    # An answer names the fault that began first.
    is_needed = not for_answers or sum(len(each) for key, each in found.items() if not key[1]) > 1
    since = _since(found, past_of) if past_of and is_needed else {}
    problems = [_problem(*key, of_rule, since.get(key)) for key, of_rule in found.items()]
    if not for_answers:
        problems = _with_repairs(problems, messages)
    problems.sort(key=lambda each: (not each.refused_by, each.since or step, each.rule))
    return Diagnosis(step, tuple(problems))


def refused_rules(turns: Iterable[Turn], provider: str) -> set[str]:
    """Return the names of the rules for which a provider would reject a window.

    Only rules for which the doctor lists conversations are checked. A problem that the next
    messages will end is left out, such as a tool call that still waits for its results.

    `turns` are the messages of the window in the form that rules check (see
    `chatmemory.lint.turns`).
    """
    window = [turn._replace(position=position) for position, turn in enumerate(turns)]
    sent = ProviderWindow(window, provider)
    found = findings(sent, refusing(_LISTED_LAWS, sent))
    return {each.rule for each in found if not each.is_pending}


def _since(
    found: FoundProblems, past_of: Callable[[Collection[int]], Past]
) -> dict[tuple[str, bool], tuple[int, Named]]:
    """Return, by rule, the first step at which messages broke the rule, and these messages. Rules
    for which no such step is known are left out.
    """
    faults = {key: sorted(each)[:LOOKED_AT] for key, each in found.items() if not key[1]}
    if not faults:
        return {}
    past = past_of({seq for each in faults.values() for named in each for seq in named})
    first = {}
    for (rule, is_pending), each in faults.items():
        known = [(RULES[rule].since(past, named), named) for named in each]
        if steps := [(step, named) for step, named in known if step is not None]:
            first[rule, is_pending] = min(steps)
    return first


def _problem(
    rule: str,
    is_pending: bool,
    found: Mapping[Named, Mapping[str, str]],
    since: tuple[int, Named] | None,
) -> Problem:
    step, named = since or (None, min(found))
    return Problem(
        rule,
        named[0] if named else 0,
        step,
        _minding(found.values(), "refused"),
        _minding(found.values(), "mishandled"),
        _minding(found.values(), "conditional"),
        is_pending,
    )


def _with_repairs(problems: Sequence[Problem], messages: Sequence[ChatMessage]) -> list[Problem]:
    """Return the problems with `repairable_for`: the providers that would accept the window after a
    repair, and for which the repair solves the problem.
    """
    plans: dict[str, Collection[str] | None] = {}  # by provider: the rules that are still broken

    def is_repaired(rule: str, provider: str) -> bool:
        if provider not in plans:
            plan = repair(messages, provider=provider)
            is_possible = plan.done and not any(each.severity == "refused" for each in plan.left)
            plans[provider] = {each.rule for each in plan.left} if is_possible else None
        broken = plans[provider]
        return broken is not None and rule not in broken

    return [
        replace(
            each,
            repairable_for=tuple(
                name
                for name in (*each.refused_by, *each.mishandled_by)
                if is_repaired(each.rule, name)
            ),
        )
        if each.is_listed and RULES[each.rule].repairs
        else each
        for each in problems
    ]


def _minding(found: Iterable[Mapping[str, str]], severity: str) -> tuple[str, ...]:
    minding = {name for each in found for name, how in each.items() if how == severity}
    return tuple(name for name in PROVIDERS if name in minding)
