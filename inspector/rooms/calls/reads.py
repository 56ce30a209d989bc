"""Reads model calls: lists of calls, and one call with its exact request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

from django.db.models import Count, Q, QuerySet, Sum

from chatmemory.exceptions import ChatMemoryError, InvalidValue
from chatmemory.ledger.windows import shown_message, stays_at
from chatmemory.messages.json_values import JsonDict
from chatmemory.messages.message import ChatMessage
from chatmemory.models import Stay, Step
from chatmemory.reading import conversations, windows
from chatmemory.reading.windows import MessageView
from chatmemory.snapshots import one_snapshot
from inspector.forms.fields import searchable
from inspector.rooms.calls.beside import Mentions, mentions_of, places_of, views_of
from inspector.rooms.calls.bodies import (
    answer_in,
    answer_made_of,
    has_instructions,
    made_of,
    with_content,
)
from inspector.rooms.calls.comparing import Place, Prompt
from inspector.rooms.calls.models import DroppedCalls, ModelCall
from inspector.rooms.calls.newest import Newest
from inspector.rooms.calls.patches import patched
from inspector.rooms.calls.rows import newest_without_bodies
from inspector.rooms.calls.spelling import written
from inspector.rooms.calls.tools import SentTool, tools_of

if TYPE_CHECKING:
    from inspector.shell.state import ConversationState


LISTED = 100


class CallNotFound(ChatMemoryError, LookupError):
    """Raised if the conversation has no call of this number."""


@dataclass(frozen=True)
class Page:
    """A page of calls in the order of their start. `next` is the cursor of the next page, or ""
    after the last page.
    """

    calls: Sequence[ModelCall]
    next: str = ""


def calls(memory_id: str, after: str = "", size: int = 50) -> Page:
    """Return a page of at most `size` calls of a conversation, in the order in which they began.
    `after` is the cursor `next` of the previous page; "" for the first page. Raises MemoryNotFound,
    and InvalidValue for an unknown cursor.
    """
    conversations.memory(memory_id)
    rows = ModelCall.objects.without_bodies().filter(memory_id=memory_id)
    if after:
        last = _cursor(memory_id, after)
        rows = rows.filter(Q(at__gt=last.at) | Q(at=last.at, n__gt=last.n))
    found = list(rows.order_by("at", "n")[: size + 1])
    shown = found[:size]
    return Page(shown, str(shown[-1].n) if len(found) > size else "")


def _cursor(memory_id: str, text: str) -> ModelCall:
    n = int(text) if text.isdecimal() and len(text) < 19 else 0
    found: ModelCall | None = ModelCall.objects.filter(memory_id=memory_id, n=n).first()
    if found is None:
        raise InvalidValue(
            "the cursor is invalid: use the `next` URL of a page, or start again without a cursor"
        )
    return found


def newest_call(memory_id: str) -> ModelCall | None:
    return next(iter(newest_calls(memory_id, 1)), None)


def newest_in(view: ConversationState) -> ModelCall | None:
    """Return the newest call of the shown conversation. None if the conversation has no calls, or
    if a simulation is shown.
    """
    if view.is_simulated:
        return None
    if "calls" not in view.read:
        view.read["calls"] = newest_call(view.memory.id)
    found: ModelCall | None = view.read["calls"]
    return found


def newest_calls(memory_id: str, size: int) -> list[ModelCall]:
    """Return up to `size` calls of a conversation, the newest first."""
    return newest_without_bodies(memory_id, size)


def newest_of_all(size: int) -> list[ModelCall]:
    """Return up to `size` calls of all conversations together, the newest first."""
    return list(ModelCall.objects.without_bodies().order_by("-at", "-memory", "-n")[:size])


def newest_dropped(prefix: str | None = None) -> list[DroppedCalls]:
    """Return up to 100 rows of `DroppedCalls`, which count calls that were not stored. The row that
    counted a call most recently comes first.

    With a `prefix`, return only rows for API tokens that are limited to conversation IDs with this
    prefix.
    """
    rows = DroppedCalls.objects.order_by("-last_at", "pk")
    return list((rows.filter(prefix__startswith=prefix) if prefix else rows)[:LISTED])


def mentions_on(view: ConversationState) -> Mentions | None:
    """Search for the search phrase of a conversation's page in messages that are not in history,
    but that calls sent. Return None if there is no phrase, or if no message contains the phrase.

    The `call` of the result is the newest call that sent a message with the phrase. It is None if
    none of the last 100 calls sent such a message.
    """
    phrase = searchable(view.query.room_parameters.get("find", ""))
    if not phrase:
        return None
    found = mentions_of(view.memory.id, phrase, newest_calls(view.memory.id, LISTED))
    return found if found.number else None


def totals(memory_id: str) -> dict[str, int]:
    """Return sums over the calls of a conversation, by name.

    - `calls` is the number of calls, and `breaks` the number of prefix changes.
    - `input` and `cached` are the input tokens and the cached input tokens.
    - `again` is the number of tokens that cost the full price again because of a prefix change.
      Their messages were already in the previous prompt.
    """
    rows = ModelCall.objects.filter(memory_id=memory_id)
    found = rows.aggregate(
        calls=Count("n"),
        input=Sum("input"),
        cached=Sum("cached"),
        again=Sum("again"),
        breaks=Count("n", filter=Q(is_broken=True)),
    )
    return {name: value or 0 for name, value in found.items()}


def call_before(call: ModelCall) -> ModelCall | None:
    """Return the previous model call of the conversation, by start time; None for the first."""
    return _before(call).order_by("-at", "-n").first()


def _before(call: ModelCall) -> QuerySet[ModelCall]:
    earlier = Q(at__lt=call.at) | Q(at=call.at, n__lt=call.n)
    return ModelCall.objects.without_bodies().filter(earlier, memory_id=call.memory_id)


def call_after(call: ModelCall) -> ModelCall | None:
    later = Q(at__gt=call.at) | Q(at=call.at, n__gt=call.n)
    rows = ModelCall.objects.without_bodies().filter(later, memory_id=call.memory_id)
    return rows.order_by("at", "n").first()


def one_call(memory_id: str, n: int) -> RebuiltCall:
    """Return a call with its request. Raises MemoryNotFound, CallNotFound."""
    with one_snapshot():
        conversations.memory(memory_id)
        found = ModelCall.objects.filter(memory_id=memory_id, n=n).first()
        if found is None:
            raise CallNotFound(f"the conversation {memory_id!r} has no call with the number {n}")
        return RebuiltCall(found).read()


def call_compared_with(call: ModelCall) -> ModelCall | None:
    """Return the previous call with which `call` is compared: the last earlier call of the
    conversation whose messages are stored. Return None if there is no such call.
    """
    rows = _before(call).filter(~Q(places="") | Q(step__isnull=False))
    return rows.order_by("-at", "-n").first()


class KnownCall(NamedTuple):
    """A cached call, the newest that this process has stored in a conversation: its number (`n`),
    its time and its prompt.
    """

    n: int
    at: datetime
    prompt: Prompt


_NEWEST: Newest[str, KnownCall] = Newest()


def keep_newest(call: ModelCall, prompt: Prompt) -> None:
    """Cache the newest call of a conversation, so that the next call is compared with it without a
    query.
    """
    _NEWEST.put(call.memory_id, KnownCall(call.n, call.at, prompt), len(prompt.places))


def known_before(call: ModelCall) -> KnownCall | None:
    """Return from the cache the call that was stored just before the new call `call` in its
    conversation.

    Return None if the earlier call is not cached, or if it began later than `call`.
    """
    found = _NEWEST.get(call.memory_id)
    is_before = found is not None and found.n == call.n - 1 and found.at <= call.at
    return found if is_before else None


def prompt_of(call: ModelCall) -> Prompt:
    """Return the tools and messages of a call, for comparisons with another call. No text
    is read.
    """
    tools = json.loads(call.tools)
    if call.places:
        return Prompt(tools, places_of(call))
    places = _stays(call.memory_id, call.step).values_list(*Place._fields)
    return Prompt(tools, [*map(Place._make, places)])


def _stays(memory_id: str, n: int | None) -> QuerySet[Stay]:
    """Return the stays of the window after step `n`; no stays for None."""
    step = Step.objects.filter(memory_id=memory_id, n=n).first() if n is not None else None
    return stays_at(step) if step else Stay.objects.none()


def context_behind(call: ModelCall) -> list[ChatMessage]:
    """Return the messages of `call` and of its answer, without the request's instructions. A later
    request that names `call`, such as by `previous_response_id`, continues these messages.

    The instructions are left out because they apply to one request only.
    """
    before = RebuiltCall(call)
    messages = [row.message for row in before.rows]
    answered = before.answer_messages or answer_in(before.response, call.format) or ()
    return [*messages[has_instructions(before.request, messages) :], *answered]


@dataclass(frozen=True)
class RebuiltCall:
    """A model call with its request and response, rebuilt from the rows of the database. Rows are
    read when they are first used.
    """

    row: ModelCall

    def read(self) -> Self:
        """Read the rows of request and answer now, in the caller's database snapshot, and not when
        they are first used.
        """
        _ = self.rows, self.tools, self.answer_messages
        return self

    @cached_property
    def rows(self) -> Sequence[MessageView]:
        """The messages of the request, in order. Empty if the messages could not be stored.

        The seq of a `CallMessage`, which is not in history, is below 0. All other messages have the
        seq under which the ledger stores them.
        """
        if self.row.places:
            return views_of(self.row)
        step = self.row.step
        return () if step is None else windows.window(self.row.memory_id, step).in_order

    @property
    def seqs(self) -> list[int | None]:
        """The seqs of the messages of the request, in order. None stands for a `CallMessage`, which
        is not in history.
        """
        return [row.seq if row.seq > 0 else None for row in self.rows]

    @cached_property
    def tools(self) -> list[SentTool]:
        """The tools of the request, in order."""
        return tools_of(self.row.memory_id, json.loads(self.row.tools))

    @cached_property
    def prompt(self) -> Prompt:
        return prompt_of(self.row)

    @cached_property
    def answer_messages(self) -> list[ChatMessage]:
        """The messages of the answer. Empty if there is no answer, or if the messages of the call
        could not be stored.
        """
        if self.row.places:
            return [*(answer_in(self.response, self.row.format) or ())]
        stays = _stays(self.row.memory_id, self.row.answer_step)
        new = stays.filter(entered_step__gt=self.row.step or 0).select_related("message")
        return [shown_message(stay.message, stay.overrides) for stay in new]

    @cached_property
    def made(self) -> JsonDict:
        """The messages of the call as members of a request, such as `{"messages": […]}`. Empty
        without messages. The patch `difference` turns this dict into the request.
        """
        messages = [row.message for row in self.rows]
        return made_of(messages, self.row.format) if messages else {}

    @cached_property
    def request(self) -> JsonDict:
        """The request as it was sent. Secrets that were removed and texts that were redacted are
        missing. If the call comes from a trace span, the request is as the span describes it.
        """
        difference = json.loads(self.row.difference) if self.row.difference else None
        found: JsonDict = patched(self.made, difference)
        if self.tools and found.get("tools", False) is None:
            tools = [each.definition for each in self.tools]
            return {name: tools if name == "tools" else each for name, each in found.items()}
        return found

    @property
    def body(self) -> bytes:
        """The request as JSON bytes. They equal the bytes that were sent if the style of the JSON
        is known (see `spelling`), and if nothing was removed or redacted.
        """
        return written(self.request, self.row.style or "compact")

    @cached_property
    def response(self) -> JsonDict | None:
        """The provider's response; None if none is stored."""
        if not self.row.response:
            return None
        response = json.loads(self.row.response)
        if "whole" in response:
            found: JsonDict = response["whole"]
            return found
        rendered = answer_made_of(self.answer_messages, self.row.format)
        around: JsonDict = with_content(
            response["around"], self.row.format, patched(rendered, response["said"])
        )
        return around
