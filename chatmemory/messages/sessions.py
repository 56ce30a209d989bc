"""Sessions of coding agents: all messages, and the compactions of the agent.

When its window is full, an agent replaces messages by a summary. This is a compaction. A position
is the index of a message in the session, from 0. The summaries are among the messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from chatmemory.messages.message import ChatMessage


@dataclass(frozen=True)
class Compaction:
    """The replacement of messages by a summary in a session. All messages are given by their
    positions.

    - `summary`: the summary.
    - `covered`: the replaced messages. An earlier summary can be among them.
    - `window`: what the agent saw right after the compaction, in order, with the summary.
    - `trigger`: why the agent compacted, such as "auto"; None if unknown.
    - `tokens_before`, `tokens_after`: the tokens of the whole prompt, as the agent or the provider
      counted them; None if unknown.
    - `is_opaque`: whether only the provider can read the summary.
    """

    summary: int
    covered: tuple[int, ...]
    window: tuple[int, ...]
    trigger: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    is_opaque: bool = False

    @property
    def kept(self) -> tuple[int, ...]:
        """The positions of the messages in `window`, without the summary."""
        return tuple(position for position in self.window if position != self.summary)

    def after(self, window: Sequence[int]) -> list[int]:
        """Return the window after the compaction, as positions of messages in the session. `window`
        is the window before the compaction.

        The result has the summary, and those messages of `window` that the agent kept.
        """
        expected, in_window = set(self.kept), set(window)
        stay = [position for position in window if position in expected]
        ahead = len(in_window.intersection(self.window[: self.window.index(self.summary)]))
        return [*stay[:ahead], self.summary, *stay[ahead:]]


@dataclass(frozen=True)
class Session:
    """The messages of an agent's session, and its compactions in order.

    - `by_programs`: positions of messages that a program wrote in the name of the user or the
      model, such as reminders.
    - `cleared`: maps the position of a cleared tool result to the number of messages that the
      session had when the result was cleared.
    - `prompts`: maps the position of an answer to the tokens of its prompt, as the provider counted
      them.
    """

    messages: Sequence[ChatMessage]
    compactions: tuple[Compaction, ...] = ()
    by_programs: frozenset[int] = frozenset()
    cleared: Mapping[int, int] = field(default_factory=dict)
    prompts: Mapping[int, int] = field(default_factory=dict)

    @property
    def summaries(self) -> frozenset[int]:
        return frozenset(each.summary for each in self.compactions)

    def windows(self) -> Iterator[tuple[Compaction, list[int]]]:
        """Yield each compaction with the window right after it, as positions of messages.

        A message that left at an earlier compaction does not return, even if `Compaction.window`
        lists it again.
        """
        window: list[int] = []
        end = 0
        for each in self.compactions:
            window = each.after([*window, *range(end, each.summary)])
            end = each.summary + 1
            yield each, window
