"""Provider rules, their laws, and the functions that check a window. A law says how one provider
treats a window that breaks the rule.
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
    """One place where a window breaks a provider rule. `message` is a sentence about the fault, and
    `turns` are the messages at fault.

    - `error`: values for the names in braces in the provider's error text.
    - `is_repairable`: whether a repair applies.
    - `is_pending`: whether the next messages will end the fault. An example is a tool call at the
      end of the window, whose results have not come yet.
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
    """How one provider treats a window that breaks a rule, and how this is known.

    - `severity`: "refused" if the provider rejects the window, and "mishandled" if it
      misunderstands the window. With "conditional", `condition` says in words on what the answer
      depends.
    - `error`: the text of the provider's error; "" if unknown. Names in braces, such as `{at}`,
      stand for values of the fault. `{at}` is the index, in the provider's list, of the first
      message at fault.
    - `source`: the URL that reports the behavior. `date` is the month of the report, "" if unknown.
      `conflict` describes a report that disagrees.
    - `check`: the function that finds the faults for this provider; None if the rule's own `check`
      finds them.
    - `refusing`, `taking`: for the severity "conditional", regular expressions for the names of
      models that reject the window, and of models that accept the window.
    - `sure`: the regular expression that `severity_for_any` uses instead of `refusing`. If `sure`
      is "", `severity_for_any` uses `refusing`.
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
        """The kind of the `source`.

        - "recorded": a recorded request with its answer, from the tests of Pydantic AI
        - "reported": any other page on GitHub, such as an issue
        - "documentation": any page elsewhere
        """
        if self.source.startswith(RECORDED):
            return "recorded"
        is_reported = self.source.startswith("https://github.com/")
        return "reported" if is_reported else "documentation"

    @property
    def dated(self) -> str:
        """The month of the report on which the law is based, such as "2026-05", or "date not
        known".
        """
        return self.date or "date not known"

    def severity_for(self, model: str | None) -> Severity | None:
        """Return the severity of a fault for the model for which the window was checked. None if
        this model is known to accept the fault.

        If the window was checked without a model (None), return the severity of the law.
        """
        if self.severity != "conditional" or not model:
            return self.severity
        return self._severity(self.refusing, model)

    def severity_for_any(self, model: str) -> Severity | None:
        """Return the severity that a fault has for a model. None if the model is known to accept
        the fault. The fault was found without knowing the model.
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
        """Return the text of the provider's error, with the names in braces replaced by
        `values`.
        """
        return _BRACES.sub(lambda found: str(values.get(found[1], found[0])), self.error)


# Wide: written by hand in the catalog, with a name beside each optional value.
@dataclass(frozen=True)
class Rule:
    """A provider rule: something that can be wrong with a window.

    - `check`: the function that finds the faults; its name is the `id` of the rule. If each law has
      a check, `check` is the id itself.
    - `laws`: a mapping from the name of a provider to its law, which says how the provider treats
      the fault.
    - `bad`, `good`: a small window that breaks the rule, and a window that does not.
    - `since`: the function that finds the step since which a window breaks the rule. `began` says
      in words what happened at this step.
    - `repairs`: the names of the repairs that apply.
    - `prevention`: advice on how to avoid the fault; "" if there is none. `by_policy` says whether
      the advice is to set an option of the policy.
    - `is_listed`: whether the doctor lists conversations that break the rule.
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
        """Return the function that finds the faults for a law: the check of the law, or else the
        check of the rule.
        """
        check = (law and law.check) or self.check
        assert not isinstance(check, str), f"a law of {self.id} has no check"
        return check

    @property
    def example_provider(self) -> str:
        """The provider in whose format `bad` and `good` are written: the first provider in
        `laws`.
        """
        return next(iter(self.laws), OPENAI)


# Wide: the public result of lint(), of which programs read these names.
@dataclass(frozen=True)
class Finding:
    """A reason why a provider would reject or mishandle a window.

    - `rule`: the id of the rule that the window breaks.
    - `positions`: the indices of the messages at fault; empty for a fault of the whole window.
    - `message`: a sentence about the fault. `error` is the text of the provider's error.
    - `condition`: what the finding depends on, if the `severity` is "conditional".
    - `repairs`: the names of the repairs that apply.
    - `source`, `basis`: the URL that reports the behavior, and the kind of this source (see
      `Law.basis`).
    - `is_pending`: whether the next messages will end the fault. An example is a tool call at the
      end of the window, whose results have not come yet.
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
    """Return the findings of these rules in a window, ordered by message."""
    applying = [(rule, law) for rule in rules if (law := rule.laws.get(sent.provider))]
    found = [finding for rule, law in applying for finding in _found(sent, rule, law)]
    return sorted(found, key=lambda each: each.positions[:1])


def refusing(rules: Iterable[Rule], sent: ProviderWindow) -> Iterator[Rule]:
    """Yield the rules that the window's provider enforces for the window's model. Whether the
    window breaks them is not checked.
    """
    return (rule for rule in rules if _refusing_law(rule, sent) is not None)


def refuses(sent: ProviderWindow, rule: Rule) -> bool:
    """Return whether the provider rejects this window because of this rule. This is faster than
    `findings`.
    """
    law = _refusing_law(rule, sent)
    return law is not None and any(True for _ in rule.check_of(law)(sent))


def _refusing_law(rule: Rule, sent: ProviderWindow) -> Law | None:
    """Return the law of the window's provider if its severity is "refused" for the window's model,
    else None.
    """
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
    """Return the sentence about a fault with its condition, such as the models that reject the
    fault.
    """
    return f"{message.removesuffix('.')} ({condition})." if condition else message
