"""What an index of exact terms holds of the facts that were needed again, beside three controls.

    python -m benchmarks.index_controls FILES… --limit 3000 --terms 50

The controls list as many terms of the same messages: chosen at random, by frequency (each message
counts alike), and the latest first. A window without an index has the same limit.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path
from typing import Any

from chatmemory.printing import Printer
from chatmemory.recall import Recall, histories_for, index, recalls_of
from chatmemory.recall.cost import Prices
from chatmemory.recall.facts import NO_WORDS
from chatmemory.recall.index import Row
from chatmemory.recall.sessions import said_messages
from chatmemory.reports.files import named_transcripts
from chatmemory.windows.policies import Policy
from chatmemory.windows.written_policies import policies_from_text

WEIGHTS = dict(index._WEIGHTS)


def at_random(row: Row) -> Any:
    return blake2b(row.term.encode()).digest()


def latest(row: Row) -> Any:
    return -row.last, row.term


CHOICES: dict[str, tuple[Callable[[Row], Any], dict[Any, int]]] = {
    "product": (index.rank, WEIGHTS),
    "random": (at_random, WEIGHTS),
    "frequency": (index.rank, {}),
    "latest": (latest, WEIGHTS),
}


@contextmanager
def chosen_by(name: str) -> Iterator[None]:
    rank, weights = CHOICES[name]
    before = index.rank, dict(index._WEIGHTS)
    index.rank = rank  # type: ignore[assignment]
    index._WEIGHTS.clear()
    index._WEIGHTS.update(weights)
    try:
        yield
    finally:
        index.rank = before[0]
        index._WEIGHTS.update(before[1])


def recalls_by_choice(
    files: Sequence[Path], limit: int, terms: int
) -> Iterator[tuple[str, Recall]]:
    """Yield what a window without an index holds, as "plain", then the sums of each choice."""
    text = f"token_window:{limit},low_water=0.5"
    plain, indexed = policies_from_text(f"{text},{text},index_terms={terms}")
    histories = [
        histories_for(said_messages(each.messages, each.session), [plain], NO_WORDS)[0]
        for _, each in named_transcripts(files, "auto", Printer(print, sys.stderr.write))
    ]

    def total(policy: Policy | None) -> Recall:
        found = Recall(policy)
        for history in histories:
            found = found.plus(recalls_of([history], [policy])[0])
        return found

    yield "plain", total(plain)
    for name in CHOICES:
        with chosen_by(name):
            row = total(indexed)
        yield name, row


def named_by_choice(files: Sequence[Path], limit: int, terms: int) -> list[int]:
    """Return how many lost facts the index of each choice names."""
    found = dict(recalls_by_choice(files, limit, terms))
    return [found[name].by_index for name in CHOICES]


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, default=3000)
    parser.add_argument("--terms", type=int, default=50)
    asked = parser.parse_args()
    prices = Prices(Decimal(1), Decimal("0.1"), None)
    print(f"{'terms':<10} {'recalls':>8} {'held':>8} {'index':>8} {'both':>8} {'cost':>6}")
    for name, row in recalls_by_choice(asked.files, asked.limit, asked.terms):
        both, cost = row.held + row.by_index, row.relative_cost(prices) or 0
        numbers = f"{row.recalls:>8,} {row.held:>8,} {row.by_index:>8,} {both:>8,} {cost:>6.3f}"
        print(f"{name:<10} {numbers}")


if __name__ == "__main__":
    main()
