"""Conversations that cost more than sending everything, at the cache price of the provider in use.

A policy that drops a message with each turn changes the beginning of each prompt, so the provider
reads nothing from its cache. The cost of a conversation is kept for each provider with a price.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from django.db.models import Q

from chatmemory.keeper import Keeper, version_of
from chatmemory.kept import KeptRow
from chatmemory.ledger.windows import read_message
from chatmemory.messages.estimators import estimator_for
from chatmemory.messages.message import TYPES, MessageType
from chatmemory.models import Memory, Stay
from chatmemory.reading.history import estimator_of, messages_until, read_for_replay
from chatmemory.reading.recall import COMPARED_MAX
from chatmemory.recall.cost import ONE, Bill, Call, Prices, Provider, bill_of, providers
from chatmemory.recall.frontier import FEWEST_CALLS
from chatmemory.recall.history import History, time_in
from chatmemory.recall.lexicon import Lexicon
from chatmemory.recall.prompts import prompts_of
from chatmemory.rooms import providers_in_use
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.window import Entry
from inspector.rooms.lab.models import KeptCost
from inspector.shell.prices import CACHES

OVER = 105  # percent of sending everything
RULES = 3  # raise it with each change of the kept figures
PRICED = ("openai", "anthropic", "gemini")


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
    """`11 % more at the price of OpenAI`; empty if it is not known."""
    provider = provider_that_prices()
    row = KeptCost.objects.filter(pk=memory_id).first()
    percent = getattr(row, provider.name) if provider and row else None
    if provider is None or percent is None or percent < OVER:
        return ""
    label = provider.label.partition(",")[0]
    return f"{percent - 100} % more at the price of {label}, because each prompt begins differently"


class CostKeeper(Keeper):
    """Keeps the cost of each conversation, from the sizes of its newest 10,000 messages."""

    model = KeptCost

    def version(self) -> str:
        return version_of(RULES, OVER, [providers()[name] for name in PRICED])

    def make(self, memory: Memory, before: KeptRow | None) -> dict[str, Any]:
        policy = memory.policy
        if not can_decide(policy) or policy.meters_only:
            return {}
        history = history_without_words(memory, COMPARED_MAX)
        keeps_first = policy.always_keep_system_message_first
        sent = prompts_of(history, history.loads.departures(policy), keeps_first).sent
        if len(sent) < FEWEST_CALLS:
            return {}
        everything = prompts_of(history, history.loads.departures(None)).sent
        return _columns(memory, history, sent, everything)


def _columns(
    memory: Memory, history: History, sent: Sequence[Call], everything: Sequence[Call]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in PRICED:
        percents = relative_costs(sent, everything, providers()[name])
        found[name] = percents[-1]
        if percents[-1] >= OVER:
            first = max((n + 1 for n, each in enumerate(percents) if each < OVER), default=0)
            found[f"{name}_step"] = _step_of(memory, history.numbers[sent[first].position])
    return found


def relative_costs(
    sent: Sequence[Call], everything: Sequence[Call], provider: Provider
) -> list[int]:
    """Return the cost of the calls up to each one, in whole percent of the cost of sending
    everything, rounded as comparisons show it: 1.21 is 121.
    """
    prices = Prices(ONE, provider.cached, provider.write)

    def sums(calls: Sequence[Call]) -> list[Bill]:
        return list(accumulate(bill_of([call], provider.rules) for call in calls))

    pairs = zip(sums(sent), sums(everything), strict=True)
    costs = (prices.relative(part, whole) or 0 for part, whole in pairs)
    return [round(100 * round(cost, 2)) for cost in costs]


def _step_of(memory: Memory, seq: int) -> int | None:
    entered = Stay.objects.filter(memory=memory, seq=seq).order_by("n")
    return entered.values_list("entered_step", flat=True).first()


def history_without_words(memory: Memory, latest: int) -> History:
    """Return the last messages of a conversation as sizes alone, which is enough to replay prompts.
    Their facts are unknown.
    """
    rows = messages_until(memory.pk, memory.last_seq).order_by("-seq")
    newest = list(rows.values_list("seq", "type", "tokens", "attributes")[:latest])[::-1]
    first = newest[0][0] if newest else 1
    stays = Stay.objects.filter(memory=memory, seq__gte=first)
    calling = set(stays.filter(has_calls=True).values_list("seq", flat=True))
    systems = {seq for seq, type, *_ in newest if type == MessageType.SYSTEM}
    texts = {row.seq: read_message(row) for row in rows.filter(seq__in=systems)} if systems else {}
    if memory.policy:
        texts |= read_for_replay(rows.filter(seq__gte=first), calling, memory.policy)
    entries = [
        Entry(TYPES[type], seq in calling, tokens, texts.get(seq), key=position)
        for position, (seq, type, tokens, _) in enumerate(newest)
    ]
    times = [time_in(json.loads(attributes or "{}")) for *_, attributes in newest]
    overhead = estimator_for(estimator_of(memory)).estimate_token_count_in_messages([])
    seqs = [seq for seq, *_ in newest]
    return History(entries, (), (), Lexicon(()), overhead, seqs, times=times)
