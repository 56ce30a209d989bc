"""The side panel: why a message is in memory or has left, and the differences between two steps."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from django.utils.safestring import SafeString

from chatmemory import (
    AiMessage,
    ImageContent,
    InvalidMessage,
    MessageType,
    TokenWindow,
    ToolExecutionResultMessage,
    load_json,
    message_to_dict,
)
from chatmemory.explain import wording
from chatmemory.explain.interruptions import why_unseen
from chatmemory.explain.reasons import (
    Explanation,
    not_in_replay,
    why_in,
    why_index,
    why_left,
    would_be_stub,
)
from chatmemory.explain.receipts import Receipt, receipt
from chatmemory.explain.wording import in_unit, load_words
from chatmemory.formats import kept_in, render_messages
from chatmemory.reading.budget import budget_of
from chatmemory.reading.rows import MessageDetail
from chatmemory.reading.windows import WindowView
from chatmemory.windows.stored_policies import can_decide
from inspector.conversation.budget import share_words
from inspector.conversation.forecasts import beyond_tried_limit, one_beyond_limit
from inspector.conversation.history import SHOWN, without_escapes
from inspector.conversation.index import IndexTerms, TermChoice, choices_of
from inspector.conversation.keeping import (
    NOT_INSTALLED,
    asks_for_limit,
    explain_keeping_limit,
    left_for_room,
)
from inspector.conversation.links import comparison_url
from inspector.conversation.looks import OF_INDEX, STYLES
from inspector.conversation.markdown import as_markdown
from inspector.conversation.pins import PinPreview, pin_preview, pinning
from inspector.conversation.rich import fields_of, from_markdown
from inspector.shell.state import ConversationState

UNFOLDED_MAX = 100_000
MOVED_MAX = 100
INLINE_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass(frozen=True)
class Life:
    """The periods in which a message was in memory, on a line from 0 to `steps`.

    Each of `spans` is the start and the length of a period. `entered` is the step at which the
    message first entered memory. `left` is the step at which the message last left, or None while
    the message is in memory.
    """

    steps: int
    spans: tuple[tuple[int, int], ...]
    entered: int
    left: int | None

    @property
    def ends(self) -> list[int]:
        """The positions on the line at which the message left memory."""
        stops = [start + length for start, length in self.spans]
        return stops if self.left is not None else stops[:-1]


@dataclass(frozen=True)
class Moved:
    """Messages that entered or left memory between two steps, or that a summary replaced. Only some
    of them are shown.

    `seqs` are the numbers of the shown messages. `before` is how many messages come before the
    shown messages, and `more` is how many come after.
    """

    seqs: tuple[int, ...]
    before: int
    more: int

    @property
    def last(self) -> int:
        return self.seqs[-1]

    @classmethod
    def after(cls, past: int, seqs: Iterable[int]) -> Moved:
        """Return the messages `seqs` as a `Moved`. The first 100 messages with a number above
        `past` are shown.
        """
        ordered = sorted(seqs)
        first = bisect_right(ordered, past)
        shown = tuple(ordered[first : first + MOVED_MAX])
        return cls(shown, first, len(ordered) - first - len(shown))


class Changes:
    """The differences between memory at the shown step and at another step. The size of memory at
    both steps is given in words.
    """

    def __init__(self, state: ConversationState, other: WindowView) -> None:
        now, before, past = state.in_window, frozenset(other.seqs), state.query.past or 0
        self.step = other.step
        self.arrived = Moved.after(past, now - before)
        self.left = Moved.after(past, before - now)
        self.stayed = len(now & before)
        self.load_then = load_words(other.policy, other.totals)
        self.load_now = load_words(state.window.policy, state.window.totals)


class RawMessage(NamedTuple):
    """A message as JSON in the format of a provider, such as OpenAI. `lost` names the parts of the
    message that the format cannot express.
    """

    value: object
    lost: list[str]


# Long: presents one template; each property is what a line of the panel shows.
class Why:
    """Explains why the selected message is in memory or has left.

    `tokens` is the size of the message at the shown step, or at the step at which the message left.
    """

    def __init__(self, state: ConversationState, row: MessageDetail) -> None:
        self._state, self.row = state, row
        self.tokens = row.tokens_at(state.step.n)
        self.look = OF_INDEX if row.index else STYLES[row.type, row.has_calls]
        self.is_in = row.seq in state.in_window
        left_by = state.selection.left_by
        self.step = left_by.step if left_by else None
        self.covered = state.contents.summaries.get(row.seq)

    @cached_property
    def explanation(self) -> Explanation:
        state, seq = self._state, self.row.seq
        if state.simulation.is_replay and not self.is_in:
            return not_in_replay(seq, state.window)
        if (left_by := state.selection.left_by) is not None:
            known = (lines for change, lines in state.receipts if change is left_by)
            return why_left(left_by, seq, next(known, None))
        if seq in state.simulation.outlook.stubbed:
            return would_be_stub(seq, state.window.policy)
        if self.is_in and self.row.index is not None:
            return why_index(self.row.index, seq)
        if self.is_in:
            return why_in(state.window, seq, self.row.is_summary, state.selection.clearing)
        if self.row.stays and self.row.stays[0].entered_step > state.step.n:
            then = f"#{seq} arrives at step {self.row.stays[0].entered_step:,}."
            return Explanation(f"Where is #{seq}?", "It is not in history yet.", then)
        if call := state.window.interrupted_call_of(seq):
            return Explanation(f"Why does the model not see #{seq}?", *why_unseen(call, seq))
        if seq in state.simulation.outlook.leaving:
            detail = beyond_tried_limit(state.window.no_room)
            question = f"Would the model still see #{seq}?"
            return Explanation(question, "No, it would be over the limit.", detail)
        detail = one_beyond_limit(state.window.no_room)
        question = f"Does the model still see #{seq}?"
        return Explanation(question, "No, it is over the limit.", detail)

    @property
    def life(self) -> Life:
        """The periods in which the message was in memory, up to the shown step. There are none for
        a message that was added later.
        """
        at, end, visits = self._state.step.n, self._state.memory.last_step, self.row.visits
        if not visits or visits[0][0] > at:
            return Life(end, (), visits[0][0] if visits else 0, None)
        past = [
            (entered, left if left is not None and left <= at else None)
            for entered, left, _ in visits
            if entered <= at
        ]
        spans = tuple((first - 1, (left or at + 1) - first) for first, left in past)
        return Life(end, spans, past[0][0], past[-1][1])

    @cached_property
    def index(self) -> IndexTerms | None:
        """The exact terms to show for the selected message, or None.

        - For an index message: all terms of this index.
        - For an evicted message: the terms of this message that the index in memory lists, or that
          a user left out of this index. None without such terms.
        - For any other message: None.
        """
        if self.row.index is not None:
            return IndexTerms(self.row.index)
        shown = self._state.contents.index
        if self.is_in or shown is None:
            return None
        found = IndexTerms(shown.index, self.row.seq)
        return found if found.listed or found.left_out else None

    @property
    def index_choices(self) -> list[TermChoice]:
        """The exact terms of the selected message that a user can leave out of the index, or put
        back into it. Empty at an older step, in a simulation, and if the policy makes no index.
        """
        state, shown, policy = self._state, self._state.contents.index, self._state.window.policy
        is_old = self.row.index is not None and not self.is_in
        makes_index = can_decide(policy) and policy.indexed_terms and not policy.meters_only
        if not self.index or not shown or is_old or not makes_index:
            return []
        if not state.is_live or state.is_simulated:
            return []
        return choices_of(shown, self.index, state.memory.id)

    @property
    def without_index(self) -> str:
        """When the message would have left memory if the policy had no index, in words: `left 3
        messages later`. "" if this is not known.
        """
        return self._state.selection.without_index

    @property
    def load(self) -> str:
        """How full memory is, in words: `683 of 800 tokens`."""
        policy, totals = self._state.window.policy, self._state.window.totals
        if not can_decide(policy):
            return load_words(policy, totals)
        return f"{policy.load(totals):,} of {in_unit(policy.limit, policy)}"

    @property
    def index_cost(self) -> tuple[int, str]:
        """The tokens of the index in memory, and their percentage of the limit as text; 0 tokens
        without an index.
        """
        budget = budget_of(self._state.window, index=self._state.contents.index)
        percent = round(100 * budget.index / budget.limit) if budget.limit else 0
        return budget.index, share_words(percent, budget.index)

    @property
    def without_index_url(self) -> str:
        """The URL that compares the policy in force with the same policy without an index; ""
        without an index.
        """
        policy, row = self._state.window.policy, self._state.step.detail
        if not isinstance(policy, TokenWindow) or not policy.index_terms or row is None:
            return ""
        policies = (policy, replace(policy, index_terms=0))
        return comparison_url(self._state, policies, row.row.said_count)

    @cached_property
    def pin(self) -> PinPreview | None:
        """The effect of pinning or unpinning the message. None if neither is possible, such as at
        an older step or for an index message.

        A summary cannot be unpinned: it stays until another summary replaces it.
        """
        state = self._state
        is_kept = self.row.is_summary or self.row.index is not None
        if not state.is_live or state.is_simulated or is_kept:
            return None
        return pin_preview(state.window, self.row.seq, state.waiting_call)

    @property
    def pin_words(self) -> str:
        return pinning(self.pin) if self.pin else ""

    @property
    def covered_part(self) -> Moved | None:
        """The messages that the selected summary replaced, of which only some are shown. None if
        the selected message is no summary.
        """
        past = self._state.query.past or 0
        return Moved.after(past, self.covered.seqs) if self.covered else None

    @property
    def langchain4j(self) -> object:
        """The message as JSON in LangChain4j's format."""
        return message_to_dict(self.row.message)

    @cached_property
    def openai(self) -> RawMessage:
        """The message as JSON in OpenAI's format."""
        rendered = render_messages([self.row.message], "openai_chat")
        lost = [loss.what for loss in rendered.losses]
        return RawMessage(next(iter(rendered.value), None), lost)

    @property
    def might_have_stayed(self) -> bool:
        """Whether the message left because the limit was reached, so that a higher limit might have
        kept the message. False in a simulation or a replay.
        """
        state = self._state
        return left_for_room(state) and not state.is_simulated and not state.simulation.is_replay

    @cached_property
    def would_keep(self) -> Explanation | None:
        """An explanation of the limit that would have kept the message. None if the message did not
        leave because of the limit, or while the section for this explanation is folded.
        """
        if not self.might_have_stayed or not asks_for_limit(self._state.query):
            return None
        answer = self._state.selection.would_keep
        return explain_keeping_limit(answer) if answer else NOT_INSTALLED

    @property
    def compare_url(self) -> str:
        """The URL of a comparison of two limits: the limit in force, and the higher limit that
        would have kept the message. "" if no such limit is known.

        The comparison ends where a fact of the message was needed again, or at the shown step if no
        such need is known.
        """
        answer = self._state.selection.would_keep
        limit = answer.keeping.limit if answer and answer.keeping else None
        if answer is None or limit is None or answer.is_within_limit:
            return ""
        policies = (answer.policy, replace(answer.policy, limit=limit))
        phrase = answer.needed.fact if answer.needed else ""
        return comparison_url(self._state, policies, answer.message_count, phrase)

    @property
    def can_replay(self) -> bool:
        """Whether somebody can request a long replay to find the limit that would have kept the
        message.
        """
        answer = self._state.selection.would_keep
        return answer is not None and answer.deferred > 0

    @property
    def markdown(self) -> str:
        """The explanation as Markdown, to paste into a ticket."""
        explanation, limit = self.explanation, self.would_keep
        answers = [explanation.summary, f"{limit.question} {limit.summary}" if limit else ""]
        return as_markdown(explanation.question, answers, explanation.receipt)

    @cached_property
    def pretty(self) -> str:
        """The indented JSON of a tool call's arguments or of a tool result; "" for other messages,
        and for a text that is no JSON.
        """
        if not self.row.has_calls and self.row.type is not MessageType.TOOL_EXECUTION_RESULT:
            return ""
        texts = [self.row.text]
        if isinstance(self.row.message, AiMessage):
            requests = self.row.message.tool_execution_requests
            texts = [request.arguments or "" for request in requests if request]
        return "\n".join(filter(None, map(_indented, texts)))

    @property
    def is_json(self) -> bool:
        """Whether the text is a tool result in JSON, which the panel shows folded."""
        return bool(self.pretty) and self.row.type is MessageType.TOOL_EXECUTION_RESULT

    @cached_property
    def fields(self) -> list[tuple[str, str]] | None:
        """The names and values of a tool result that is a simple JSON object (see `fields_of`).
        None for any other message.
        """
        return fields_of(self.row.text) if self.is_json else None

    @cached_property
    def rich(self) -> SafeString | None:
        """The assistant's text as HTML from its Markdown; None without markup, or while a phrase is
        highlighted.
        """
        phrase = self._state.shown.marks.phrase
        if self.row.type is not MessageType.AI or self.row.has_calls or phrase:
            return None
        return from_markdown(self.row.text)

    @property
    def draft(self) -> int:
        """The number of a draft message, from 1; 0 for a stored message."""
        return max(0, -self.row.seq)

    @property
    def role(self) -> str:
        return "Summary" if self.covered else self.look.role

    @property
    def is_injected(self) -> bool:
        """Whether the message is not in history, because a client put it into memory."""
        return self.row.origin == "SYNTHETIC"

    @property
    def quote(self) -> str:
        """The text of the message. A tool's name is left out, because the panel shows the name
        above the text.
        """
        return self.row.readable if self.row.has_calls else self.row.text

    @property
    def tools(self) -> str:
        """For a tool result, the name of the tool. For a message with tool calls, the number of its
        calls, such as `2 calls`. "" for other messages.
        """
        message = self.row.message
        if isinstance(message, ToolExecutionResultMessage):
            return message.tool_name or ""
        calls = len(getattr(message, "tool_execution_requests", ()))
        return wording.counted(calls, "call") if calls else ""

    @property
    def is_folded(self) -> bool:
        """Whether the panel first shows only a part of the text."""
        return len(self.row.text) > SHOWN

    @property
    def unfolded(self) -> str:
        return without_escapes(self.row.text[:UNFOLDED_MAX])

    @property
    def beyond(self) -> int:
        """The number of characters that the page leaves out even if the text is unfolded."""
        return max(0, len(self.row.text) - UNFOLDED_MAX)

    @property
    def thinking(self) -> str:
        return getattr(self.row.message, "thinking", None) or ""

    @cached_property
    def kept(self) -> dict[str, list[str]]:
        """The names of the provider fields that are stored in the message's attributes, by format,
        such as {"openai_chat": ["annotations"]}. An export to the same format restores these
        fields.
        """
        return kept_in(getattr(self.row.message, "attributes", {}))

    @property
    def attributes(self) -> dict[str, object]:
        """The message's attributes, without the provider fields (see `kept`)."""
        attributes = getattr(self.row.message, "attributes", {})
        return {name: value for name, value in attributes.items() if name not in self.kept}

    @property
    def pictures(self) -> list[str]:
        """The embedded PNG, JPEG, GIF and WebP images as data URLs. Linked images are not loaded,
        so that the page requests nothing from other sites.
        """
        contents = getattr(self.row.message, "contents", ())
        images = [part.image for part in contents if isinstance(part, ImageContent)]
        return [
            f"data:{image.mime_type};base64,{image.base64_data}"
            for image in images
            if image.base64_data and image.mime_type in INLINE_PICTURES
        ]


class Panel:
    """Presents the side panel of the conversation page."""

    def __init__(self, state: ConversationState) -> None:
        self._state = state
        self.other = state.query.other

    @cached_property
    def why(self) -> Why | None:
        """The explanation of the selected message; None without a selection."""
        row = self._state.selection.row
        return Why(self._state, row) if row else None

    @cached_property
    def receipt(self) -> Receipt:
        """The calculation of the shown change, line by line: memory before, what was added, what
        left, and memory afterwards. Empty without a change or a policy, and for a change that needs
        no sum, such as the clearing of memory.
        """
        return receipt(self._state.change) if self._state.change else ()

    @cached_property
    def changes(self) -> Changes | None:
        """The differences between the shown step and another step; None without a comparison."""
        other = self._state.step.compared
        return Changes(self._state, other) if other else None


def _indented(text: str) -> str:
    try:
        return json.dumps(load_json(text), ensure_ascii=False, indent=2)
    except InvalidMessage:
        return ""
