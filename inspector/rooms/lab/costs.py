"""Conversations that cost more than sending everything, at the cache price of the provider in use,
and by how much.
"""

from __future__ import annotations

from django.db.models import Q

from chatmemory.recall.cost import Provider, providers
from chatmemory.rooms import providers_in_use
from inspector.rooms.lab.figures import OVER
from inspector.shell.advice import advice_on
from inspector.shell.prices import CACHES


def provider_that_prices() -> Provider | None:
    """Return the first provider in use whose cache has a price; None if no cache has one."""
    priced = (CACHES[name] for name in providers_in_use() or () if name in CACHES)
    return next((providers()[name] for name in priced), None)


def has_price() -> bool:
    return provider_that_prices() is not None


def costs_more() -> Q:
    """Return the condition for conversations that cost at least 5 % more than everything."""
    provider = provider_that_prices()
    if provider is None:
        return Q(id="")  # no conversation has an empty id
    return Q(**{f"keptcost__{provider.name}__gte": OVER})


def began_step() -> str:
    """Return the column with the step since which conversations cost more."""
    provider = provider_that_prices()
    return f"keptcost__{provider.name}_step" if provider else ""


def how_much_more(memory_id: str) -> str:
    """Return by how much a conversation costs more than sending everything; empty if it does not,
    or if it is not known.
    """
    card = advice_on(memory_id)
    return card.how_much_more if card else ""
