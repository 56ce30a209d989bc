"""The page as a whole: its head, its tape and its links."""

from __future__ import annotations

from functools import cached_property

from django.urls import reverse
from django.utils.http import urlencode

from chatmemory import explain, queries
from chatmemory.explain import Caption
from inspector.conversation.history import HistoryPane
from inspector.conversation.memory import MemoryPane
from inspector.conversation.panel import Answers
from inspector.conversation.state import Moment
from inspector.conversation.timeline import Tape, draw


class ConversationPage(Moment):
    """A moment with what the page shows of it. Raises what a Moment raises."""

    def __init__(
        self,
        memory_id: str,
        at: int | None,
        msg: int | None,
        before: int | None = None,
        after: int | None = None,
        find: str = "",
        other: int | None = None,
    ) -> None:
        super().__init__(memory_id, at, msg, before, after, find)
        self._other = other
        self._pages_history = before is not None or after is not None
        self.samples = queries.tape(memory_id, self.memory.last_step, self.at)

    @cached_property
    def history_pane(self) -> HistoryPane:
        return HistoryPane(self)

    @cached_property
    def memory_pane(self) -> MemoryPane:
        return MemoryPane(self)

    @cached_property
    def answers(self) -> Answers:
        return Answers(self, self._other)

    @cached_property
    def tape(self) -> Tape:
        return draw(
            self.samples,
            at=self.at,
            limit=self.limit,
            in_window=self.in_window,
            unit=self.unit,
            selected=self.msg,
            hits=self.hits,
        )

    @property
    def pane(self) -> str:
        """The one that a phone shows first: a place in the history, an answer, or memory."""
        if self._pages_history:
            return "history"
        return "why" if self.msg or self.find else "memory"

    # The head of the page

    @property
    def policy_name(self) -> str:
        return explain.policy_name(self.policy)

    @property
    def fill(self) -> float:
        """The gauge's bar in percent."""
        return min(100.0, round(100 * self.load / self.limit, 1)) if self.limit else 0

    @property
    def is_over(self) -> bool:
        return self.limit is not None and self.load > self.limit

    @property
    def said_count(self) -> int:
        return self.view.step.said_count if self.view else 0

    @property
    def history_load(self) -> int:
        """All that was said by now, in the policy's unit."""
        return next((cell.history for cell in self.samples if cell.step == self.at), 0)

    @property
    def forgotten_load(self) -> int:
        return max(0, self.history_load - self.load)

    @cached_property
    def caption(self) -> Caption:
        if self.view is None:
            return Caption(
                "Nothing has been said yet", detail="Step forward to see the first message."
            )
        return explain.caption(self.view)

    @property
    def new_id(self) -> str:
        """What a simulation is saved as, unless another name is written."""
        return f"{self.memory.id[:200]}-from-{self.at}"

    # Its links

    @property
    def previous_step(self) -> int | None:
        return self.at - 1 if self.at > 0 else None

    @property
    def next_step(self) -> int | None:
        return self.at + 1 if self.at < self.memory.last_step else None

    @cached_property
    def evictions(self) -> tuple[int | None, int | None]:
        """The nearest steps at which something left, before and after this one."""
        return queries.evictions_around(self.memory.id, self.at)

    @cached_property
    def url(self) -> str:
        """The page at the live end; links on it add the step, the message and the search."""
        return reverse("conversation", args=[self.memory.id])

    @property
    def step_url(self) -> str:
        """The page as it stands here, without what is chosen or tried."""
        return self.url if self.is_live else f"{self.url}?at={self.at}"

    @property
    def live_url(self) -> str:
        """The page at the live end with what is chosen and searched on it."""
        query = {name: value for name, value in (("msg", self.msg), ("find", self.find)) if value}
        return f"{self.url}?{urlencode(query)}" if query else self.url

    @property
    def find_kept(self) -> str:
        """What Clear leaves: the search while a message is chosen, then nothing."""
        return self.find if self.msg else ""

    @property
    def find_query(self) -> str:
        """What a link adds to keep the search."""
        return f"&{urlencode({'find': self.find})}" if self.find else ""

    def link(self, at: int, find: str | None = None, **chosen: int | None) -> str:
        """This page at a step, with a message or a place in the history, the search kept."""
        query: dict[str, str | int] = {"at": at, **{name: n for name, n in chosen.items() if n}}
        phrase = self.find if find is None else find
        if phrase:
            query["find"] = phrase
        return f"{self.url}?{urlencode(query)}"
