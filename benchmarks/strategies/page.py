"""The tables and plots of docs/strategies.md, made of what was recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.strategies.corpora import CODING, GLAIVE, ROOT, TAU, Corpus
from benchmarks.strategies.drawing import Dot, Scatter, draw
from benchmarks.strategies.recorded import recorded
from chatmemory.strategies import STRATEGIES, Settings, Strategy

PAGE = ROOT / "docs/strategies.md"
IMAGES = ROOT / "docs/images"
BEFORE = "dcf347be"  # the commit whose facts the first measurement counted
# That measurement, by hand: facts held of 1,694 and 721, and their costs.
FIRST = {
    "message_window": (1644, 1.80, 639, 0.82),
    "token_window": (1631, 1.30, 720, 1.83),
    "token_window_in_blocks": (1565, 0.93, 719, 0.66),
    "langchain_trim": (1549, 1.02, 684, 0.75),
    "langchain_summary": (1674, 1.17, 719, 0.56),
    "langchain_clear": (1614, 1.12, 716, 0.58),
    "openai_compaction": (1464, 0.97, 634, 0.42),
    "google_adk": (1518, 0.98, 686, 0.68),
    "llama_index": (1639, 1.03, 709, 0.68),
    "agent_framework": (1692, 1.52, 681, 1.54),
}
NEAR = 0.02

Row = Mapping[str, Any]


def write() -> None:
    """Write the made parts of the page, and the plots."""
    text = PAGE.read_text("utf-8")
    for name, lines in parts().items():
        begin, end = f"<!-- made: {name} -->\n", "<!-- end -->"
        before, rest = text.split(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}{lines}\n{end}{after}"
    PAGE.write_text(text, "utf-8")
    for corpus in (TAU, CODING):
        draw(IMAGES / f"strategies-{corpus.name}.svg", scatter(corpus))


def parts() -> dict[str, str]:
    """Return the made parts of the page by name."""
    return {
        "strategies": "\n".join(_about()),
        "tau and coding": "\n".join(_two("own")),
        "glaive": "\n".join(_one(GLAIVE)),
        "alike": "\n".join(_two("alike")),
        "summaries": "\n".join(_stand_ins()),
        "before": "\n".join(_before()),
    }


def scatter(corpus: Corpus) -> Scatter:
    rows = _rows(corpus, "own")
    dots = [
        Dot(
            each.label,
            rows[each.name]["relative_cost"],
            _share(rows[each.name]),
            not each.package,
        )
        for each in STRATEGIES
        if each.name in rows
    ]
    return Scatter(f"{corpus.title}: facts held against cost", dots)


def _rows(corpus: Corpus, run: str) -> Mapping[str, Row]:
    found: Mapping[str, Row] = recorded()["corpora"].get(corpus.name, {}).get(run, {})
    return found


def _share(row: Row) -> float:
    return row["held"] / row["recalls"] if row["recalls"] else 1.0


def _named(strategy: Strategy) -> str:
    version = recorded()["versions"].get(strategy.package, "")
    label = f"[{strategy.label}]({strategy.page})" if strategy.page else strategy.label
    return f"{label}, {strategy.package} {version}" if version else label


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> Iterator[str]:
    yield "| " + " | ".join(heading) + " |"
    yield "|" + "|".join(["---"] * left + ["--:"] * (len(heading) - left)) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _about() -> Iterator[str]:
    example = recorded()["example"]
    rows = (
        (
            _named(each),
            f"`{_call(each)}`",
            each.like,
            _lost(example, each.name),
        )
        for each in STRATEGIES
    )
    return _table(
        ("strategy", "call, with 4,000 tokens and 20 messages", "in our terms", "lost first"),
        rows,
        4,
    )


def _call(strategy: Strategy) -> str:
    return strategy.shown_call(Settings())


def _lost(example: Mapping[str, str], name: str) -> str:
    if name not in example:
        return ""
    return f"`{example[name]}`" if example[name] else "nothing"


def _two(run: str) -> Iterator[str]:
    """Yield the table of the two larger corpora."""
    both = [_rows(corpus, run) for corpus in (TAU, CODING)]
    needed = [next(iter(rows.values()), {"recalls": 0})["recalls"] for rows in both]
    heading = (
        "strategy",
        *(f"tau-bench, of {needed[0]:,}", "cost", "with summaries"),
        *(f"coding, of {needed[1]:,}", "cost", "with summaries"),
    )
    rows = (
        [each.label, *_cells(both[0][each.name]), *_cells(both[1][each.name])]
        for each in STRATEGIES
        if each.name in both[0]
    )
    return _table(heading, rows)


def _cells(row: Row) -> list[str]:
    cost, with_summaries = row["relative_cost"], row["relative_cost_with_summaries"]
    more = f"{with_summaries:.2f}" if row["summaries"] else ""
    return [f"{row['held']:,}", f"**{cost:.2f}**" if cost >= 1.5 else f"{cost:.2f}", more]


def _one(corpus: Corpus) -> Iterator[str]:
    rows = _rows(corpus, "own")
    needed = next(iter(rows.values()), {"recalls": 0})["recalls"]
    heading = ("strategy", f"facts held, of {needed:,}", "cost", "with summaries")
    return _table(
        heading,
        ([each.label, *_cells(rows[each.name])] for each in STRATEGIES if each.name in rows),
    )


def _stand_ins() -> Iterator[str]:
    """Yield what summaries would hold: nothing, first sentences, or the recorded ones."""
    heading = ["strategy"]
    columns: list[Mapping[str, Row]] = []
    for corpus in (TAU, CODING):
        heading += [f"{corpus.name}: nothing", "first sentences"]
        columns += [_rows(corpus, "own"), _rows(corpus, "sentences")]
    heading.append("recorded summaries")
    columns.append(_rows(CODING, "recorded"))
    rows = (
        [each.label, *(f"{column[each.name]['held']:,}" for column in columns)]
        for each in STRATEGIES
        if all(each.name in column for column in columns)
    )
    return _table(heading, rows)


def _before() -> Iterator[str]:
    """Yield the first measurement, the same facts measured again, and today's facts."""
    runs = [(corpus, run) for corpus in (TAU, CODING) for run in (BEFORE, "alike")]
    found = [_rows(*each) for each in runs]
    heading = ["strategy"]
    for corpus, recalls in ((TAU, "1,694"), (CODING, "721")):
        today = next(iter(_rows(corpus, "alike").values()), {"recalls": 0})["recalls"]
        heading += [f"{corpus.name}: first, of {recalls}", "again", f"today's, of {today:,}"]
    rows = (
        [each.label, *_compared(each.name, found)]
        for each in STRATEGIES
        if all(each.name in rows for rows in found)
    )
    return _table(heading, rows)


def _compared(name: str, found: Sequence[Mapping[str, Row]]) -> Iterator[str]:
    for place, (before, today) in enumerate((found[:2], found[2:])):
        held, cost = FIRST[name][2 * place : 2 * place + 2]
        again, now = before[name], today[name]
        yield f"{held:,} · {cost:.2f}"
        facts = _marked(again["held"], held, ",")
        yield f"{facts} · {_marked(again['relative_cost'], cost, '.2f')}"
        yield f"{now['held']:,} · {now['relative_cost']:.2f}"


def _marked(found: float, first: float, form: str) -> str:
    """Return a number, in bold if it is farther than 2 % from the first one, which was rounded."""
    text, rounded = format(found, form), 0.005 if "f" in form else 0
    return f"**{text}**" if abs(found - first) > NEAR * first + rounded else text


if __name__ == "__main__":
    write()
