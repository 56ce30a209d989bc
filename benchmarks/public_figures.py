"""Write the tables of docs/choosing-a-window.md and docs/incidents.md from public conversations.

    python -m benchmarks.public_figures tau_bench_airline.openai_chat.json sessions/

The first argument is the file of the airline's conversations, the second the folder with the
coding sessions. All figures but the controls are printed by the commands of the product.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.index_controls import CHOICES, named_by_choice
from benchmarks.record import write_between

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
END = "<!-- end of figures -->"
OPENAI = ("--input", "2.50", "--cached", "0.25")
TENTH = ("--input", "1", "--cached", "0.1")
HALF = "low_water=0.5"
SHORT = [
    "token_window:2000",
    "token_window:4000",
    f"token_window:4000,{HALF}",
    f"token_window:5000,{HALF}",
    "everything",
]
LONG = [
    "token_window:80000",
    f"token_window:80000,{HALF}",
    "token_window:80000,low_water=0.8",
    "everything",
]
SHORT_WITH_INDEX = [
    f"token_window:3000,{HALF}",
    f"token_window:3000,{HALF},index_terms=25",
    f"token_window:3000,{HALF},index_terms=50",
    f"token_window:8000,{HALF}",
]
LONG_WITH_INDEX = [
    f"token_window:20000,{HALF}",
    f"token_window:20000,{HALF},index_terms=50",
    f"token_window:40000,{HALF}",
    f"token_window:40000,{HALF},index_terms=50",
    f"token_window:50000,{HALF}",
    f"token_window:60000,{HALF}",
]
SMALL = ["token_window:1000", "token_window:2000", "token_window:4000"]
KINDS = ("user_repeated", "forced", "call_repeated", "user_supplied", "used_unseen")


class Corpus(NamedTuple):
    name: str
    path: Path


class Controls(NamedTuple):
    """A limit in tokens and a number of terms, for which the choices of terms are compared."""

    corpus: Corpus
    limit: int
    terms: int


def asked(*arguments: str) -> list[dict[str, Any]]:
    """Return the lines of JSON that a command of the product prints."""
    command = [sys.executable, "manage.py", *arguments, "--json"]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in printed.splitlines()]


def recall(corpus: Corpus, policies: Sequence[str], prices: Sequence[str]) -> list[dict[str, Any]]:
    found = asked("recall", str(corpus.path), *prices, "--policies", ",".join(policies))
    return [line for line in found if "policy" in line]


def table(head: Sequence[str], rows: Iterable[Sequence[object]], texts: int = 1) -> str:
    """Return a table of Markdown; all columns but the first `texts` ones are numbers."""
    rule = ["---"] * texts + ["--:"] * (len(head) - texts)
    written = ([f"{each:,}" if isinstance(each, int) else each for each in row] for row in rows)
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in [head, rule, *written])


def cost(row: dict[str, Any]) -> str:
    return f"{row['relative_cost']:.2f}"


def short(airline: Corpus) -> str:
    head = ["policy", "facts held", "lost nothing", "tokens per call", "relative cost"]
    rows = (
        [
            f"`{row['policy']}`",
            row["held"],
            row["nothing_lost"],
            round(row["prompt_tokens"] / row["calls"]),
            cost(row),
        ]
        for row in recall(airline, SHORT, OPENAI)
    )
    return table(head, rows)


def long(coding: Corpus) -> str:
    rows = recall(coding, LONG, OPENAI)
    whole = rows[-1]["prompt_tokens"]
    shares = (
        [f"`{row['policy']}`", row["held"], f"{row['prompt_tokens'] / whole:.2f}", cost(row)]
        for row in rows
    )
    return table(["policy", "facts held", "tokens, of everything", "relative cost"], shares)


def with_index(corpora: Sequence[Corpus]) -> str:
    head = ["conversations", "policy", "needed", "held", "named by the index", "relative cost"]
    rows = [
        [
            corpus.name,
            f"`{row['policy']}`",
            row["recalls"],
            row["held"],
            row["by_index"] if "index" in row["policy"] else "–",
            cost(row),
        ]
        for corpus, policies in zip(corpora, [SHORT_WITH_INDEX, LONG_WITH_INDEX], strict=True)
        for row in recall(corpus, policies, TENTH)
    ]
    return table(head, rows, texts=2)


def controls(compared: Iterable[Controls]) -> str:
    rows = (
        [
            f"{corpus.name}, {limit:,} tokens, {terms} terms",
            *named_by_choice([corpus.path], limit, terms),
        ]
        for corpus, limit, terms in compared
    )
    return table(["lost facts that the index names", *CHOICES], rows)


def incidents(airline: Corpus) -> str:
    totals = (
        (policy, asked("incidents", str(airline.path), "--policy", policy)[-1]["total"])
        for policy in SMALL
    )
    rows = ([f"`{policy}`", *(total[kind] for kind in KINDS)] for policy, total in totals)
    return table(["policy", *(kind.replace("_", " ") for kind in KINDS)], rows)


def write(page: str, name: str, text: str) -> None:
    begin = f"<!-- figures: python -m benchmarks.public_figures ({name}) -->"
    write_between(begin, END, text, DOCS / page)


def main() -> None:
    airline, coding = (
        Corpus(name, Path(given).resolve())
        for name, given in zip(["airline", "coding"], sys.argv[1:], strict=True)
    )
    write("choosing-a-window.md", "short", short(airline))
    write("choosing-a-window.md", "long", long(coding))
    write("choosing-a-window.md", "index", with_index([airline, coding]))
    compared = [
        Controls(airline, 3_000, 25),
        Controls(airline, 3_000, 50),
        Controls(coding, 20_000, 50),
        Controls(coding, 40_000, 50),
    ]
    write("choosing-a-window.md", "controls", controls(compared))
    write("incidents.md", "incidents", incidents(airline))


if __name__ == "__main__":
    main()
