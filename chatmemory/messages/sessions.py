"""Sessions of agents: all messages, and the windows that the agent saw.

An agent whose window is full replaces messages by a summary, which is called a compaction. A
session has the messages in order, summaries included. Each compaction has the messages that it
replaced and the window that the agent saw afterwards. A position is an index into the messages,
from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from chatmemory.messages.message import ChatMessage


@dataclass(frozen=True)
class Compaction:
    """The replacement of messages by a summary in a session.

    `summary` is the position of the summary. `covered` are the positions of the replaced messages,
    which may include an earlier summary. `window` has the positions of the messages that the agent
    saw right afterwards, in order, the summary included. `trigger` says why, such as "auto".
    `tokens_before` and `tokens_after` are the tokens of the whole prompt, as the agent or the
    provider counted them, or None. `is_opaque` is True if only the provider can read the summary.
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
        """The positions of the messages, other than the summary, that were in the window
        afterwards.
        """
        return tuple(position for position in self.window if position != self.summary)

    def after(self, window: Sequence[int]) -> list[int]:
        """Return the window after the compaction, given the window before the compaction. Both are
        positions of messages.

        Only messages of the given window can stay, in the same order. The result equals the field
        `window` unless the agent put messages back or reordered them.
        """
        expected, in_window = set(self.kept), set(window)
        stay = [position for position in window if position in expected]
        ahead = len(in_window.intersection(self.window[: self.window.index(self.summary)]))
        return [*stay[:ahead], self.summary, *stay[ahead:]]


@dataclass(frozen=True)
class Session:
    """The messages of an agent's session, and its compactions in order.

    `by_programs` are the positions of messages that a program wrote in the name of the user or the
    model, such as reminders. `cleared` maps the position of a tool result to a number: once the
    session had that many messages, the agent no longer saw the result's text. `prompts` maps the
    position of an answer to the tokens of its prompt, as the provider counted them.
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
        """Yield each compaction, with the window after the compaction as positions of messages. The
        window leaves out messages that the agent put back later.
        """
        window: list[int] = []
        end = 0
        for each in self.compactions:
            window = each.after([*window, *range(end, each.summary)])
            end = each.summary + 1
            yield each, window
