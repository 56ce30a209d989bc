"""Provider rules, their laws, and the examination of a window. A law says how one provider treats
the faults of a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, NamedTuple

from chatmemory.known_models import names_of_models
from chatmemory.lint.since import Since
from chatmemory.lint.turns import OPENAI, ProviderWindow, Turn
from chatmemory.messages.json_values import JsonMap
from chatmemory.messages.message import ChatMessage
from chatmemory.patterns import declared_pattern

Severity = Literal["refused", "conditional", "mishandled"]
Basis = Literal["recorded", "reported", "documentation"]

RECORDED = "https://github.com/pydantic/pydantic-ai/blob/main/tests/models/cassettes/"
_BRACES = declared_pattern(r"\{(\w+)\}")


class Fault(NamedTuple):
    """Messages that break a provider rule. `message` is a sentence about the fault.

    `turns` are the messages at fault, in the linter's form. `error` maps the names in braces in the
    provider's error text to values. `is_repairable` is False if no repair applies. `is_pending`
    means that the fault ends with the messages that must come next anyway, such as tool results.
    """

    turns: Sequence[Turn]
    message: str
    error: Mapping[str, object] = {}
    is_repairable: bool = True
    is_pending: bool = False


Check = Callable[[ProviderWindow], Iterator[Fault]]
Example = Sequence[ChatMessage] | Sequence[JsonMap]


# Wide: written by hand in the catalog, with a name beside each optional value.
@dataclass(frozen=True)
class Law:
    """The behavior of one provider if a window has a fault: whether the provider rejects the
    window, and how this is known.

    `check` finds the faults if the provider has bounds of its own; None stands for the check of the
    rule. `error` is the wording of the provider's error, with {at} for the position of the first
    message at fault; "" if no wording is known. `source` is the URL of the report, and `date` is
    the month of the report, "" if unknown. `conflict` describes another report that disagrees.

    If the `severity` is "conditional", the law applies only under the `condition`, which is given
    in words. If the condition is the model, `refusing` is a pattern of the models that reject the
    window. `taking` is a pattern of the models that are known to accept the window.

    The check may find more or fewer faults for a named model. Then `sure` is a pattern of the
    models that reject each fault that is found without naming a model.
    """

    severity: Severity
    error: str
    source: str
    check: Check | None = None
    condition: str = ""
    refusing: str = ""
    taking: str = ""
    _: KW_ONLY
    sure: str = ""
    date: str = ""
    conflict: str = ""

    @property
    def basis(self) -> Basis:
        """The kind of source: a recorded exchange, an error that users reported, or
        documentation.
        """
        if self.source.startswith(RECORDED):
            return "recorded"
        is_reported = self.source.startswith("https://github.com/")
        return "reported" if is_reported else "documentation"

    @property
    def dated(self) -> str:
        """The month of the source, or words for a source without a date."""
        return self.date or "date not known"

    def severity_for(self, model: str | None) -> Severity | None:
        """Return how severe a fault is that was found for this model; None if the model is known to
        accept the fault. Without a model, the severity of the law is returned.
        """
        if self.severity != "conditional" or not model:
            return self.severity
        return self._severity(self.refusing, model)

    def severity_for_any(self, model: str) -> Severity | None:
        """Return how severe a fault is for this model, if the fault was found without naming a
        model.

        Returns None if the model is known to accept the fault.
        """
        if self.severity != "conditional":
            return self.severity
        return self._severity(self.sure or self.refusing, model)

    def _severity(self, refusing: str, model: str) -> Severity | None:
        if refusing and names_of_models(refusing).search(model):
            return "refused"
        is_taken = self.taking and names_of_models(self.taking).search(model)
        return None if is_taken else "conditional"

    def answer(self, values: Mapping[str, object]) -> str:
        """Return the provider's error text, with the names in braces replaced by these values."""
        return _BRACES.sub(lambda found: str(values.get(found[1], found[0])), self.error)


# Wide: written by hand in the catalog, with a name beside each optional value.
@dataclass(frozen=True)
class Rule:
    """A provider rule: what can be wrong with a window. `laws` says how each provider treats the
    fault, by the provider's name.

    `check` is the function that finds the faults. The function's name is the `id` of the rule. If
    every law has a check of its own, `check` is only the id. `bad` is a minimal window that breaks
    the rule, and `good` is a window that does not break it. Both have messages, or JSON of the
    `example_provider`.

    `since` finds the step since which a window breaks the rule, and `began` says what happened at
    this step. `repairs` are the names of the repairs that apply. `prevention` is advice;
    `by_policy` means that the advice names an option of a policy. `is_listed` says whether the
    doctor lists conversations that break the rule.
    """

    check: Check | str
    title: str
    laws: Mapping[str, Law]
    bad: Example
    good: Example
    began: str
    since: Since
    repairs: tuple[str, ...] = ()
    prevention: str = ""
    by_policy: bool = False
    is_listed: bool = True

    @property
    def id(self) -> str:
        return self.check if isinstance(self.check, str) else self.check.__name__

    def check_of(self, law: Law | None) -> Check:
        """Return the function that finds faults by a provider's law; without a law, the check of
        the rule itself.
        """
        check = (law and law.check) or self.check
        assert not isinstance(check, str), f"a law of {self.id} has no check"
        return check

    @property
    def example_provider(self) -> str:
        """The provider in whose format the examples are written: the first provider that the rule
        has a law for.
        """
        return next(iter(self.laws), OPENAI)


# Wide: the public result of lint(), of which programs read these names.
@dataclass(frozen=True)
class Finding:
    """A reason why a provider would reject a window, or misunderstand it.

    `positions` are the indices of the messages at fault, `message` is a sentence about the fault,
    and `error` the wording of the provider's error. A `conditional` finding depends on its
    `condition`. `repairs` are the names of the repairs that apply. `source` and `basis` come from
    the `Law`. `is_pending` means that the fault ends with the messages that must come next anyway,
    such as the results of a call.
    """

    rule: str
    severity: Severity
    provider: str
    positions: tuple[int, ...]
    message: str
    error: str
    repairs: tuple[str, ...]
    source: str
    basis: Basis
    is_pending: bool = False
    condition: str = ""


def findings(sent: ProviderWindow, rules: Iterable[Rule]) -> list[Finding]:
    """Return the findings of some rules in a window, in the order of the window."""
    applying = [(rule, law) for rule in rules if (law := rule.laws.get(sent.provider))]
    found = [finding for rule, law in applying for finding in _found(sent, rule, law)]
    return sorted(found, key=lambda each: each.positions[:1])


def refusing(rules: Iterable[Rule], sent: ProviderWindow) -> Iterator[Rule]:
    """Return the rules that the window's provider enforces: the provider rejects every window that
    breaks such a rule.
    """
    return (rule for rule in rules if _refusing_law(rule, sent) is not None)


def refuses(sent: ProviderWindow, rule: Rule) -> bool:
    """Return whether the provider rejects the window because the window breaks this rule. This is
    faster than `findings`.
    """
    law = _refusing_law(rule, sent)
    return law is not None and any(True for _ in rule.check_of(law)(sent))


def _refusing_law(rule: Rule, sent: ProviderWindow) -> Law | None:
    """Return the law of a window's provider, if the provider refuses what breaks the rule."""
    law = rule.laws.get(sent.provider)
    return law if law and law.severity_for(sent.model) == "refused" else None


def _found(sent: ProviderWindow, rule: Rule, law: Law) -> Iterator[Finding]:
    severity = law.severity_for(sent.model)
    if severity is None:
        return
    for fault in rule.check_of(law)(sent):
        at = sent.place(fault.turns[0]) if fault.turns else 0
        yield Finding(
            rule.id,
            severity,
            sent.provider,
            tuple(turn.position for turn in fault.turns),
            _under(law.condition, fault.message),
            law.answer({"at": at, **fault.error}),
            rule.repairs if fault.is_repairable else (),
            law.source,
            law.basis,
            fault.is_pending,
            law.condition,
        )


def _under(condition: str, message: str) -> str:
    """Return a sentence about a fault, with the condition under which the provider minds it."""
    return f"{message.removesuffix('.')} ({condition})." if condition else message
