"""Reads prices of prompts from the URLs of pages: the prices of a provider, or the reader's own
prices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import NamedTuple

from chatmemory import CacheRules, Prices
from chatmemory.recall.cost import Provider, providers
from chatmemory.rooms import providers_in_use
from inspector.forms.fields import searchable
from inspector.shell.times import written

MILLION = 1_000_000
CACHES = {"openai": "openai", "openai_responses": "openai", "anthropic": "anthropic"}
CACHES |= {"gemini": "gemini"}  # the provider whose cache is used follows from the providers in use
PRICES = ("input", "cached", "write", "output")
TEXTS = ("currency", "source", "as_of")
USUAL = "openai"
OWN = "own"  # the reader's own prices, and a cache without bounds
ONE = Decimal(1)


class UsualCache(NamedTuple):
    """The prompt cache whose prices apply if a URL names no provider. `model` is the model in use;
    "" if the model is unknown.
    """

    provider: str = USUAL
    model: str = ""


OPENAI = UsualCache()


def usual() -> UsualCache:
    """Return the prompt cache of the first provider in use that has cache prices. If no provider in
    use has cache prices, return the cache of OpenAI.

    The `model` is set only if exactly one model of the provider is in use.
    """
    use = providers_in_use() or {}
    found = next((name for name in use if name in CACHES), None)
    if found is None:
        return OPENAI
    models = use[found]
    return UsualCache(CACHES[found], models[0] if len(models) == 1 else "")


class Preset(NamedTuple):
    """A choice of cache prices on a page: those of a provider, or the reader's own. `name` is the
    provider's name in URLs, or "own". `label` is the text of the choice, and `words` the prices in
    words.
    """

    name: str
    label: str
    words: str
    is_chosen: bool


@dataclass(frozen=True)
class ChosenPrices:
    """The prices in a URL, each for a million tokens. A price is None if the URL does not have it.
    `provider` names the provider whose cache prices apply, or is "own".

    - `cached`, `write`: the prices of tokens read from and written to the prompt cache. If such a
      price is None, the property `prices` computes the price from the input price, in the ratio of
      the provider's prices.
    - `source`, `as_of`: where the reader's own prices come from, and their date.
    - `usual`: the cache whose prices apply if the URL names no provider.
    """

    input: Decimal | None = None
    cached: Decimal | None = None
    write: Decimal | None = None
    output: Decimal | None = None
    provider: str = USUAL
    currency: str = "$"
    source: str = ""
    as_of: str = ""
    usual: UsualCache = OPENAI

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> ChosenPrices:
        """Read the prices from the parameters of a URL. Invalid prices are left out."""
        usually = usual()
        if not parameters:
            return cls(provider=usually.provider, usual=usually)
        provider = parameters.get("provider") or usually.provider
        texts = {name: searchable(parameters.get(name, ""))[:80] for name in TEXTS}
        return cls(
            **{name: price_in(parameters.get(name, "")) for name in PRICES},  # type: ignore[arg-type]  # the names are those of the fields
            provider=provider if provider in providers() else OWN,
            usual=usually,
            **{**texts, "currency": texts["currency"] or cls.currency},  # type: ignore[arg-type]  # the names are those of the fields
        )

    @property
    def parameters(self) -> dict[str, str]:
        """The URL parameters that differ from the defaults."""
        usually = {each.name: each.default for each in fields(self) if each.name != "usual"}
        usually["provider"] = self.usual.provider
        values = {name: getattr(self, name) for name in usually}
        return {name: str(value) for name, value in values.items() if value != usually[name]}

    @cached_property
    def chosen(self) -> Provider | None:
        """The provider whose cache prices apply; None if the reader's own prices apply.

        If `usual` names this provider, the result has the prices of the model `usual.model`, if
        they are known.
        """
        found = providers().get(self.provider)
        is_usual = found is not None and self.usual.provider == self.provider
        return found.for_model(self.usual.model) if found and is_usual else found

    @property
    def rules(self) -> CacheRules:
        return self.chosen.rules if self.chosen else CacheRules()

    @property
    def prices(self) -> Prices:
        """The prices to calculate with.

        - If a provider's cache prices apply, a missing input price counts as 1. Costs are then
          relative.
        - If the reader's own prices apply and have no `cached`, the result has no cached price. The
          same is true if the URL has `cached` without `input`. Pages then compare numbers of tokens
          instead of costs.
        """
        whole = self.input or ONE
        cached, write = self.cached, self.write
        if self.chosen:
            cached = whole * self.chosen.cached if cached is None else cached
            write = whole * self.chosen.write if write is None else write
        if cached is None or (self.cached is not None and not self.input):
            return Prices(self.input)
        return Prices(whole, cached, write)

    @property
    def named(self) -> Prices:
        """The same as `prices`, with the words of `prices_of` as the `source`."""
        return replace(self.prices, source=self.prices_of)

    @property
    def prices_of(self) -> str:
        """Whose prices these are, in words: `OpenAI’s prices of 1 Nov 2026`. "" if pages compare
        tokens instead of costs, or if own prices have no source.
        """
        as_of = self.as_of or (written(self.chosen.as_of, "date") if self.chosen else "")
        whose = self.source or (self.chosen.label.partition(",")[0] if self.chosen else "")
        if self.prices.priced == "tokens" or not whose:
            return ""
        prices = f"{whose}’s prices" if not self.source else whose
        return f"{prices} of {as_of}" if as_of else prices

    @property
    def answer(self) -> Decimal:
        """The price of one output token, not of a million; 0 if it is unknown."""
        return (self.output or Decimal(0)) / MILLION

    @property
    def has_money(self) -> bool:
        return self.input is not None

    def money(self, tokens: Decimal, times: float) -> str:
        """Return the cost of `tokens` at the input price, multiplied by `times`: `€2.43`. For
        example, `times` is 1,000 for 1,000 equal calls. Return "" without an input price.
        """
        if self.input is None:
            return ""
        return f"{self.currency}{tokens * self.input / MILLION * Decimal(times):,.2f}"

    @property
    def words(self) -> str:
        """The chosen prices and the provider in one line."""
        if not self.chosen:
            return "your own" if self.cached is not None else "none: tokens are compared, not costs"
        return f"{self.chosen.label}, {_shares(self.chosen)}"

    @property
    def source_words(self) -> str:
        """The source and the date of the prices, such as `Contract, as of 1 Nov 2026`. Remarks on
        the prices of a provider may follow. "" if nothing is known.
        """
        chosen = self.chosen
        as_of = self.as_of or (written(chosen.as_of, "date") if chosen else "")
        says = chosen.says if chosen and not self.source else ""
        return ", ".join(filter(None, [self.source, as_of and f"as of {as_of}"])) + (
            f": {says}" if says else ""
        )

    @property
    def presets(self) -> list[Preset]:
        known = [
            Preset(name, each.label, _shares(each), name == self.provider)
            for name, each in providers().items()
        ]
        return [*known, Preset(OWN, "Own prices", "any prefix counts as cached", not self.chosen)]

    def with_provider(self, name: str) -> ChosenPrices:
        return replace(self, provider=name, cached=None, write=None)


def _shares(provider: Provider) -> str:
    shares = (f"{round(100 * share)} %" for share in (provider.cached, provider.write))
    return "cached input at {}, cache writes at {} of the input price".format(*shares)


def price_in(text: str) -> Decimal | None:
    """Return the price that somebody entered as text; None if the text is not a price."""
    try:
        number = Decimal(text.strip().replace(",", ".")) if len(text) < 20 else None
    except InvalidOperation:
        return None
    return number if number is not None and number.is_finite() and 0 <= number < MILLION else None


def wrong_price(parameters: Mapping[str, str]) -> str:
    """Return a sentence about the first invalid price in a URL; "" if all are valid."""
    for name in PRICES:
        if parameters.get(name) and price_in(parameters[name]) is None:
            return f"the {name} price must be a number below {MILLION:,}, such as 2.50"
    return ""
