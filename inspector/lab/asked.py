"""What the address of a comparison asks for, and the links to other such addresses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from django.http import QueryDict
from django.urls import reverse
from django.utils.http import urlencode

from chatmemory import InvalidValue, Policy, policies_from_text, text_of_policy
from chatmemory.queries import POLICIES_MAX
from inspector.forms import searchable
from inspector.lab.numbers import whole_number, wrong_number
from inspector.lab.prices import Prices, wrong_price

FORMS = ("csv", "json")


@dataclass(frozen=True)
class Asked:
    """The policies as texts, the place, the phrase and the prices of a comparison.

    Without a `memory_id` it is of a file. Its links are then only the parameters of an address,
    which the form of the page sends together with the messages of the file. `problem` says what was
    wrong with the address; the rest of it is used. `form` is csv or json for the numbers alone.
    `kind`, `limit` and `options` are those of a policy that the form could not add.
    """

    memory_id: str
    policies: tuple[str, ...] = ()
    at: int | None = None
    phrase: str = ""
    prices: Prices = field(default_factory=Prices)
    form: str = ""
    problem: str = ""
    kind: str = ""
    limit: str = ""
    options: str = ""

    @classmethod
    def read(cls, memory_id: str, given: QueryDict) -> Asked:
        """Read the parameters of an address, and add the policy of the form."""
        values: dict[str, str] = given.dict()  # type: ignore[assignment]
        texts = [text for text in given.getlist("policy") if text.strip()]
        typed = {name: values.get(name, "").strip() for name in ("kind", "limit", "options")}
        added = [_written(**typed)] if typed["limit"] else []
        policies, problem = _policies([*texts, *added])
        is_refused = added and problem and policies == _policies(texts)[0]
        return cls(
            memory_id,
            tuple(map(text_of_policy, policies)),
            whole_number(values.get("at", "")),
            searchable(values.get("phrase", "")),
            Prices.read(values),
            form if (form := values.get("as", "")) in FORMS else "",
            problem or wrong_number(values, {"at": "after"}) or wrong_price(values),
            **(typed if is_refused else {}),
        )

    def chosen(self) -> list[Policy | None]:
        return [policy for text in self.policies for policy in policies_from_text(text)]

    def with_policies(self, policies: list[Policy | None]) -> Asked:
        return replace(self, policies=tuple(map(text_of_policy, policies)))

    @property
    def action(self) -> str:
        """The address of the page, without parameters."""
        if self.memory_id:
            return reverse("inspector:compare", args=[self.memory_id])
        return reverse("inspector:compare-file")

    def link(self, at: int | None = None, phrase: str | None = None, form: str = "") -> str:
        """Return the address at another place or with another phrase; `form` is csv or json."""
        place = self.at if at is None else at
        words = self.phrase if phrase is None else phrase
        more = {"as": form} if form else {}
        return self._address(self.policies, place, words, more)

    @property
    def query(self) -> str:
        """The parameters of the address."""
        return self.link().partition("?")[2] if self.memory_id else self.link()

    def without(self, text: str) -> str:
        """Return the address without a policy."""
        return self._address(
            tuple(each for each in self.policies if each != text), self.at, self.phrase, {}
        )

    def plus(self, text: str) -> str:
        """Return the address with another policy, in place of the last one if there are four."""
        kept = self.policies[: POLICIES_MAX - 1]
        return self._address((*kept, text), self.at, self.phrase, {})

    def _address(
        self, policies: tuple[str, ...], at: int | None, phrase: str, more: dict[str, str]
    ) -> str:
        pairs = [("policy", text) for text in policies]
        pairs += [("at", str(at))] if at is not None else []
        pairs += [("phrase", phrase)] if phrase else []
        pairs += [*self.prices.given.items(), *more.items()]
        query = urlencode(pairs)
        return f"{self.action}?{query}" if self.memory_id else query


def _written(kind: str, limit: str, options: str) -> str:
    """Return the policy of the form as text."""
    return ",".join(filter(None, [f"{kind}:{limit}".replace(" ", ""), options]))


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
