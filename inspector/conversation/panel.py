"""The panel's answers: why a message is in memory or not, whether a phrase is still remembered,
and how this step differs from another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from chatmemory import explain, queries
from chatmemory.core.codec import load_json, message_to_dict
from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.lint import Turn, Verdict, verdicts
from chatmemory.core.messages import AiMessage, ImageContent, MessageType
from chatmemory.explain import Explanation, ReceiptLine, role
from chatmemory.formats import render_messages
from chatmemory.queries import MessageRow
from inspector.conversation.state import Moment
from inspector.templatetags.inspector import SHOWN, glyph

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


class Answers:
    """`other` is the step that this one is compared with."""

    def __init__(self, moment: Moment, other: int | None) -> None:
        self._moment = moment
        self.other = other

    @cached_property
    def why(self) -> Why | None:
        """Of the chosen message."""
        row = self._moment.selected
        if row is None:
            return None
        departure = row.departure(self._moment.at)
        step = departure.left_step if departure else None
        rendered = render_messages([row.message], "openai_chat")
        return Why(
            row=row,
            glyph=glyph(row.type, row.has_calls),
            role=role(row.type, row.has_calls),
            is_in=row.seq in self._moment.in_window,
            life=self._life(row),
            step=step,
            explanation=self._explanation(row, step),
            langchain4j=message_to_dict(row.message),
            openai=rendered.value[0] if rendered.value else None,
            lost=tuple(loss.what for loss in rendered.losses),
        )

    @cached_property
    def receipt(self) -> tuple[ReceiptLine, ...]:
        """The arithmetic of the step."""
        return explain.receipt(self._moment.view) if self._moment.view else ()

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Whether providers would accept what the model sees here."""
        moment = self._moment
        calls = queries.calls_in(moment.memory.id, moment.window.rows)
        calls |= {draft.seq: _calls_of(draft) for draft in moment.drafts}
        return verdicts([Turn(r.seq, r.type, calls.get(r.seq, 0)) for r in moment.window.rows])

    @cached_property
    def changes(self) -> Changes | None:
        """What came and left between this step and the other."""
        if self.other is None:
            return None
        here = self._moment.in_window
        then = queries.outline(self._moment.memory.id, self.other)
        before = [row.seq for row in then.rows]
        return Changes(
            step=self.other,
            came=tuple(sorted(here.difference(before))),
            gone=tuple(seq for seq in before if seq not in here),
            stayed=len(here.intersection(before)),
            load=then.load if then.load is not None else then.totals.tokens,
        )

    # Does it still remember…?

    @cached_property
    def remembers(self) -> Explanation | None:
        moment = self._moment
        if not moment.find:
            return None
        last = None
        if self._left_at and not moment.hits & moment.in_window:
            last = queries.step(moment.memory.id, max(self._left_at.values()))
        return explain.remembers(moment.find, moment.found, moment.found_count, moment.at, last)

    @cached_property
    def mentions(self) -> list[Mention]:
        """Where the phrase was said, the latest first."""
        brought = queries.arrivals_at(self._moment.memory.id, self._left_at.values())
        return [
            Mention(
                row=row,
                glyph=glyph(row.type, row.has_calls),
                role=role(row.type, row.has_calls),
                is_in=row.seq in self._moment.in_window,
                tag=self._mention_tag(row, brought),
                step=self._left_at.get(row.seq),
            )
            for row in reversed(self._moment.found)
        ]

    @cached_property
    def nearest(self) -> str:
        """What was said that comes near a phrase that was not."""
        moment = self._moment
        if not moment.find or moment.found:
            return ""
        return queries.nearest(moment.memory.id, moment.find, at=moment.at)

    @property
    def consequence(self) -> str:
        """With a phrase looked for and the message that took it out of memory chosen."""
        why, moment = self.why, self._moment
        if not why or not moment.find or why.step is None or moment.hits & moment.in_window:
            return ""
        gone = [seq for seq, step in self._left_at.items() if step == why.step]
        if why.row.seq not in gone or why.step != max(self._left_at.values()):
            return ""
        return explain.without(gone, moment.find)

    @cached_property
    def _left_at(self) -> dict[int, int]:
        """Where each found message left, by seq; those in memory are not there."""
        left = ((row.seq, row.departure(self._moment.at)) for row in self._moment.found)
        return {seq: stay.left_step for seq, stay in left if stay and stay.left_step}

    def _mention_tag(self, row: MessageRow, brought: dict[int, int]) -> str:
        """The row's tag, with the message that pushed it out."""
        tag = self._moment.tag(row) or "in memory"
        pusher = brought.get(self._left_at.get(row.seq, 0))
        return f"{tag}, when #{pusher} arrived" if pusher and pusher != row.seq else tag

    def _explanation(self, row: MessageRow, step: int | None) -> Explanation:
        moment = self._moment
        if step is not None:
            return explain.why_left(queries.step(moment.memory.id, step), row.seq)
        if row.seq in moment.in_window:
            return explain.why_in(moment.window, row.seq)
        if row.stays and row.stays[0].entered_step > moment.at:
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
        end = self._moment.memory.last_step
        spans = tuple((entered - 1, (left or end + 1) - entered) for entered, left, _ in row.visits)
        visits = row.visits or ((0, None, None),)
        return Life(end, spans, visits[0][0], visits[-1][1])


def _calls_of(draft: MessageRow) -> int:
    return len(getattr(draft.message, "tool_execution_requests", ()))


def _indented(text: str) -> str:
    try:
        return json.dumps(load_json(text), ensure_ascii=False, indent=2)
    except InvalidMessage:
        return ""
