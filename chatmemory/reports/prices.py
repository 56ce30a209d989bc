"""The command-line options for prices and for the rules of prompt caches."""

from __future__ import annotations

from argparse import ArgumentParser
from decimal import Decimal, InvalidOperation

from chatmemory.printing import Options
from chatmemory.recall.cost import CacheRules, Prices, providers, rules_of

_PRICES = {
    "input": "input tokens",
    "cached": "cached input tokens, read from the provider's cache",
    "write": "input tokens that are written to the provider's cache; default: the input price",
}


def add_price_arguments(parser: ArgumentParser) -> None:
    for name, what in _PRICES.items():
        parser.add_argument(f"--{name}", type=price, help=f"price of a million {what}")
    parser.add_argument(
        "--provider",
        default="",
        choices=["", *providers()],
        help="use the rules of this provider's prompt cache: shortest prompt, step "
        "size, lifetime; default: none",
    )


def price(text: str) -> Decimal:
    """Return the price in a text, such as "2.50". Raises ValueError if the text is not a number."""
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None


def prices_and_rules(options: Options) -> tuple[Prices, CacheRules]:
    """Return the prices and the rules of the prompt cache, as given by the options. Raises
    InvalidValue.
    """
    prices = Prices(*(options[name] for name in _PRICES))
    return prices, rules_of(options["provider"], options["model"])
