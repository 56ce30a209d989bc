"""The diagnosis of a window: which rules of providers it breaks, since which step, for whom.

It is one object for the header and the panel of a page, lists, the API, the command and agents.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from chatmemory.core.lint import PROVIDERS, RULES, Sent
from chatmemory.core.lint.rules import findings
from chatmemory.core.lint.since import Past
from chatmemory.core.lint.turns import OPENAI
from chatmemory.core.messages import ChatMessage
from chatmemory.linting import turns_of

LOOKED_AT = 50  # faults of a rule of which it is asked since when they are there
LISTED = tuple(sorted(rule.id for rule in RULES.values() if rule.is_listed))

Named = tuple[int, ...]
# By a rule, and whether it is pending: the messages at fault, and how severe it is for whom
Found = dict[tuple[str, bool], dict[Named, dict[str, str]]]


@dataclass(frozen=True)
class Problem:
    """A rule that a window breaks, and the providers that refuse or mishandle it for that.

    `seq` is the message at fault, 0 for the window as a whole. It is so since step `since`, which
    was `at` that time; None where that is not known. One that `is_pending` ends with what has to
    come next anyway, such as the results of a call.
    """

    rule: str
    seq: int
    since: int | None
    refused_by: tuple[str, ...]
    mishandled_by: tuple[str, ...]
    is_pending: bool = False
    at: datetime | None = None

    @property
    def is_listed(self) -> bool:
        return RULES[self.rule].is_listed and not self.is_pending

    def severity_for(self, provider: str) -> str:
        """Return `refused` or `mishandled`; empty where a provider does not mind."""
        if provider in self.refused_by:
            return "refused"
        return "mishandled" if provider in self.mishandled_by else ""


@dataclass(frozen=True)
class Diagnosis:
    """The problems of the window after a step, those first that a provider refuses, then the
    oldest.
    """

    step: int
    problems: tuple[Problem, ...] = ()

    @property
    def listed(self) -> tuple[Problem, ...]:
        """The problems by which the doctor lists a conversation."""
        return tuple(each for each in self.problems if each.is_listed)

    @property
    def refused_by(self) -> tuple[str, ...]:
        """The providers that refuse the window, whatever comes next."""
        found = {name for each in self.listed for name in each.refused_by}
        return tuple(name for name in PROVIDERS if name in found)

    @property
    def ill_at(self) -> datetime | None:
        """Since when the window has a problem by which it is listed; None without any."""
        return min((each.at for each in self.listed if each.at), default=None)

    @property
    def waiting_call(self) -> int | None:
        """The tool call at the window's end that awaits results."""
        waiting = (
            each.seq
            for each in self.problems
            if each.is_pending and each.rule == "dangling_call" and OPENAI in each.refused_by
        )
        return next(waiting, None)

    def for_provider(self, provider: str) -> list[Problem]:
        """Return what a provider minds."""
        return [each for each in self.problems if each.severity_for(provider)]

    def with_times(self, times: Mapping[int, datetime]) -> Diagnosis:
        """Return the diagnosis with the times of its steps: where it is not known since when a
        problem is there, it was seen at the step of the diagnosis.
        """
        timed = (replace(each, at=times.get(each.since or self.step)) for each in self.problems)
        return replace(self, problems=tuple(timed))

    def to_list(self) -> list[dict[str, Any]]:
        """Return the problems as JSON has them, without the step."""
        return [_written(each) for each in self.problems]

    @classmethod
    def from_list(cls, step: int, stored: Any) -> Diagnosis:
        """Return the diagnosis that `to_list` wrote.

        Raises ValueError, TypeError, LookupError or AttributeError for other JSON.
        """
        return cls(step, tuple(map(_read, stored)))


def _written(problem: Problem) -> dict[str, Any]:
    return {
        "rule": problem.rule,
        "seq": problem.seq,
        "since": problem.since,
        "refused_by": list(problem.refused_by),
        "mishandled_by": list(problem.mishandled_by),
        "is_pending": problem.is_pending,
        "at": problem.at and problem.at.isoformat(),
    }


def _read(stored: Mapping[str, Any]) -> Problem:
    rule, seq, since = stored["rule"], stored["seq"], stored["since"]
    providers = {*stored["refused_by"], *stored["mishandled_by"]}
    if rule not in RULES or not providers <= PROVIDERS.keys():
        raise ValueError(f"unknown rule {rule!r}, or a provider of {sorted(providers)}")
    if type(seq) is not int or (since is not None and type(since) is not int):
        raise TypeError(f"{seq!r} or {since!r} is no number")
    return Problem(
        rule,
        seq,
        since,
        tuple(stored["refused_by"]),
        tuple(stored["mishandled_by"]),
        bool(stored["is_pending"]),
        stored["at"] and datetime.fromisoformat(stored["at"]),
    )


def diagnose(
    messages: Sequence[ChatMessage],
    numbers: Sequence[int],
    *,
    step: int = 0,
    has_left: bool = False,
    past_of: Callable[[Collection[int]], Past] | None = None,
) -> Diagnosis:
    """Return the diagnosis of a window whose messages have these numbers, without times.

    `has_left` tells that something left it before. `past_of` returns the past of the window, with
    all places of some messages; without it, it is not known since when a problem is there.
    """
    found: Found = {}
    for provider in PROVIDERS:
        sent = Sent(turns_of(messages, provider, numbers), provider, has_left)
        for each in findings(sent, RULES.values()):
            named = tuple(numbers[position] for position in each.positions)
            of_rule = found.setdefault((each.rule, each.is_pending), {})
            of_rule.setdefault(named, {})[provider] = each.severity
    sent = Sent(turns_of(messages, OPENAI, numbers), OPENAI, has_left)
    for rule in RULES.values():
        if not rule.laws and any(True for _ in rule.check(sent)):  # no provider minds it
            found[rule.id, False] = {(): {}}
    since = _since(found, past_of) if past_of else {}
    problems = [_problem(*key, of_rule, since.get(key)) for key, of_rule in found.items()]
    problems.sort(key=lambda each: (not each.refused_by, each.since or step, each.rule))
    return Diagnosis(step, tuple(problems))


def _since(
    found: Found, past_of: Callable[[Collection[int]], Past]
) -> dict[tuple[str, bool], tuple[int, Named]]:
    """Return the first step at which messages were at fault, with them, by rule, where that is
    known.
    """
    asked = {key: sorted(each)[:LOOKED_AT] for key, each in found.items() if not key[1]}
    if not asked:
        return {}
    past = past_of({seq for each in asked.values() for named in each for seq in named})
    first = {}
    for (rule, is_pending), each in asked.items():
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
        is_pending,
    )


def _minding(found: Iterable[Mapping[str, str]], severity: str) -> tuple[str, ...]:
    minding = {name for each in found for name, how in each.items() if how == severity}
    return tuple(name for name in PROVIDERS if name in minding)
