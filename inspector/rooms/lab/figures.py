"""Figures from which advice on a conversation is derived, such as how many needed facts each limit
would have held.

The figures for the usual policies are stored, without any texts. Figures for other policies are
computed on request. The cost relative to sending everything is stored too, for each provider with a
price, so that lists can be filtered by cost.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from django.db.models import BooleanField, ExpressionWrapper, Q

from chatmemory import database
from chatmemory.advice import DecidedBy, Measured
from chatmemory.columns import ColumnValues
from chatmemory.conf import fact_words
from chatmemory.exceptions import ChatMemoryError, CorruptRow, InvalidValue
from chatmemory.flags import flags
from chatmemory.keeper import QUICK_MESSAGES, Keeper, version_of
from chatmemory.keeping import current
from chatmemory.kept import KeptRow
from chatmemory.ledger.sql import read_memory
from chatmemory.messages.json_values import JsonDict
from chatmemory.models import Memory, Stay
from chatmemory.reading.clients import of_clients
from chatmemory.reading.history import estimator_of
from chatmemory.reading.recall import recall_history
from chatmemory.recall.cost import ONE, CacheRules, Call, Prices, Provider, Sizes, providers
from chatmemory.recall.facts import Words
from chatmemory.recall.frontier import (
    FEWEST_CALLS,
    FIGURES_RULES,
    MEASURED_MAX,
    Figures,
    TriedPolicies,
    figures_of,
    limit_needed,
    tried_of_kind,
    tried_policies,
)
from chatmemory.recall.history import History
from chatmemory.recall.incidents import INCIDENT_RULES
from chatmemory.recall.tallies import Tallies
from chatmemory.rooms import known_incidents
from chatmemory.snapshots import is_within_snapshot
from chatmemory.windows.policies import Policy, TokenWindow
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.written_policies import measured, policies_from_text, text_of_policy
from inspector.rooms.lab.models import KeptCost
from inspector.shell.prices import ChosenPrices, UsualCache, usual

OVER = 105  # percent of sending everything
RULES = 6  # raise it with each change of the kept columns
PRICED = ("openai", "anthropic", "gemini")
KEEPING = 8  # the latest incidents, whose limits are tried as well
ROWS_AT_ONCE = 500
SECONDS = 1.0
REFUSING = "A provider in use"


class FiguresKeeper(Keeper):
    """Stores for each conversation the figures from which advice is derived, and the cost relative
    to sending everything.

    At most the newest 5,000 messages are measured, and fewer if it would take too long to replay
    them under every policy.
    """

    model = KeptCost

    def version(self) -> str:
        return _version(ChosenPrices.read({}), fact_words())

    def make(self, memory: Memory, before: KeptRow | None) -> ColumnValues:
        kind = kind_of(memory)
        try:
            history = recall_history(memory.pk, kind.estimator, latest=MEASURED_MAX)
        except CorruptRow:
            return {"content": written(memory, kind, Figures(is_unreadable=True))}
        today = kind if _decides(memory.policy) else None
        limits = {*_limits(memory, kind), limit_needed(history.entries, kind)} - {0}
        tried = tried_of_kind(kind, limits, ChosenPrices.read({}).rules)
        figures = figures_of(history, tried, today)
        content = {"content": written(memory, kind, figures)}
        if today is None or figures.calls < FEWEST_CALLS:
            return content
        history = history.newest(figures.messages)
        tallies = Tallies(history, today, tried.rules)
        return content | _columns(memory, history, tallies.calls(today), tallies.calls(None))


def _decides(policy: Policy | None) -> bool:
    return can_decide(policy) and not policy.meters_only


def kind_of(memory: Memory) -> Policy:
    """Return the policy that the lab tries with different limits for a conversation: the policy of
    the conversation, but without the option `meters_only`. So the policy evicts messages.

    If the conversation has no policy, or the kind of its policy is not installed, return a token
    window.
    """
    policy = memory.policy
    if can_decide(policy):
        return policy.enforced()
    return measured(TokenWindow(1, estimator=estimator_of(memory)))


def _limits(memory: Memory, kind: Policy) -> set[int]:
    """Return further limits to try: today's limit, and limits that would have kept the facts of the
    latest incidents.
    """
    found = {kind.limit} if _decides(memory.policy) else set()
    for incident in list(known_incidents(memory.pk))[-KEEPING:]:
        keeping = incident.shown.keeping
        if keeping is not None and keeping.limit is not None:
            found.add(keeping.limit)
    return found


def written(memory: Memory, kind: Policy, figures: Figures) -> str:
    """Return figures as JSON, with two more members: `kind`, the policy that was tried with
    different limits, and `said`, the number of messages in the history.
    """
    value = {"kind": text_of_policy(kind), "said": memory.said_count, **figures.to_dict()}
    return json.dumps(value, separators=(",", ":"))


def _columns(
    memory: Memory, history: History, sent: Sequence[Call], everything: Sequence[Call]
) -> JsonDict:
    found: JsonDict = {}
    usually = usual()
    for name in PRICED:
        percents = relative_costs(sent, everything, _priced(name, usually))
        found[name] = percents[-1]
        if percents[-1] >= OVER:
            first = max((n + 1 for n, each in enumerate(percents) if each < OVER), default=0)
            found[f"{name}_step"] = _step_of(memory, history.numbers[sent[first].position])
    return found


def _priced(name: str, usually: UsualCache) -> Provider:
    """Return a provider, with the prices of the model in use if this model is known."""
    found = providers()[name]
    return found.for_model(usually.model) if usually.provider == name else found


def relative_costs(
    sent: Sequence[Call], everything: Sequence[Call], provider: Provider
) -> list[int]:
    """Return a whole percentage for each call: the cost of all calls up to this call, relative to
    sending everything. 121 means 21 % more than sending everything.

    `sent` are the calls with the prompts as they were sent. `everything` are the same calls with
    the whole history as prompt.
    """
    prices = Prices(ONE, provider.cached, provider.write)
    bills = (Sizes.of(calls).bills(provider.rules) for calls in (sent, everything))
    costs = (prices.relative(part, whole) or 0 for part, whole in zip(*bills, strict=True))
    return [round(100 * round(cost, 2)) for cost in costs]


def _step_of(memory: Memory, seq: int) -> int | None:
    entered = Stay.objects.filter(memory=memory, seq=seq).order_by("n")
    return entered.values_list("entered_step", flat=True).first()


# Reading


def figures_now(
    ids: Collection[str], policies: Mapping[str, Policy], rules: CacheRules | None = None
) -> list[Measured]:
    """Return the figures of conversations, sorted by ID. Without `policies` and `rules`, these are
    the stored figures.

    - `policies`: another policy to measure, by conversation ID.
    - `rules`: other rules of the prompt cache.

    Figures that are not stored for these policies and rules are computed, but not stored. The
    computation ends after about a second. `figures` is None for conversations that are not reached
    in this time, or that have no stored figures at all.

    If `ids` names a single short conversation, its outdated or missing figures are first computed
    and stored. This does not happen within a database snapshot.
    """
    rows = list(_kept(ids))
    waits = [each for each in rows if not each.is_current and each.said <= QUICK_MESSAGES]
    if len(rows) == len(waits) == 1 and not is_within_snapshot():
        with suppress(ChatMemoryError):
            current(FiguresKeeper(), rows[0].measured.id, QUICK_MESSAGES)
        rows = list(_kept(ids))
    found = [row.measured for row in rows]
    is_usual = rules in (None, ChosenPrices.read({}).rules)
    if is_usual and not policies:
        return found
    done = {each.id: each for each in found}
    waiting = [each for each in found if not is_usual or each.id in policies]
    done |= {each.id: each._replace(figures=None) for each in waiting}
    for each in database.for_seconds(SECONDS, waiting):
        if each.figures is None or each.tried is None:
            continue
        usual_ones = each.tried if rules is None else replace(each.tried, rules=rules)
        done[each.id] = _computed(each, usual_ones, policies.get(each.id))
    return list(done.values())


def _computed(each: Measured, tried: TriedPolicies, policy: Policy | None) -> Measured:
    """Return a conversation with its figures under `policy`, or under all `tried` policies if
    `policy` is None. Stored figures are used if they have the policy.
    """
    assert each.figures is not None
    if policy is not None:
        policy = measured(policy)
        if tried == each.tried and each.tally(policy) is not None:
            return each
        tried = tried_policies([policy], tried.rules)
    try:
        history = recall_history(each.id, tried.kind.estimator, latest=MEASURED_MAX)
    except ChatMemoryError:
        return each._replace(figures=None)
    own = each.policy if _decides(each.policy) else None
    figures = figures_of(history.newest(each.figures.messages), tried, own)
    return each._replace(figures=figures, tried=tried)


def answers_of(policy: Policy | None, tried: TriedPolicies) -> bool:
    """Return whether the stored figures of a conversation with this `policy` would include all
    policies in `tried`, once the figures are up to date.

    Stored figures are about the kind of `policy`, with different limits and options. If `policy` is
    None, the kind of `tried` is assumed.
    """
    kind = policy.enforced() if can_decide(policy) else None
    own = tried_of_kind(kind or tried.kind, (), tried.rules)
    is_alike = own.kind.estimator == tried.kind.estimator and not tried.also
    is_usual = tried.rules == ChosenPrices.read({}).rules
    return is_alike and is_usual and set(tried.variants) <= set(own.variants)


def kept_figures(ids: Collection[str]) -> Iterator[Measured]:
    """Yield conversations with their stored figures, sorted by ID. `figures` is None if no figures
    are stored.
    """
    return (row.measured for row in _kept(ids))


class _Row(NamedTuple):
    """A conversation with its stored figures. `is_current` means that they are of the newest step.

    `said` is the number of messages in the history now. `measured.said` is the number when the
    figures were computed.
    """

    measured: Measured
    is_current: bool
    said: int


def _kept(ids: Collection[str]) -> Iterator[_Row]:
    version, rules = FiguresKeeper().version(), ChosenPrices.read({}).rules
    for stored in _stored(sorted(ids)):
        memories = [memory for memory, _, _ in stored]
        by_clients = of_clients(memories)
        for memory, row, is_refused in stored:
            known = row if row is not None and row.version == version else None
            figures, tried, said = _read(known, rules)
            found = Measured(
                memory.pk,
                figures,
                tried,
                memory.policy,
                DecidedBy.CLIENT if memory.pk in by_clients else DecidedBy.POLICY,
                REFUSING if is_refused else "",
                str(known.step) if known else "",
                memory.said_count if said is None else said,
            )
            is_current = known is not None and known.step == memory.last_step
            yield _Row(found, is_current, memory.said_count)


# The row of a conversation, its stored figures, and whether a provider in use would refuse it
_Stored = tuple[Memory, KeptRow | None, bool]


def _stored(ids: Sequence[str]) -> Iterator[list[_Stored]]:
    """Yield lists of rows of conversations, in the order of `ids`."""
    refused = _refused()
    if len(ids) == 1 and refused is None:  # as for each page of a conversation
        memory = read_memory(ids[0])
        yield [(memory, FiguresKeeper().row(memory), False)] if memory else []
        return
    condition = Q(id="") if refused is None else refused  # no id is empty
    for first in range(0, len(ids), ROWS_AT_ONCE):
        some = database.in_list("id", ids[first : first + ROWS_AT_ONCE])
        rows = Memory.objects.filter(some).select_related("keptcost").order_by("id")
        memories = rows.annotate(is_refused=_is(condition))
        yield [(each, getattr(each, "keptcost", None), each.is_refused) for each in memories]


def _is(condition: Q) -> ExpressionWrapper[Q]:
    return ExpressionWrapper(condition, output_field=BooleanField())


def _refused() -> Q | None:
    """Return the database condition for memories that a provider in use would reject; None if
    rejections are not counted.
    """
    flag = next((each for each in flags() if each.name == "refused"), None)
    return flag.where if flag is not None and flag.counts else None


class _Read(NamedTuple):
    """The figures of a stored row, the policies tried, and the number of messages at that time. All
    are None for an altered row.
    """

    figures: Figures | None = None
    tried: TriedPolicies | None = None
    said: int | None = None


def _read(row: KeptRow | None, rules: CacheRules) -> _Read:
    return _Read() if row is None else _parsed(row.content, rules)


@lru_cache(maxsize=4)
def _version(prices: ChosenPrices, words: Words) -> str:
    priced = [_priced(name, prices.usual) for name in PRICED]
    return version_of(RULES, FIGURES_RULES, INCIDENT_RULES, OVER, priced, prices.rules, words)


@lru_cache(maxsize=64)
def _parsed(content: str, rules: CacheRules) -> _Read:
    """Parse the figures of a stored row. The latest results are cached, for pages that are loaded
    repeatedly.
    """
    with suppress(ValueError, TypeError, LookupError, AttributeError):
        values = json.loads(content)
        tried, said = _tried(values.pop("kind"), rules), int(values.pop("said"))
        return _Read(Figures.from_dict(values), tried, said) if tried else _Read()
    return _Read()


@lru_cache(maxsize=256)
def _tried(kind: str, rules: CacheRules) -> TriedPolicies | None:
    try:
        policy = policies_from_text(kind)[0]
    except InvalidValue:
        return None
    return tried_of_kind(policy, (), rules) if policy else None
