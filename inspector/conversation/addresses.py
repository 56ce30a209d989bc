"""The URLs of a conversation page: at a step, with a selected message, or as the live page. The
live page shows the newest step, and moves on when messages arrive.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from urllib.parse import urlencode

from django.urls import reverse

from chatmemory.reading.rows import MemoryRow
from inspector.conversation.links import chosen, query_of
from inspector.shell.highlights import Highlights
from inspector.shell.room import View


class Addresses:
    """Builds the URLs of a conversation page.

    - `tried` are the URL parameters of the simulation or replay that the page shows; empty without
      a simulation or replay. Links to other steps keep these parameters.
    - `is_lasting` is True if the link to the live page keeps the parameters in `tried`, too. The
      live page shows the newest step.
    - `first_step` is 0, and `previous_step` is the number of the step before the shown step. Both
      are None at step 0.
    - `next_step` is the number of the step after the shown step; None at the newest step.
    """

    def __init__(self, view: View, is_posted: bool = False) -> None:
        self._view, self._is_posted = view, is_posted
        self.state = state = view.state
        self.at, self.msg, self.is_live = state.step.n, state.query.msg, state.is_live
        self.tried, self.is_lasting = view.tried, view.is_lasting
        self.previous_step = self.at - 1 if self.at > 0 else None
        self.first_step = 0 if self.at > 0 else None
        self.next_step = self.at + 1 if self.at < state.memory.last_step else None

    @property
    def memory(self) -> MemoryRow:
        return self.state.memory

    @property
    def marks(self) -> Highlights:
        return self.state.shown.marks

    @cached_property
    def kept_parameters(self) -> dict[str, str]:
        """The URL parameters that links of the page keep. They name the unfolded sections, and what
        is highlighted, such as a searched phrase.
        """
        opened = self.state.query.open
        return {**({"open": opened_text(opened)} if opened else {}), **self.marks.kept}

    @property
    def selected_message(self) -> int | None:
        """The number of the selected message; None if a draft message or nothing is selected."""
        return self.msg if self.msg and self.msg > 0 else None

    @property
    def chosen_query(self) -> str:
        """The URL parameter of the selected message or draft message, as text: `msg=25`, or
        `draft=1` for a draft message. "" if nothing is selected.
        """
        return urlencode(chosen(self.msg))

    @cached_property
    def url(self) -> str:
        """The URL of the live page without parameters."""
        return reverse("inspector:conversation", args=[self.memory.id])

    def _with_query(self, **parameters: int | str | None) -> str:
        return self.url + query_of(parameters)

    @property
    def stored_url(self) -> str:
        """The URL of the page at the shown step, without a simulation."""
        at = None if self.is_live else self.at
        return self._with_query(at=at, msg=self.selected_message, **self.kept_parameters)

    @cached_property
    def live_url(self) -> str:
        """The URL of the live page with the selected message. The URL keeps the simulation or
        replay if `is_lasting` is True.
        """
        tried = self.tried if self.is_lasting else {}
        return self._with_query(**tried, **chosen(self.msg), **self.kept_parameters)

    @property
    def follows(self) -> bool:
        """Whether the page moves to the newest step when messages arrive. False for an older step
        or a simulation.
        """
        return self.is_live and not self.tried

    @property
    def pinned_url(self) -> str:
        """The URL that keeps showing this step when new messages arrive."""
        return self._with_query(at=self.at, msg=self.msg, **self.kept_parameters)

    @property
    def followed_url(self) -> str:
        """The URL of the live page with the selected message, without a simulation."""
        return self._with_query(msg=self.selected_message, **self.kept_parameters)

    def link(
        self, at: int, keeps: bool = True, msg: int | None = None, **parameters: int | str | None
    ) -> str:
        """Return the URL of this page at step `at`. The arguments have the same meaning as in
        `query`.
        """
        return self.url + self.query(at, keeps, msg, **parameters)

    def query(
        self, at: int, keeps: bool = True, msg: int | None = None, **parameters: int | str | None
    ) -> str:
        """Return the query string of this page at step `at`, with "?"; "" for the live page without
        parameters.

        - `msg` selects a message, or a draft message if the number is negative.
        - `parameters` are further URL parameters.
        - If `keeps` is False, the query string leaves out the highlights, such as a searched
          phrase.

        The query string always keeps the simulation, the unfolded sections and the comparison with
        another step, unless `parameters` change them.
        """
        stays_live = self.is_live and at == self.at
        place = {"at": None if stays_live else at} | chosen(msg)
        if "with" not in parameters:
            compared = {"with": self.state.query.other, "past": self.state.query.past}
            parameters = {**compared, **parameters}
        kept = self.kept_parameters
        kept = kept if keeps else {name: kept[name] for name in ("open",) if name in kept}
        kept_or_given = {name: parameters.pop(name, text) for name, text in kept.items()}
        return query_of({**place, **parameters, **self.tried, **kept_or_given})

    @cached_property
    def _kept_query(self) -> str:
        """The end that the query strings of all cells have in common."""
        return self.query(self.at + 1).partition("&")[2]

    def fold_link(self, name: str) -> str:
        """Return the URL of this page with a section unfolded, or folded if the section is unfolded
        now.
        """
        opened = opened_text(self.state.query.open ^ {name})
        return self.link(self.at, msg=self.msg, open=opened)

    def step_link(self, at: int) -> str:
        """Return the URL of this page at step `at`. The selected message and the comparison with
        another step stay the same.
        """
        return self.link(at, msg=self.msg)

    def cell_link(self, step: int, msg: int | None) -> str:
        """Return the URL of a cell of the timeline: this page at `step`, with the message `msg`
        selected. With None, no message is selected. A negative `msg` selects a draft message at the
        shown step.

        To be short, the URL may be only a query string.
        """
        if msg and msg < 0:
            return self.link(self.at, msg=msg)
        at = "" if self.is_live and step == self.at else f"at={step}"
        parts = (at, f"msg={msg}" if msg else "", self._kept_query)
        query = "?" + "&".join(filter(None, parts))
        return self.url + query if self._is_posted else query


def opened_text(names: Iterable[str]) -> str:
    """Return the value of the URL parameter that unfolds the sections with these names. The value
    has the names in alphabetical order, separated by spaces.
    """
    return " ".join(sorted(names))
