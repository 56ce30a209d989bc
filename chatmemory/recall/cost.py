"""Computes the cost of prompts, with the provider's prompt cache.

Each prompt is compared with the previous prompt. The shared prefix of whole messages is read from
the cache, if the provider's rules allow it, and the rest is written to the cache. A prompt that is
too short is not cached. Answers are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from chatmemory.data_files import toml_beside
from chatmemory.exceptions import InvalidValue
from chatmemory.known_models import known_model, names_of_models
from chatmemory.messages.json_values import JsonMap

MILLION = 1_000_000
ONE, TWICE = Decimal(1), Decimal(2)


class Call(NamedTuple):
    """A model call in a replay. All sizes are in tokens.

    - `position`: the position of the answer among the messages.
    - `prompt`: the size of the prompt. `shared` is the size of the prefix that it shares with the
      previous prompt.
    - `age`: the seconds since the previous call; None if unknown.
    - `is_broken`: whether the prompt does not start with the whole previous prompt.
    - `again`: the size of the messages outside the shared prefix that were also in the previous
      prompt.
    """

    position: int
    prompt: int
    shared: int
    age: float | None = None
    is_broken: bool = False
    again: int = 0


@dataclass(frozen=True)
class CacheRules:
    """The rules of a provider's prompt cache. By default, every prefix is cached forever.

    A prompt is cached if it has at least `least` tokens. It is cached in units of `step` tokens,
    and for `life` seconds after the last use.
    """

    step: int = 1
    least: int = 0
    life: float | None = None

    def is_lost(self, age: float | None) -> bool:
        """Return whether a cache entry that was last used `age` seconds ago has expired. False for
        an unknown `age` (None).
        """
        return self.life is not None and age is not None and age > self.life

    def is_cached(self, prompt: int) -> bool:
        """Return whether a prompt of this many tokens is long enough for the cache."""
        return prompt >= self.least


NO_BOUNDS = CacheRules()


@dataclass(frozen=True)
class Provider:
    """The prompt cache of a provider, and its prices.

    - `label`: the name for people, such as "Anthropic, 1 h". `name` is the key in `providers`, such
      as "anthropic-1h".
    - `cached`, `write`: the prices for reading from and writing to the cache, as shares of the
      input price: 0.1 is 10 %.
    - `least_of`: maps a regular expression for names of models to the minimum prompt length of
      these models, in tokens.
    - `says`: a remark for people, such as on differences between models; "" without one.
    - `read`: maps the name of a value, such as "least", to the URL of its source. The sources were
      read on the day `as_of`.
    """

    name: str
    label: str
    rules: CacheRules
    cached: Decimal
    write: Decimal
    as_of: date
    read: Mapping[str, str]
    least_of: Mapping[str, int]
    says: str = ""

    def for_model(self, model: str | None) -> Provider:
        """Return a copy with the minimum prompt length and the prices of a model. Values that are
        unknown for the model stay those of the provider.
        """
        sizes = self.least_of.items()
        least = (size for names, size in sizes if names_of_models(names).search(model or ""))
        rules = replace(self.rules, least=next(least, self.rules.least))
        known = known_model(model)
        cached = known.cached if known and known.cached is not None else self.cached
        # A cache with another lifetime has its own price
        write = known.write if known and known.write is not None and self.write < TWICE else None
        return replace(
            self, rules=rules, cached=cached, write=self.write if write is None else write
        )


@cache
def providers() -> Mapping[str, Provider]:
    """Return the providers whose prompt caches are known, by name."""
    found = toml_beside(__file__, "caches.toml")
    return {name: _provider(name, data) for name, data in found.items()}


def _provider(name: str, data: JsonMap) -> Provider:
    rules = CacheRules(data.get("step", 1), data.get("least", 0), data.get("life"))
    shares = Decimal(data["cached"]), Decimal(data["write"])
    of_models, condition = data.get("least_of", {}), data.get("says", "")
    return Provider(
        name, data["label"], rules, *shares, data["as_of"], data["read"], of_models, condition
    )


def rules_of(provider: str, model: str | None = None) -> CacheRules:
    """Return the rules of a provider's prompt cache, for a model if one is given. If `provider` is
    "", every prefix is cached forever.

    Raises InvalidValue for an unknown provider.
    """
    if provider and provider not in providers():
        raise InvalidValue(f"the provider of a prompt cache must be {' or '.join(providers())}")
    return providers()[provider].for_model(model).rules if provider else NO_BOUNDS


@dataclass(frozen=True)
class Bill:
    """The tokens of the prompts of some model calls: how many of all `tokens` are `read` from the
    prompt cache, and how many are `written` to it. `calls` is the number of model calls.
    """

    calls: int = 0
    tokens: int = 0
    read: int = 0
    written: int = 0

    @property
    def fresh(self) -> int:
        return self.tokens - self.read - self.written

    def __add__(self, other: Bill) -> Bill:
        return Bill(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.read + other.read,
            self.written + other.written,
        )


NOTHING_SENT = Bill()


class Sizes(NamedTuple):
    """The sizes of consecutive model calls. Each list has one item for each call:

    - `prompts`: the tokens of the prompt.
    - `shared`: the tokens of the prefix that the prompt shares with the previous prompt.
    - `ages`: the seconds since the previous call; None if unknown.
    """

    prompts: Sequence[int]
    shared: Sequence[int]
    ages: Sequence[float | None]

    @classmethod
    def of(cls, calls: Iterable[Call]) -> Sizes:
        listed = list(calls)
        return cls(
            [call.prompt for call in listed],
            [call.shared for call in listed],
            [call.age for call in listed],
        )

    def bill(self, rules: CacheRules) -> Bill:
        """Return the bill of all calls: the sum of their tokens, and how many of these were read
        from the cache or written to it.
        """
        read, written = self._in_cache(rules)
        return Bill(len(self.prompts), sum(self.prompts), sum(read), sum(written))

    def bills(self, rules: CacheRules) -> Iterator[Bill]:
        """Yield, for each call, the bill of all calls from the first to this one."""
        read, written = self._in_cache(rules)
        sums = map(accumulate, (self.prompts, read, written))
        return map(Bill, range(1, len(self.prompts) + 1), *sums)

    def _in_cache(self, rules: CacheRules) -> tuple[list[int], list[int]]:
        """Return, for each call, the tokens read from the cache, and the tokens written to it."""
        step, least = rules.step, rules.least
        read = [each - each % step if each >= least else 0 for each in self.shared]
        if rules.life is not None:
            read = [0 if rules.is_lost(age) else n for n, age in zip(read, self.ages, strict=True)]
        pairs = zip(self.prompts, read, strict=True)
        return read, [prompt - part if prompt >= least else 0 for prompt, part in pairs]


def bill_of(calls: Iterable[Call], rules: CacheRules) -> Bill:
    """Return the bill of these calls: the sum of their tokens, and how many of these were read from
    the cache or written to it.
    """
    return Sizes.of(calls).bill(rules)


@dataclass(frozen=True)
class Prices:
    """Prices of a million tokens in one currency: of input tokens, of tokens read from the prompt
    cache (`cached`), and of tokens written to it (`write`, by default the input price).

    `source` says in words where the prices come from. Raises InvalidValue for a price below 0, for
    a cached price without an input price above 0, and for a write price without a cached price.
    """

    input: Decimal | None = None
    cached: Decimal | None = None
    write: Decimal | None = None
    source: str = field(default="", kw_only=True, compare=False)

    def __post_init__(self) -> None:
        prices = {"input": self.input, "cached": self.cached, "write": self.write}
        for name, price in prices.items():
            if price is not None and not (price.is_finite() and price >= 0):
                raise InvalidValue(f"the {name} price must be 0 or more, but is: {price}")
        if self.cached is not None and not self.input:
            raise InvalidValue("a cached price needs an input price above 0 beside it")
        if self.write is not None and self.cached is None:
            raise InvalidValue("a price of writing the cache needs a cached price beside it")

    @property
    def priced(self) -> str:
        """The measure by which policies are compared: "cache" is their cost with the prompt cache,
        and "tokens" is their number of tokens. It is "tokens" if there is no cached price.
        """
        return "tokens" if self.cached is None else "cache"

    @property
    def parts(self) -> tuple[float, float, float]:
        """Three prices, each divided by the input price. Without a cached price, all are 1.0. The
        prices are for these tokens, in this order:

        - tokens that are neither read from the cache nor written to it
        - tokens that are read from the cache
        - tokens that are written to the cache
        """
        if self.cached is None or not self.input:
            return 1.0, 1.0, 1.0
        write = ONE if self.write is None else self.write / self.input
        return 1.0, float(self.cached / self.input), float(write)

    def cost_in_tokens(self, bill: Bill) -> float:
        """Return the cost of prompts, as the number of input tokens that cost the same. The method
        `weight` returns this number as an exact Decimal.
        """
        fresh, read, written = self.parts
        return fresh * bill.fresh + read * bill.read + written * bill.written

    def weight(self, bill: Bill) -> Decimal:
        """Return the cost of the prompts in `bill`, as the number of input tokens that cost the
        same. Without a cached price, this is the number of all tokens.
        """
        if self.cached is None or not self.input:
            return Decimal(bill.tokens)
        write = ONE if self.write is None else self.write / self.input
        return bill.fresh + bill.read * self.cached / self.input + bill.written * write

    def cost(self, bill: Bill) -> Decimal | None:
        """Return the cost of prompts in the currency of the prices. None without an input price."""
        return None if self.input is None else self.weight(bill) * self.input / MILLION

    def relative(self, bill: Bill, everything: Bill) -> float | None:
        """Return the cost of `bill` divided by the cost of `everything`, the bill of sending
        everything. None if sending everything costs nothing, such as without any model call.
        """
        whole = self.weight(everything)
        return float(self.weight(bill) / whole) if whole else None


NO_PRICES = Prices()
