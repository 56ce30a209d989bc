"""The URL parameters of the lab, read from requests and written into links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from django.urls import reverse
from django.utils.http import urlencode

from chatmemory import InvalidValue, Policy, policies_from_text, policy_kinds
from chatmemory.recall.frontier import ANY_LIMIT
from chatmemory.strategies import Settings
from inspector.forms.fields import number_in_text, searchable
from inspector.rooms.lab.frameworks import FrameworksQuery
from inspector.rooms.lab.reads import FleetQuery, usual_kind
from inspector.shell.chosen import ChosenConversations, wrong_number
from inspector.shell.prices import ChosenPrices, wrong_price

SAMPLE = 1_000
DIGITS = 9


# Wide: the parameters of a URL, with a field for each name.
@dataclass(frozen=True)
class FleetAddress(ChosenConversations):
    """The settings in a URL of the lab: conversations, kind of policy, and prices.

    - `kind`, `options`, `estimator`: the policy, without its limit.
    - `sample`: how many conversations are measured; 0 for all. `seed` decides which.
    - `context`: the context window of the model, in tokens.
    - `members`: the name of a group, to measure only its conversations.
    - `limit`: a limit to measure besides the usual limits, or None.
    - `strategies`: if not "", memories of agent frameworks are measured, too.
    - `usual_kind`: the kind of policy that most conversations have, for URLs without `kind`.

    If a part of the URL is not valid, `problem` says so, and the default is used.
    """

    options: str = ""
    estimator: str = ""
    kind: str = "token_window"
    usual_kind: str = "token_window"
    limit: int | None = None
    sample: int = SAMPLE
    seed: int = 1
    context: int | None = None
    members: str = ""
    strategies: str = ""
    prices: ChosenPrices = field(default_factory=ChosenPrices)

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> FleetAddress:
        """Read the parameters of a URL. Defaults replace values that are not valid, and `problem`
        says why.
        """
        chosen = ChosenConversations.read(parameters)
        names = ("limit", "sample", "seed", "context")
        numbers = {name: number_in_text(parameters.get(name, ""), DIGITS) for name in names}
        problem = wrong_number(parameters, names) or wrong_price(parameters) or chosen.problem
        if numbers["limit"] == 0:
            problem = "the limit must be greater than zero"
        if is_unknown := parameters.get("kind", cls.kind) not in policy_kinds():
            problem = f"the kind of a policy must be {' or '.join(policy_kinds())}"
        address = cls(
            **{**vars(chosen), "problem": problem},
            options=parameters.get("options", "").strip(),
            estimator=parameters.get("estimator", "").strip(),
            kind=cls.kind if is_unknown else parameters.get("kind", cls.kind),
            limit=numbers["limit"] or None,
            sample=cls.sample if numbers["sample"] is None else numbers["sample"],
            seed=cls.seed if numbers["seed"] is None else numbers["seed"],
            context=numbers["context"] or None,
            members=searchable(parameters.get("members", "")),
            strategies="1" if parameters.get("strategies") else "",
            prices=ChosenPrices.read(parameters),
        )
        try:
            address.policy(ANY_LIMIT)
        except InvalidValue as error:
            return replace(address, options="", estimator="", problem=str(error))
        return address

    def with_usual_kind(self, parameters: Mapping[str, str]) -> FleetAddress:
        """Return these settings with the kind of policy that most of the conversations have. If the
        URL names a kind, `kind` stays as it is.
        """
        usual = usual_kind(self.which)
        if usual not in policy_kinds():
            return self
        return replace(self, usual_kind=usual, kind=self.kind if parameters.get("kind") else usual)

    def policy(self, limit: int) -> Policy:
        """Return the chosen kind of policy with the given limit. Raises InvalidValue,
        UnknownEstimator.
        """
        estimator = f"estimator={self.estimator}" if self.estimator else ""
        parts = (f"{self.kind}:{limit}", self.options, estimator)
        policy = policies_from_text(",".join(filter(None, parts)))[0]
        if policy is None:
            raise InvalidValue("this comparison needs a policy with a limit, such as token_window")
        if policy.meters_only:
            raise InvalidValue(
                "a policy with meters_only loses no message at any limit: leave out meters_only "
                "to compare limits"
            )
        return policy

    @property
    def query(self) -> FleetQuery:
        kind = self.policy(ANY_LIMIT)
        rules = self.prices.rules
        return FleetQuery(self.which, kind, self.sample, self.seed, self.limit, rules, self.members)

    @property
    def frameworks(self) -> FrameworksQuery | None:
        """The query about memories of agent frameworks; None if the URL does not ask for them.

        A limit in the URL has the unit of `kind`, such as tokens. Memories that count in another
        unit have their default limits.
        """
        if not self.strategies:
            return None
        unit = policy_kinds()[self.kind].unit
        known = {unit: self.limit} if self.limit else {}
        settings = Settings(
            known.get("tokens", Settings.tokens), known.get("messages", Settings.messages)
        )
        return FrameworksQuery(self.query, settings, self.prices.rules)

    @property
    def parameters(self) -> dict[str, str]:
        """The URL parameters that differ from the defaults."""
        values = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        return {
            name: str(value)
            for name, (value, usual) in values.items()
            if value != usual and name not in ("prices", "problem", "kind", "usual_kind")
        } | {
            **({"kind": self.kind} if self.kind != self.usual_kind else {}),
            **self.prices.parameters,
        }

    def link(self, **changes: object) -> str:
        """Return the URL with changed parameters. A parameter with an empty value is left out."""
        parameters = {**self.parameters, **{name: str(value) for name, value in changes.items()}}
        query = urlencode({name: value for name, value in parameters.items() if value})
        return reverse("inspector:lab") + (f"?{query}" if query else "")

    def with_provider(self, name: str) -> str:
        """Return the URL with the cache prices of another provider."""
        prices = self.prices.with_provider(name)
        query = urlencode(replace(self, prices=prices).parameters)
        return reverse("inspector:lab") + (f"?{query}" if query else "")
