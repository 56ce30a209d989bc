"""The timeline of a conversation: a chart of all steps, and a strip with a cell for each step
around the shown step (the "playhead").

Styles and templates use the word "tape" for the timeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.conversation.looks import css_of
from inspector.conversation.measures import Measure
from inspector.conversation.timeline.chart import EVICTIONS, HEIGHT, chart_of
from inspector.conversation.timeline.labels import axis
from inspector.conversation.timeline.strip import Cell, brackets, flag_of, strip_labels
from inspector.shell.state import ConversationState


class Timeline:
    """Presents the chart of all steps, and the strip with a cell for each step from `first` to
    `last`.

    - `span` is the number of steps in the strip, and `before` the number of steps before the strip.
    - `is_whole` is True if the strip has all steps.
    - `at` is the position of the playhead: the shown step plus the number of drafts.
    - `marked` are the steps at which the fact of the shown incident left memory and was repeated.
      Empty if no incident is shown.
    - `band` is an SVG path of the steps that a room (feature) highlights, and `band_words`
      describes these steps.
    - `brackets` is an SVG path that marks the steps whose messages a summary replaced.
    - `floor` is the y of memory's base line in the chart. Evictions are drawn below this line, but
      only if `is_whole` is False.

    The argument `dots` maps a step to the CSS class of its dot. The dots mark the steps at which
    the fact of an incident was said, left memory and was repeated.
    """

    def __init__(
        self,
        state: ConversationState,
        measure: Measure,
        strip: Sequence[Cell],
        dots: Mapping[int, str],
    ) -> None:
        self.chart = chart_of(state, measure)
        axes = ", each with an axis of its own" if self.chart.is_split else ""
        self.words = f"Said and in memory after each step, in {measure.unit}{axes}"
        self.axis = axis(self.chart.columns)
        self.cells, self.span = strip, len(strip)
        self.first, self.last = strip[0].step, strip[-1].step
        self.before = self.first - 1
        self.is_whole = self.span == self.chart.columns
        self.floor, self.height = HEIGHT, HEIGHT if self.is_whole else HEIGHT + EVICTIONS
        self.css = css_of(
            not self.is_whole and "tape__plot--part", self.chart.is_split and "tape__plot--split"
        )
        self.at = state.step.n + len(state.simulation.drafts)
        self.labels = strip_labels(strip, self.at, flag_of(state))
        self.band = "".join(f"M{begin - 1} 2H{end}" for begin, end in state.shown.marks.band)
        self.band_words = state.shown.marks.words
        self.brackets = brackets(state)
        self.is_simulated = state.is_simulated
        self.marked = [step for step, dot in dots.items() if dot != "cell__was"]
