"""docs/strategies.md has what was recorded."""

from __future__ import annotations

from benchmarks.strategies.corpora import CODING, TAU
from benchmarks.strategies.drawing import draw
from benchmarks.strategies.page import BEFORE, FIRST, IMAGES, NEAR, PAGE, parts, scatter
from benchmarks.strategies.recorded import recorded
from chatmemory.strategies import STRATEGIES


def test_the_page_has_the_recorded_figures():
    """`python -m benchmarks.strategies.page` writes them again."""
    text = PAGE.read_text("utf-8")
    for name, made in parts().items():
        assert f"<!-- made: {name} -->\n{made}\n<!-- end -->" in text, name


def test_the_plots_have_a_dot_for_each_strategy(tmp_path):
    for corpus in (TAU, CODING):
        plot, file = scatter(corpus), tmp_path / f"{corpus.name}.svg"
        draw(file, plot)
        drawn = file.read_text("utf-8")
        assert (IMAGES / f"strategies-{corpus.name}.svg").read_text("utf-8") == drawn
        assert [each.label in drawn for each in STRATEGIES] == [True] * len(STRATEGIES)
        assert len({(each.cost, each.share) for each in plot.dots}) == len(STRATEGIES)


def test_the_first_measurement_is_repeated_within_two_percent():
    """With the facts of that commit. LlamaIndex's cost of coding sessions is explained there."""
    rows = {corpus: recorded()["corpora"][corpus][BEFORE] for corpus in ("tau", "coding")}
    far = set()
    for name, (tau, tau_cost, coding, coding_cost) in FIRST.items():
        for corpus, held, cost in (("tau", tau, tau_cost), ("coding", coding, coding_cost)):
            row = rows[corpus][name]
            if abs(row["held"] - held) > NEAR * held:
                far.add((corpus, name, "held"))
            if abs(row["relative_cost"] - cost) > NEAR * cost + 0.005:
                far.add((corpus, name, "cost"))
    assert far == {("coding", "llama_index", "cost")}
