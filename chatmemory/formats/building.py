"""Builds the `Session` of an agent from the records of its file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from chatmemory.formats.packed import Packed
from chatmemory.messages.json_values import JsonDict, JsonMap
from chatmemory.messages.message import AiMessage, ChatMessage, UserMessage
from chatmemory.messages.sessions import Compaction, Session


class SessionBuilder:
    """Builds a `Session`: all messages in order, the agent's current window, and its compactions.

    A position is an index in the list `messages`, from 0. Summaries count as messages.
    """

    def __init__(self) -> None:
        self.messages: Packed[ChatMessage] = Packed()
        self.window: list[int] = []
        self.compactions: list[Compaction] = []
        self._by_programs: set[int] = set()
        self._cleared: dict[int, int] = {}
        self._prompts: dict[int, int] = {}

    def add(self, message: ChatMessage, by_program: bool = False) -> int:
        """Append a message to the session and to its window, and return its position.

        With `by_program`, the agent's program wrote the message, not a person or the model.
        """
        position = len(self.messages)
        self.messages.append(message)
        self.window.append(position)
        if by_program:
            self._by_programs.add(position)
        return position

    def join(self, position: int, part: AiMessage) -> None:
        """Add `part` to the AI message at this position. Some agents write an answer to their file
        in parts.
        """
        whole = self.messages[position]
        assert isinstance(whole, AiMessage)
        self.messages[position] = AiMessage(
            _joined(whole.text, part.text),
            whole.tool_execution_requests + part.tool_execution_requests,
            _joined(whole.thinking, part.thinking),
            _both(part.attributes, whole.attributes),
        )

    def replace(self, position: int, message: ChatMessage) -> None:
        """Replace the message at a position by its newer version in the file."""
        self.messages[position] = message

    def count_prompt(self, position: int, tokens: int) -> None:
        self._prompts[position] = tokens

    def clear(self, positions: Iterable[int]) -> None:
        """Record that the agent cleared the tool results at these positions in its window. The
        messages keep their texts.
        """
        self._cleared.update(dict.fromkeys(positions, len(self.messages)))

    def compact(
        self,
        summary: UserMessage,
        kept: Collection[int] = (),
        ahead: int = 0,
        trigger: str | None = None,
        tokens_before: int | None = None,
        tokens_after: int | None = None,
        is_opaque: bool = False,
    ) -> None:
        """Add a summary that replaces the messages of the window, except those at the positions
        `kept`.

        The first `ahead` kept messages come before the summary, and the rest after it. With
        `is_opaque`, the file has no readable text of the summary. `trigger`, `tokens_before` and
        `tokens_after` are fields of `Compaction`; None if unknown.
        """
        covered = tuple(position for position in self.window if position not in kept)
        stay = [position for position in self.window if position in kept]
        self.window = []
        place = self.add(summary)
        self.window = [*stay[:ahead], place, *stay[ahead:]]
        window = tuple(self.window)
        self.compactions.append(
            Compaction(place, covered, window, trigger, tokens_before, tokens_after, is_opaque)
        )

    def session(self) -> Session:
        """Return the session as built so far. Missing token counts of a compaction are taken from
        the prompts before and after it.
        """
        return Session(
            self.messages,
            tuple(map(self._with_tokens, self.compactions)),
            frozenset(self._by_programs),
            self._cleared,
            self._prompts,
        )

    def _with_tokens(self, each: Compaction) -> Compaction:
        before = [self._prompts[place] for place in self._prompts if place < each.summary]
        after = [self._prompts[place] for place in self._prompts if place > each.summary]
        return replace(
            each,
            tokens_before=each.tokens_before or next(reversed(before), None),
            tokens_after=each.tokens_after or next(iter(after), None),
        )


def _both(newer: JsonMap, older: JsonMap) -> JsonDict:
    """Return the attributes of two parts of an answer together. Of an attribute in both, the older
    value stays.
    """
    found = {**newer, **older}
    for name in newer.keys() & older.keys():
        if isinstance(newer[name], Mapping) and isinstance(older[name], Mapping):
            found[name] = {**newer[name], **older[name]}
    return found


def _joined(one: str | None, other: str | None) -> str | None:
    return f"{one}\n{other}" if one and other else one or other
