"""What the addresses of a comparison and of the lab ask for, and links to other such addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from django.http import QueryDict
from django.urls import reverse
from django.utils.http import urlencode

from chatmemory import InvalidValue, Policy, policies_from_text, policy_kinds, text_of_policy
from chatmemory.queries import POLICIES_MAX, FleetQuery, MemoryFilter, flag_named, flags
from inspector.forms.fields import number_in_text, searchable

SAMPLE = 1_000
ANY_LIMIT = 10**9  # goes together with all options
PRICES = ("input", "cached", "output")
MILLION = 1_000_000
DIGITS = 9


@dataclass(frozen=True)
class Prices:
    """Prices of a million tokens, as the address has them: no provider's prices are built in.

    A cached price that is missing is the input price. `source` and `as_of` say where the prices
    stand and since when, in the user's own words.
    """

    input: Decimal | None = None
    cached: Decimal | None = None
    output: Decimal | None = None
    currency: str = "$"
    source: str = ""
    as_of: str = ""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Prices:
        """Return the prices of an address. What is no price is missing."""
        return cls(
            _price(given.get("input", "")),
            _price(given.get("cached", "")),
            _price(given.get("output", "")),
            searchable(given.get("currency", ""))[:80] or cls.currency,
            *(searchable(given.get(name, ""))[:80] for name in ("source", "as_of")),
        )

    @property
    def given(self) -> dict[str, str]:
        return _unusual(self)

    def cost(self, prompt: int, reusable: int = 0, output: int = 0) -> Decimal | None:
        """Return what so many tokens cost; None without an input price."""
        if self.input is None:
            return None
        cached = self.input if self.cached is None else self.cached
        fresh = (prompt - reusable) * self.input + reusable * cached
        return (fresh + output * (self.output or 0)) / MILLION

    def words(self, cost: Decimal | None, times: float) -> str:
        """Return so many times a cost in words, such as `€2.43`."""
        return "" if cost is None else f"{self.currency}{cost * Decimal(times):,.2f}"

    @property
    def said(self) -> str:
        """Where the prices are from."""
        parts = [self.source, self.as_of and f"as of {self.as_of}"]
        return ", ".join(filter(None, parts)) or "source and date not given"


@dataclass(frozen=True)
class ComparisonAsked:
    """The policies, the place, the phrase and the prices of a comparison.

    `problem` says what was wrong with the address; the rest of it is used. `form` is csv or json
    for the numbers alone. `kind`, `limit` and `options` are those of a policy that the form could
    not add. Where the address is one of the conversation's page, with `find`, its place is a
    `step`.
    """

    memory_id: str
    policies: tuple[Policy | None, ...] = ()
    at: int | None = None
    phrase: str = ""
    prices: Prices = field(default_factory=Prices)
    form: str = ""
    problem: str = ""
    kind: str = ""
    limit: str = ""
    options: str = ""
    step: int | None = None

    @classmethod
    def read(cls, memory_id: str, given: QueryDict) -> ComparisonAsked:
        """Read the parameters of an address, and add the policy of the form."""
        values: dict[str, str] = given.dict()  # type: ignore[assignment]
        texts = [text for text in given.getlist("policy") if text.strip()]
        typed = {name: values.get(name, "").strip() for name in ("kind", "limit", "options")}
        added = [_written(*typed.values())] if typed["limit"] else []
        policies, problem = _policies([*texts, *added])
        is_refused = added and problem and policies == _policies(texts)[0]
        is_step = "find" in values
        place = _number(values, "at")
        return cls(
            memory_id,
            tuple(policies),
            None if is_step else place,
            searchable(values.get("find" if is_step else "phrase", "")),
            Prices.read(values),
            form if (form := values.get("as", "")) in ("csv", "json") else "",
            problem or _wrong_value(values, at="step" if is_step else "after"),
            step=place if is_step else None,
            **(typed if is_refused else {}),
        )

    @property
    def texts(self) -> list[str]:
        """The policies as addresses have them."""
        return list(map(text_of_policy, self.policies))

    @property
    def action(self) -> str:
        """The address of the page, without parameters."""
        return reverse("inspector:compare", args=[self.memory_id])

    @property
    def query(self) -> str:
        """The parameters of the address."""
        given = {"policy": self.texts, "at": self.at, "phrase": self.phrase}
        given |= {**self.prices.given, "as": self.form}
        kept = {name: value for name, value in given.items() if value not in ("", None, [])}
        return urlencode(kept, doseq=True)

    def link(self, **changes: Any) -> str:
        """Return the address with another place, phrase, form or other policies."""
        query = replace(self, **changes).query
        return f"{self.action}?{query}"

    def without(self, policy: Policy | None) -> str:
        """Return the address without a policy."""
        return self.link(policies=tuple(each for each in self.policies if each != policy))

    def plus(self, policy: Policy | None) -> str:
        """Return the address with another policy, in place of the last one if there are four;
        empty without one, or if it is there.
        """
        if policy is None or policy in self.policies:
            return ""
        return self.link(policies=(*self.policies[: POLICIES_MAX - 1], policy))


@dataclass(frozen=True)
class FleetAsked:
    """Which conversations, under which kind of policy; `sample` 0 means all of them.

    `problem` says what was wrong with the address; the rest of it is used.
    """

    q: str = ""
    label: str = ""
    prefix: str = ""
    since: str = ""
    flagged: str = ""
    options: str = ""
    estimator: str = ""
    kind: str = "token_window"
    limit: int | None = None
    sample: int = SAMPLE
    seed: int = 1
    prices: Prices = field(default_factory=Prices)
    problem: str = ""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> FleetAsked:
        """Read the parameters of an address; of those that are wrong, take the usual ones."""
        texts = ("q", "label", "prefix", "since", "flagged", "options", "estimator")
        numbers = {name: _number(given, name) for name in ("limit", "sample", "seed")}
        problem = _wrong_value(given, **{name: name for name in numbers})
        if numbers["limit"] == 0:
            problem = "limit must be greater than zero"
        if is_unknown := given.get("kind", cls.kind) not in policy_kinds():
            problem = f"the kind of a policy is {' or '.join(policy_kinds())}"
        asked = cls(
            **{name: searchable(given.get(name, "")) for name in texts},
            kind=cls.kind if is_unknown else given.get("kind", cls.kind),
            limit=numbers["limit"] or None,
            sample=cls.sample if numbers["sample"] is None else numbers["sample"],
            seed=cls.seed if numbers["seed"] is None else numbers["seed"],
            prices=Prices.read(given),
            problem=problem,
        )
        try:
            asked.policy(ANY_LIMIT)
        except InvalidValue as error:
            return replace(asked, options="", estimator="", problem=str(error))
        names = [flag.name for flag in flags()]
        if asked.flagged and asked.flagged not in names:
            return replace(asked, flagged="", problem=f"flagged is {' or '.join(names)}")
        if asked.since and asked.active_since is None:
            return replace(asked, since="", problem="A date is written as 2026-01-31.")
        return asked

    def policy(self, limit: int) -> Policy:
        """Return the policy with a limit. Raises InvalidValue, UnknownEstimator."""
        estimator = f"estimator={self.estimator}" if self.estimator else ""
        policy = policies_from_text(_written(self.kind, str(limit), self.options, estimator))[0]
        if policy is None:
            raise InvalidValue("choose a policy with a limit")
        if policy.meters_only:
            raise InvalidValue("with meters_only nothing is lost at any limit: leave it out here")
        return policy

    @property
    def active_since(self) -> datetime | None:
        try:
            return datetime.strptime(self.since, "%Y-%m-%d").replace(tzinfo=UTC)
        except ValueError:
            return None

    @property
    def which(self) -> MemoryFilter:
        return MemoryFilter(
            search=self.q,
            label=self.label,
            id_prefix=self.prefix,
            active_since=self.active_since,
            flag=flag_named(self.flagged) if self.flagged else None,
        )

    @property
    def query(self) -> FleetQuery:
        kind = self.policy(ANY_LIMIT)
        return FleetQuery(self.which, kind, self.sample, self.seed, self.limit)

    @property
    def given(self) -> dict[str, str]:
        """The parameters that differ from the usual ones."""
        return _unusual(self, "prices", "problem") | self.prices.given

    def link(self, **changes: object) -> str:
        """Return the address with changed parameters; an empty one is left out."""
        given = {**self.given, **{name: str(value) for name, value in changes.items()}}
        query = urlencode({name: value for name, value in given.items() if value})
        return reverse("inspector:lab") + (f"?{query}" if query else "")

    @property
    def words(self) -> str:
        """Which conversations are chosen, in words."""
        parts = [
            self.q and f"with “{self.q}”",
            self.label and f"labelled {self.label}",
            self.prefix and f"beginning with {self.prefix}",
            self.since and f"active since {self.since}",
            self.flagged and f"flagged “{self.flagged.replace('_', ' ')}”",
        ]
        return ", ".join(filter(None, parts)) or "of this site"


def hold(limits: str) -> str:
    """Return the verb for limits in words: 1 message holds, 3 messages hold."""
    return "hold" if limits.endswith("s") else "holds"


def _written(kind: str, limit: str, *options: str) -> str:
    """Return the policy of a form as text."""
    return ",".join(filter(None, [f"{kind}:{limit}".replace(" ", ""), *options]))


def _policies(texts: list[str]) -> tuple[list[Policy | None], str]:
    """Return the policies that texts describe, each once, and what was wrong with the others."""
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


def _unusual(asked: Prices | FleetAsked, *others: str) -> dict[str, str]:
    """Return the values that are not the usual ones, but for those of `others`."""
    values = {each.name: (getattr(asked, each.name), each.default) for each in fields(asked)}
    return {
        name: str(value)
        for name, (value, usual) in values.items()
        if value != usual and name not in others
    }


def _wrong_value(given: Mapping[str, str], **numbers: str) -> str:
    """Return which number or price of an address is none; `numbers` are their names on the page."""
    for name, label in numbers.items():
        if given.get(name) and _number(given, name) is None:
            return f"{label} must be a whole number of up to {DIGITS} digits"
    for name in PRICES:
        if given.get(name) and _price(given[name]) is None:
            return f"the {name} price must be a number below {MILLION:,}, such as 2.50"
    return ""


def _number(given: Mapping[str, str], name: str) -> int | None:
    return number_in_text(given.get(name, ""), DIGITS)


def _price(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip().replace(",", ".")) if len(text) < 20 else None
    except InvalidOperation:
        return None
    return number if number is not None and number.is_finite() and 0 <= number < MILLION else None
