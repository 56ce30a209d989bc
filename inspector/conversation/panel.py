"""The panel's answers: why a message is in memory or not, whether a phrase is still remembered,
and how this step differs from another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from chatmemory import (
    AiMessage,
    ImageContent,
    InvalidMessage,
    MessageType,
    explain,
    load_json,
    message_to_dict,
)
from chatmemory.explain import Explanation, ReceiptLine, role
from chatmemory.formats import render_messages
from chatmemory.queries import ConversationState, MessageRow, Verdict
from inspector.conversation.glyphs import glyph
from inspector.conversation.measures import load_in
from inspector.conversation.rows import SHOWN, tag

UNFOLDED_MOST = 100_000
INLINE_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass(frozen=True)
class Life:
    """A message's time in memory on a line from 0 to `steps`."""

    steps: int
    spans: tuple[tuple[int, int], ...]
    entered: int
    left: int | None


@dataclass(frozen=True)
class Changes:
    """The window at this step against the one at `step`, which held `load`."""

    step: int
    came: tuple[int, ...]
    gone: tuple[int, ...]
    stayed: int
    load: int


@dataclass(frozen=True)
class Mention:
    """A place where a phrase was said; `step` is where it left, None while it is in."""

    row: MessageRow
    glyph: str
    role: str
    is_in: bool
    tag: str
    step: int | None


@dataclass(frozen=True)
class Why:
    """The answer about one message."""

    row: MessageRow
    glyph: str
    role: str
    is_in: bool
    life: Life
    step: int | None
    explanation: Explanation
    langchain4j: object
    openai: object
    lost: tuple[str, ...]

    @property
    def pretty(self) -> str:
        """A tool's call or result as JSON to read; empty for all that is none."""
        if not self.row.has_calls and self.row.type is not MessageType.TOOL_EXECUTION_RESULT:
            return ""
        texts = [self.row.text]
        if isinstance(self.row.message, AiMessage):
            requests = self.row.message.tool_execution_requests
            texts = [request.arguments or "" for request in requests if request]
        return "\n".join(filter(None, map(_indented, texts)))

    @property
    def is_folded(self) -> bool:
        """Whether the quote does not show all of the text."""
        return len(self.row.text) > SHOWN

    @property
    def unfolded(self) -> str:
        return self.row.text[:UNFOLDED_MOST]

    @property
    def beyond(self) -> int:
        """How many characters even the whole text on the page leaves out."""
        return max(0, len(self.row.text) - UNFOLDED_MOST)

    @property
    def thinking(self) -> str:
        return getattr(self.row.message, "thinking", None) or ""

    @property
    def attributes(self) -> Mapping[str, object]:
        return getattr(self.row.message, "attributes", {})

    @property
    def pictures(self) -> list[str]:
        """Pictures that came inline: others are not fetched, since no request leaves the site."""
        contents = getattr(self.row.message, "contents", ())
        images = [part.image for part in contents if isinstance(part, ImageContent)]
        return [
            f"data:{image.mime_type};base64,{image.base64_data}"
            for image in images
            if image.base64_data and image.mime_type in INLINE_PICTURES
        ]


class Panel:
    """Answers about a state."""

    def __init__(self, state: ConversationState) -> None:
        self._state = state
        self.other = state.query.other

    @cached_property
    def why(self) -> Why | None:
        """Of the chosen message."""
        row = self._state.selected
        if row is None:
            return None
        rendered = render_messages([row.message], "openai_chat")
        return Why(
            row=row,
            glyph=glyph(row.type, row.has_calls),
            role=role(row.type, row.has_calls),
            is_in=row.seq in self._state.in_window,
            life=self._life(row),
            step=self._state.left_by.step if self._state.left_by else None,
            explanation=self._explanation(row),
            langchain4j=message_to_dict(row.message),
            openai=rendered.value[0] if rendered.value else None,
            lost=tuple(loss.what for loss in rendered.losses),
        )

    @cached_property
    def receipt(self) -> tuple[ReceiptLine, ...]:
        """The arithmetic of the step."""
        return explain.receipt(self._state.change) if self._state.change else ()

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Whether providers would accept what the model sees here."""
        return self._state.verdicts

    @cached_property
    def changes(self) -> Changes | None:
        """What came and left between this step and the other."""
        then = self._state.compared
        if then is None:
            return None
        here = self._state.in_window
        before = [row.seq for row in then.rows]
        return Changes(
            step=then.step,
            came=tuple(sorted(here.difference(before))),
            gone=tuple(seq for seq in before if seq not in here),
            stayed=len(here.intersection(before)),
            load=load_in(then),
        )

    # Does it still remember…?

    @cached_property
    def remembers(self) -> Explanation | None:
        state, mentions = self._state, self._state.mentions
        if not state.query.find:
            return None
        return explain.remembers(
            state.query.find, mentions.rows, mentions.count, state.at, mentions.last
        )

    @cached_property
    def mentions(self) -> list[Mention]:
        """Where the phrase was said, the latest first."""
        return [
            Mention(
                row=row,
                glyph=glyph(row.type, row.has_calls),
                role=role(row.type, row.has_calls),
                is_in=row.seq in self._state.in_window,
                tag=self._mention_tag(row),
                step=self._state.mentions.left_at.get(row.seq),
            )
            for row in reversed(self._state.mentions.rows)
        ]

    @property
    def nearest(self) -> str:
        """What was said that comes near a phrase that was not."""
        return self._state.mentions.nearest

    @property
    def consequence(self) -> str:
        """With a phrase looked for and the message that took it out of memory chosen."""
        why, state = self.why, self._state
        left_at = state.mentions.left_at
        if not why or why.step is None or not left_at or state.found & state.in_window:
            return ""
        gone = [seq for seq, step in left_at.items() if step == why.step]
        if why.row.seq not in gone or why.step != max(left_at.values()):
            return ""
        return explain.without(gone, state.query.find)

    def _mention_tag(self, row: MessageRow) -> str:
        """The row's tag, with the message that pushed it out."""
        mentions = self._state.mentions
        words = tag(self._state, row) or "in memory"
        pusher = mentions.brought.get(mentions.left_at.get(row.seq, 0))
        return f"{words}, when #{pusher} arrived" if pusher and pusher != row.seq else words

    def _explanation(self, row: MessageRow) -> Explanation:
        state = self._state
        if state.left_by is not None:
            return explain.why_left(state.left_by, row.seq)
        if row.seq in state.in_window:
            return explain.why_in(state.window, row.seq)
        if row.stays and row.stays[0].entered_step > state.at:
            entered = row.stays[0].entered_step
            return Explanation(
                f"Where is #{row.seq}?", "Not said yet.", f"It arrives at step {entered:,}."
            )
        return Explanation(
            f"Does #{row.seq} still count?",
            "It is over the lowered limit.",
            "The model no longer sees it, and it leaves at the next add. A higher limit before "
            "that brings it back.",
        )

    def _life(self, row: MessageRow) -> Life:
        end = self._state.memory.last_step
        spans = tuple((entered - 1, (left or end + 1) - entered) for entered, left, _ in row.visits)
        visits = row.visits or ((0, None, None),)
        return Life(end, spans, visits[0][0], visits[-1][1])


def _indented(text: str) -> str:
    try:
        return json.dumps(load_json(text), ensure_ascii=False, indent=2)
    except InvalidMessage:
        return ""
