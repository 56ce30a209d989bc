"""Measure strategies, and write docs/strategies.md.

    make strategies                       # the recorded corpora
    make strategies FILES="chats.json"    # your own conversations
    make strategies RECORD=1              # and write the tables and plots of the docs

All costs are at an input price of 1 and a cached price of 0.1, sums over conversations. `own` are
strategies that count tokens as they do by default, `alike` those that get our counter if they take
one. With another word than 1 in RECORD, the `alike` rows are kept under that name: so the rows of
an older commit are recorded, whose recall had other facts.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.strategies.corpora import CORPORA, conversations_in
from benchmarks.strategies.example import lost_first
from benchmarks.strategies.page import write
from benchmarks.strategies.recorded import record, recorded
from chatmemory.messages.estimators import estimator_for
from chatmemory.printing import Printer
from chatmemory.recall.cost import NO_BOUNDS, Prices
from chatmemory.reports.strategies import StrategyOptions, print_strategies, sums_of, values_of
from chatmemory.strategies import Conversation, Settings, StandIn, chosen_strategies
from chatmemory.windows.policies import DEFAULT_ESTIMATOR

PRICES = Prices(Decimal(1), Decimal("0.1"))
RECORD = os.environ.get("RECORD", "")
SUMMARIZING = "langchain_summary,openai_compaction,google_adk"
KEPT = ("recalls", "held", "calls", "summaries", "relative_cost", "relative_cost_with_summaries")


def options_for(settings: Settings, names: str = "", stand_in: StandIn = StandIn.NOTHING) -> Any:
    return StrategyOptions(chosen_strategies(names), settings, stand_in, PRICES, NO_BOUNDS)


def measured(
    conversations: Sequence[Conversation], options: StrategyOptions, title: str
) -> dict[str, dict[str, Any]]:
    """Print a table, and return its rows by the names of strategies."""
    start = time.process_time()
    sums = sums_of(conversations, options)
    print(f"\n{title} ({time.process_time() - start:.0f} s)", flush=True)
    print_strategies(sums, options, Printer(print, print))
    found = {}
    for each in options.strategies:
        if each.name in sums:
            values = values_of(each, sums[each.name], PRICES)
            found[each.name] = {name: values[name] for name in KEPT}
    return found


def measure_corpora() -> dict[str, Any]:
    """Measure all corpora, and return what is recorded of them."""
    known = recorded()
    is_today = RECORD in ("", "1")
    for corpus in CORPORA:
        settings = Settings(corpus.tokens, corpus.messages, estimator_for(DEFAULT_ESTIMATOR))
        conversations = list(corpus.conversations())
        rows = known["corpora"].setdefault(corpus.name, {})
        alike = options_for(replace(settings, counts_alike=True))
        name = "alike" if is_today else RECORD
        rows[name] = measured(conversations, alike, f"{corpus.title}, {name}")
        if not is_today:
            continue
        rows["own"] = measured(conversations, options_for(settings), f"{corpus.title}, own")
        for stand_in in (StandIn.SENTENCES, StandIn.RECORDED):
            options = options_for(settings, SUMMARIZING, stand_in)
            rows[stand_in.value] = measured(conversations, options, f"{corpus.title}, {stand_in}")
    return known


def measure_files(files: Iterable[str]) -> None:
    conversations = list(conversations_in([Path(each) for each in files]))
    measured(conversations, options_for(Settings()), ", ".join(files))


def main() -> None:
    if files := sys.argv[1:]:
        measure_files(files)
        return
    found = measure_corpora()
    if not RECORD:
        return
    if RECORD == "1":
        packages = {each.package: each.version for each in chosen_strategies("") if each.package}
        found |= {"versions": packages, "example": lost_first()}
    record(found)
    if RECORD == "1":
        write()


if __name__ == "__main__":
    main()
