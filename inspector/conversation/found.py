"""The answer to a search in a conversation: whether memory has the phrase, and the messages with
it.
"""

from __future__ import annotations

from functools import cached_property

from chatmemory.messages.phrases import Speaker
from chatmemory.reading.rows import MessageDetail
from inspector.conversation import phrase_answers
from inspector.conversation.as_test import copied_phrase
from inspector.conversation.history import tag
from inspector.conversation.looks import LOOKS
from inspector.conversation.phrase_answers import PhraseAnswer
from inspector.conversation.state import ConversationState

HEADINGS = {
    Speaker.OTHERS: "Users and tools",
    Speaker.ASSISTANT: "The assistant itself",
    Speaker.SYSTEM: "System messages",
    Speaker.CLIENT: "Put into memory by the client, never said",
}


class FoundMention:
    """A message that contains the phrase; `step` is where it left or will arrive, or None."""

    def __init__(self, state: ConversationState, row: MessageDetail) -> None:
        self.row, self.look = row, LOOKS[row.type, row.has_calls]
        self.is_in = row.seq in state.in_window
        self.step = state.mentions.left_at.get(row.seq)
        arrival = min((stay.entered_step for stay in row.stays), default=0)
        if arrival > state.at:
            self.tag, self.step = f"said at step {arrival:,}", arrival
            return
        self.tag = tag(state, row) or "in memory"
        arrived = state.mentions.arrivals.get(self.step or 0)
        if arrived and arrived != row.seq:
            self.tag += f", when #{arrived} arrived"


class Found:
    """The presenter of a search."""

    def __init__(self, state: ConversationState) -> None:
        self._state = state
        self._mentions = mentions = state.mentions
        self.count = mentions.count
        self.is_partial = mentions.is_partial  # there are more mentions than were examined
        self.nearest = mentions.nearest  # the nearest word, if no message contains the phrase

    @cached_property
    def answer(self) -> PhraseAnswer:
        return phrase_answers.remembered(self._state)

    @cached_property
    def groups(self) -> list[tuple[str, list[FoundMention]]]:
        """A heading for each kind of speaker, the most important first, with their mentions, latest
        first.
        """
        rows = list(reversed(self._mentions.rows))
        speakers = self._mentions.speakers
        return [
            (heading, [FoundMention(self._state, row) for row in these])
            for speaker, heading in HEADINGS.items()
            if (these := [row for row in rows if speakers[row.seq] is speaker])
        ]

    @property
    def test(self) -> str:
        """The answer as a test of a project."""
        return copied_phrase(self._state, f"{self.answer.question} {self.answer.cause}")

    @property
    def unlisted(self) -> int:
        """The number of examined mentions that are not in the groups."""
        return self.count - len(self._mentions.rows)

    def consequence(self, seq: int, step: int) -> str:
        """Return a sentence if the phrase was forgotten with this message, else ""."""
        left_at = self._mentions.left_at
        if self._mentions.present or left_at.get(seq) != step or step != max(left_at.values()):
            return ""
        left = [other for other, then in left_at.items() if then == step]
        return phrase_answers.without(left, self._state.query.find)
