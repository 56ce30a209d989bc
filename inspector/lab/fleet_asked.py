"""What the address of the lab asks for: which conversations, under which kind of policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from django.urls import reverse
from django.utils.http import urlencode

from chatmemory import InvalidValue, Policy, policies_from_text, policy_kinds
from chatmemory.queries import FleetQuery, MemoryFilter
from inspector.forms import searchable
from inspector.lab.numbers import whole_number, wrong_number
from inspector.lab.prices import Prices, wrong_price

SAMPLE = 1_000
ANY_LIMIT = 10**9  # goes together with all options
NUMBERS = ("limit", "sample", "seed")
TEXTS = ("q", "label", "prefix", "since", "options", "estimator")


@dataclass(frozen=True)
class FleetAsked:
    """The parameters of an address. `sample` 0 means all; `problem` says what was wrong."""

    q: str = ""
    label: str = ""
    prefix: str = ""
    since: str = ""
    kind: str = "token_window"
    options: str = ""
    estimator: str = ""
    limit: int | None = None
    sample: int = SAMPLE
    seed: int = 1
    prices: Prices = field(default_factory=Prices)
    problem: str = ""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> FleetAsked:
        """Read the parameters of an address; of those that are wrong, take the usual ones."""
        texts = {name: searchable(given.get(name, "")) for name in TEXTS}
        kind = given.get("kind", "")
        asked = cls(
            **texts,
            kind=kind if kind in policy_kinds() else cls.kind,
            limit=_number(given.get("limit", "")) or None,
            sample=_number(given.get("sample", ""), SAMPLE),
            seed=_number(given.get("seed", ""), 1),
            prices=Prices.read(given),
            problem=_problem(given),
        )
        try:
            asked.policy(ANY_LIMIT)
        except InvalidValue as error:
            return replace(asked, options="", estimator="", problem=str(error))
        if asked.since and asked.active_since is None:
            return replace(asked, since="", problem="A date is written as 2026-01-31.")
        return asked

    def policy(self, limit: int) -> Policy:
        """Return the policy with a limit. Raises InvalidValue, UnknownEstimator."""
        options = [self.options] if self.options else []
        options += [f"estimator={self.estimator}"] if self.estimator else []
        policy = policies_from_text(",".join([f"{self.kind}:{limit}", *options]))[0]
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
        )

    @property
    def query(self) -> FleetQuery:
        return FleetQuery(self.which, self.policy(ANY_LIMIT), self.sample, self.seed)

    @property
    def given(self) -> dict[str, str]:
        """The parameters that differ from the usual ones."""
        usual = FleetAsked()
        names = (*TEXTS, "kind", "limit", "sample", "seed")
        values = {name: getattr(self, name) for name in names}
        kept = {name: str(v) for name, v in values.items() if v != getattr(usual, name)}
        return kept | self.prices.given

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
        ]
        return ", ".join(filter(None, parts)) or "of this site"


def _problem(given: Mapping[str, str]) -> str:
    """Return what is wrong with the kind, the numbers and the prices of an address."""
    if given.get("kind") and given["kind"] not in policy_kinds():
        return f"the kind of a policy is {' or '.join(policy_kinds())}"
    if given.get("limit") and whole_number(given["limit"]) == 0:
        return "limit must be greater than zero"
    return wrong_number(given, {name: name for name in NUMBERS}) or wrong_price(given)


def _number(text: str, usual: int = 0) -> int:
    number = whole_number(text)
    return usual if number is None else number
