"""Costs in money, by the prices in the setting INSPECTOR["PRICES"]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from inspector.conf import ANY_MODEL, PRICE

MILLION = 1_000_000
LEAST = Decimal("0.1")  # with less, an amount has four digits after the point


def money(tokens: float, models: Iterable[str], prices: Mapping[str, str]) -> str:
    """Return the cost of `tokens` in money, such as `$0.42`, at the input price of the `models`.
    Return "" if a price is missing, or if the models have different prices.
    """
    found = {_price_of(each, prices) for each in models}
    price = found.pop() if len(found) == 1 else ""
    known = PRICE.fullmatch(price)
    if known is None:
        return ""
    amount = Decimal(tokens) * Decimal(known[2]) / MILLION
    return f"{known[1]}{amount:,.{2 if amount >= LEAST else 4}f}"


def _price_of(model: str, prices: Mapping[str, str]) -> str:
    """Return the price of a model. `gpt-5` in `prices` also applies to `gpt-5-mini`; the longest
    fitting name decides.
    """
    fitting = [each for each in prices if model.startswith(each)]
    return prices[max(fitting, key=len)] if fitting else prices.get(ANY_MODEL, "")
