"""The URL parameters of a comparison of policies, and links to other comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.http import QueryDict
from django.urls import reverse
from django.utils.http import urlencode

from chatmemory import InvalidValue, Policy, policies_from_text, text_of_policy
from inspector.forms.fields import number_in_text, searchable
from inspector.rooms.simulation.comparison import POLICIES_MAX
from inspector.shell.prices import ChosenPrices, wrong_price

DIGITS = 9


@dataclass(frozen=True)
class TypedPolicy:
    """A policy as somebody entered it in the page's form, as texts: kind, limit and options."""

    kind: str = ""
    limit: str = ""
    options: str = ""


@dataclass(frozen=True)
class ComparisonQuery:
    """The URL parameters of a comparison.

    - `policies`: the policies to compare. The policy None sends everything. Empty if the URL names
      no valid policy.
    - `at`: the chosen position in the history, as the number of messages before it. None if the URL
      has no valid position.
    - `step`: the chosen step, if the URL has the parameter `find`; else None. With `find`, the
      parameter `at` of the URL is a step.
    - `form`: "csv" or "json" to send only numbers, or "".
    - `problem`: a sentence about an invalid parameter, or "". The other fields have the values of
      the valid parameters.
    - `refused`: a policy from the page's form that could not be added; empty without such a policy.
    """

    memory_id: str
    policies: tuple[Policy | None, ...] = ()
    at: int | None = None
    phrase: str = ""
    prices: ChosenPrices = field(default_factory=ChosenPrices)
    form: str = ""
    problem: str = ""
    refused: TypedPolicy = TypedPolicy()
    step: int | None = None

    @classmethod
    def read(cls, memory_id: str, parameters: QueryDict) -> ComparisonQuery:
        """Read the parameters of a URL. A policy from the page's form is added to the policies to
        compare.
        """
        values: dict[str, str] = parameters.dict()  # type: ignore[assignment]  # a value of a QueryDict's dict is a str
        texts = [text for text in parameters.getlist("policy") if text.strip()]
        names = ("kind", "limit", "options")
        typed = TypedPolicy(*(values.get(name, "").strip() for name in names))
        added = [_written(typed)] if typed.limit else []
        policies, problem = _policies([*texts, *added])
        is_refused = added and problem and policies == _policies(texts)[0]
        is_step = "find" in values
        place = number_in_text(values.get("at", ""), DIGITS)
        return cls(
            memory_id,
            tuple(policies),
            None if is_step else place,
            searchable(values.get("find" if is_step else "phrase", "")),
            ChosenPrices.read(values),
            form if (form := values.get("as", "")) in ("csv", "json") else "",
            problem or _wrong_value(values, at="step" if is_step else "after"),
            refused=typed if is_refused else TypedPolicy(),
            step=place if is_step else None,
        )

    @property
    def texts(self) -> list[str]:
        """The policies as text, such as `token_window:800`."""
        return list(map(text_of_policy, self.policies))

    @property
    def action(self) -> str:
        """The URL of the comparison page, without parameters."""
        return reverse("inspector:compare", args=[self.memory_id])

    @property
    def query(self) -> str:
        """The query string of the comparison page's URL, without parameters that are empty."""
        parameters = {"policy": self.texts, "at": self.at, "phrase": self.phrase}
        parameters |= {**self.prices.parameters, "as": self.form}
        kept = {name: value for name, value in parameters.items() if value not in ("", None, [])}
        return urlencode(kept, doseq=True)

    def link(self, **changes: Any) -> str:  # each has the type of its field
        """Return the URL of the comparison page with `changes` to the fields of this query:
        `link(at=3)` for another position.
        """
        query = replace(self, **changes).query
        return f"{self.action}?{query}"

    def without(self, policy: Policy | None) -> str:
        """Return the URL of the comparison without a policy. None means sending everything."""
        return self.link(policies=tuple(each for each in self.policies if each != policy))

    def plus(self, policy: Policy | None) -> str:
        """Return the URL with a policy added. If there are four policies already, the added policy
        replaces the last. Return "" for sending everything (None), and for a policy that is
        compared already.
        """
        if policy is None or policy in self.policies:
            return ""
        return self.link(policies=(*self.policies[: POLICIES_MAX - 1], policy))


def _written(typed: TypedPolicy) -> str:
    """Return the policy of a form as text."""
    limit = f"{typed.kind}:{typed.limit}".replace(" ", "")
    return f"{limit},{typed.options}" if typed.options else limit


def _policies(texts: list[str]) -> tuple[list[Policy | None], str]:
    """Return the policies that the texts describe, each once, and a sentence about invalid texts or
    "".
    """
    found: list[Policy | None] = []
    problem = ""
    for text in texts:
        try:
            found += [each for each in policies_from_text(text) if each not in found]
        except InvalidValue as error:
            problem = str(error)
    if len(found) > POLICIES_MAX:
        problem = f"At most {POLICIES_MAX} policies are compared at a time: remove one first."
    return found[:POLICIES_MAX], problem


def _wrong_value(parameters: Mapping[str, str], at: str) -> str:
    """Return a sentence about an invalid number or price in the URL, or "". `at` is the name of the
    parameter for the position.
    """
    if parameters.get("at") and number_in_text(parameters["at"], DIGITS) is None:
        return f"{at} must be a whole number with at most {DIGITS} digits"
    return wrong_price(parameters)
