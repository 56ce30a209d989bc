"""Arguments of commands for prices and prompt caches."""

from __future__ import annotations

from argparse import ArgumentParser
from decimal import Decimal, InvalidOperation

from chatmemory.printing import Options
from chatmemory.recall.cost import CacheRules, Prices, providers, rules_of

_PRICES = {
    "input": "of input tokens",
    "cached": "of those read from the provider's cache",
    "write": "of those written to it; by default the input price",
}


def add_price_arguments(parser: ArgumentParser) -> None:
    for name, what in _PRICES.items():
        parser.add_argument(f"--{name}", type=price, help=f"price of a million tokens, {what}")
    parser.add_argument(
        "--provider",
        default="",
        choices=["", *providers()],
        help="use the cache rules of this provider: least length, steps, lifetime; default: none",
    )


def price(text: str) -> Decimal:
    """Return the price that a text holds. Raises ValueError, from which the argument parser makes
    an error.
    """
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None


def prices_and_rules(options: Options) -> tuple[Prices, CacheRules]:
    """Return the prices, and the rules of the provider's prompt cache, that the options choose.
    Raises InvalidValue.
    """
    prices = Prices(*(options[name] for name in _PRICES))
    return prices, rules_of(options["provider"], options["model"])
