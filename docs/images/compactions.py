"""Write the figures and the plot of docs/compaction.md from the sessions of agents.

.venv/bin/python -m docs.images.compactions FILE…
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.plots import svg, words
from benchmarks.record import write_between
from chatmemory.printing import Printer
from chatmemory.recall.compactions import Level, corpus_evidence
from chatmemory.reports.compactions import Total, sessions_of

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "compaction.md"
PLOT = FOLDER / "compaction.svg"
BEGIN, END = "<!-- figures: python -m docs.images.compactions -->", "<!-- end of figures -->"
WIDTH, LEFT, PANEL, GAP, TOP, ROW = 760, 168, 268, 28, 84, 26
DRAWN = ("all", "told")
TITLE = "Exact terms needed again, and what holds them"


def sums_of(files: Sequence[Path]) -> dict[str, Total]:
    """Return the sums of all compactions in these files, by level."""
    printer = Printer(print, sys.stderr.write)
    corpus = corpus_evidence(list(sessions_of(files, "auto", printer)))
    sums = {level.value: Total() for level in Level}
    for _, found in corpus.found:
        if not found.why_left_out:
            for level in Level:
                sums[level].add(found, level)
    return sums


def ways(total: Total) -> dict[str, int]:
    """Return how many of the needed terms each way holds."""
    return {
        "the summary": total.held,
        **{f"+ {terms} terms": held for terms, held in total.appended.items()},
        **{f"last {tokens:,} tokens": held for tokens, held in total.tail.items()},
    }


def table(sums: Mapping[str, Total]) -> str:
    """Return the figures as a table of Markdown."""
    names = list(ways(sums["all"]))
    head = ["level", "compactions", "needed", *names]
    rows = [
        [level, total.compactions, total.needed, *ways(total).values()]
        for level, total in sums.items()
    ]
    rule = ["---", *["--:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in [head, rule, *rows])


def bars(sums: Mapping[str, Total]) -> str:
    """Return the plot: a panel for each level, a bar for each way."""
    drawn = {level: sums[level] for level in DRAWN}
    described = ". ".join(
        f"{level}, of {total.needed}: "
        + ", ".join(f"{name} {held}" for name, held in ways(total).items())
        for level, total in drawn.items()
    )
    height = TOP + ROW * len(ways(sums["all"])) + 12
    parts = [
        words(20, TOP + ROW * row + 13, name, "value") for row, name in enumerate(ways(sums["all"]))
    ]
    for place, (level, total) in enumerate(drawn.items()):
        parts += _panel(LEFT + (PANEL + GAP) * place, level, total)
    return svg(TITLE, f"{described}.", (WIDTH, height), parts)


def _panel(left: int, level: str, total: Total) -> Iterator[str]:
    yield words(left, TOP - 18, f"level {level}, {total.needed} needed", "axis")
    room = PANEL - 88
    for row, (name, held) in enumerate(ways(total).items()):
        y, share = TOP + ROW * row, held / total.needed
        css = "user" if name.startswith("last") else "memory"
        yield f'<rect class="{css}" opacity=".16" x="{left}" y="{y}" width="{room}" height="16"/>'
        width = f"{room * share:.1f}"
        yield f'<rect class="{css}" x="{left}" y="{y}" width="{width}" height="16"/>'
        yield words(left + room + 10, y + 13, f"{held}, {share:.0%}", "value")


def main(files: Sequence[Path]) -> None:
    sums = sums_of(files)
    write_between(BEGIN, END, table(sums), PAGE)
    PLOT.write_text(bars(sums), "utf-8")


if __name__ == "__main__":
    main(list(map(Path, sys.argv[1:])))
