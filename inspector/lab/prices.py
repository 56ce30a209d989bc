"""Prices of tokens, as the address of a page has them: nothing here is a price of anybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation

from inspector.forms import searchable

MILLION = 1_000_000
LARGEST = Decimal(1_000_000)


@dataclass(frozen=True)
class Prices:
    """Prices of a million tokens. A cached price that is missing is the input price.

    Price lists are mostly in dollars. `source` and `as_of` say where the prices stand and since
    when, in the user's own words.
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
            _number(given.get("input", "")),
            _number(given.get("cached", "")),
            _number(given.get("output", "")),
            searchable(given.get("currency", ""))[:80] or cls.currency,
            *(searchable(given.get(name, ""))[:80] for name in ("source", "as_of")),
        )

    @property
    def given(self) -> dict[str, str]:
        values = [(each, getattr(self, each.name)) for each in fields(self)]
        return {each.name: str(value) for each, value in values if value != each.default}

    def cost(self, prompt: int, reusable: int, output: int) -> Decimal | None:
        """Return what so many tokens cost; None without an input price."""
        if self.input is None:
            return None
        cached = self.input if self.cached is None else self.cached
        fresh = (prompt - reusable) * self.input + reusable * cached
        return (fresh + output * (self.output or 0)) / MILLION

    def words(self, cost: Decimal | None, times: float = 1) -> str:
        """Return a cost in words, such as `€2.43`."""
        return "" if cost is None else f"{self.currency}{cost * Decimal(times):,.2f}"

    @property
    def said(self) -> str:
        """Where the prices are from."""
        parts = [self.source, self.as_of and f"as of {self.as_of}"]
        return ", ".join(filter(None, parts)) or "source and date not given"


PRICES = ("input", "cached", "output")


def wrong_price(given: Mapping[str, str]) -> str:
    """Return which price of an address is there and is none."""
    wrong = [name for name in PRICES if given.get(name) and _number(given[name]) is None]
    return f"the {wrong[0]} price must be a number below {LARGEST:,}, such as 2.50" if wrong else ""


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip().replace(",", ".")) if len(text) < 20 else None
    except InvalidOperation:
        return None
    return number if number is not None and number.is_finite() and 0 <= number < LARGEST else None
