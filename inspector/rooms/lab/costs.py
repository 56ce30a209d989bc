"""Finds conversations whose prompts cost more than sending everything, at the cache price of the
provider in use.
"""

from __future__ import annotations

from django.db.models import Q

from chatmemory.recall.cost import Provider, providers
from chatmemory.rooms import providers_in_use
from inspector.rooms.lab.figures import OVER
from inspector.shell.advice import advice_on
from inspector.shell.prices import CACHES


def provider_that_prices() -> Provider | None:
    """Return the first provider in use whose cache prices are known; None if no such provider is in
    use.
    """
    priced = (CACHES[name] for name in providers_in_use() or () if name in CACHES)
    return next((providers()[name] for name in priced), None)


def has_price() -> bool:
    return provider_that_prices() is not None


def costs_more() -> Q:
    """Return the database condition for conversations that cost at least 5 % more than sending
    everything. If no provider in use has known cache prices, no conversation meets the condition.
    """
    provider = provider_that_prices()
    if provider is None:
        return Q(id="")  # no conversation has an empty id
    return Q(**{f"keptcost__{provider.name}__gte": OVER})


def began_step() -> str:
    """Return the name of a database column, such as "keptcost__openai_step". The column has the
    step since which a conversation has cost at least 5 % more than sending everything.

    Return "" if no provider in use has known cache prices.
    """
    provider = provider_that_prices()
    return f"keptcost__{provider.name}_step" if provider else ""


def how_much_more(memory_id: str) -> str:
    """Return in words how much more a conversation costs than sending everything. Return "" if it
    costs no more, or if the cost is unknown.
    """
    card = advice_on(memory_id)
    return card.how_much_more if card else ""
