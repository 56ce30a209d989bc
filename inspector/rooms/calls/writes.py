"""Stores a call: its messages by the protocol of clients' lists, and a row for the rest.

The ledger is changed first, in a transaction of its own. The difference between the request and the
window is computed without a lock, and the row is written in a second transaction. A call that comes
again, after a failure in between or as another signal, changes nothing that is stored.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import Any

from django.utils import timezone

from chatmemory import database, services
from chatmemory.conf import configuration
from chatmemory.database import in_list
from chatmemory.exceptions import ChatMemoryError, MemoryExists, MemoryNotFound
from chatmemory.formats.runs import digests_of
from chatmemory.ledger import protocol
from chatmemory.messages.contents import TextContent
from chatmemory.messages.estimators import count_overhead, estimator_for
from chatmemory.messages.message import ChatMessage, ToolExecutionResultMessage, UserMessage
from chatmemory.models import Memory
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.window import Counted, Entry, total
from inspector.conf import inspector_configuration
from inspector.rooms.calls.belonging import continued_by, conversation_of, keep_ends, key_of
from inspector.rooms.calls.bodies import (
    answer_in,
    answer_made_of,
    content_at,
    made_of,
    messages_in,
    response_id_in,
    tools_in,
    with_content,
)
from inspector.rooms.calls.call import Dropped, DropReason, NewCall
from inspector.rooms.calls.comparing import NOTHING_BEFORE, Place, Prompt, difference
from inspector.rooms.calls.models import CallRun, DroppedCalls, ModelCall
from inspector.rooms.calls.patches import patch
from inspector.rooms.calls.reads import call_after, call_compared_with, context_behind, prompt_of
from inspector.rooms.calls.recording import RecordedCall, record_call
from inspector.rooms.calls.spelling import difference_and_style, plain
from inspector.rooms.calls.tools import SentTool, forget_tools, keep_tools, sent_tools, tool_tokens

AWAITED = 500  # keys of dropped calls of one sender
SENDERS = 100  # names of senders of dropped calls under one prefix
ERROR = 20_000  # characters


@dataclass(frozen=True)
class Stored:
    """The place of a stored call. It `is_new` unless it was stored before."""

    memory_id: str
    n: int
    is_new: bool


def store(call: NewCall, prefix: str = "", actor: str = "") -> Stored:
    """Store a call in the conversation to which it belongs, and return its place.

    Raises ChatMemoryError if it cannot be stored, for example while its conversation is being
    imported, and DatabaseError.
    """
    key = key_of(call.key, prefix)
    if known := ModelCall.objects.without_bodies().filter(key=key).first():
        return Stored(known.memory_id, known.n, is_new=False)
    before = continued_by(call, prefix)
    sent = messages_in(call.request, call.format, context_behind(before) if before else ()) or ()
    answer = answer_in(call.response, call.format) or ()
    digests = digests_of([*sent, *answer])
    memory_id = conversation_of(call, prefix, digests, before)
    is_own, placed = _is_own(memory_id), RecordedCall()
    if sent:
        with suppress(_NotStorable):
            placed = _in_ledger(memory_id, sent, answer, actor, is_own)
    with suppress(MemoryExists):
        if placed.step is None and not Memory.objects.filter(pk=memory_id).exists():
            services.create(memory_id, None, actor=actor)
    tools = sent_tools(memory_id, tools_in(call.request))
    row = _row(call, memory_id, placed, tools)
    row.key, row.answer_key = key, _answer_key(call, prefix)
    run = CallRun(memory_id=memory_id, prefix=prefix, is_own=is_own)
    prompt = Prompt([each.digest for each in tools], _places(placed.request))
    return _insert(row, run, digests, tools, prompt)


def _answer_key(call: NewCall, prefix: str) -> str:
    id = response_id_in(call.response, call.format)
    return key_of(id, prefix) if id else ""


# The ledger


class _NotStorable(Exception):
    """The messages of a call cannot be in a ledger."""


def _in_ledger(
    memory_id: str,
    sent: Sequence[ChatMessage],
    answer: Sequence[ChatMessage],
    actor: str,
    is_own: bool,
) -> RecordedCall:
    """Replace the window of a conversation by the list of a call, and then add the answer.

    Raises _NotStorable.
    """
    try:
        if is_own:
            return record_call(memory_id, sent, answer, actor=actor)
        return _put_beside(memory_id, sent, actor)
    except (MemoryNotFound, ChatMemoryError) as error:
        if type(error).__name__ in _UNSTORABLE:
            raise _NotStorable from error
        raise


def _put_beside(memory_id: str, sent: Sequence[ChatMessage], actor: str) -> RecordedCall:
    """Replace the window by the list of a call, and then restore it: another program decides the
    window, and adds the answer itself.
    """
    services.count_ahead(memory_id, sent)  # before any lock is held
    with database.atomic():
        before = protocol.get_messages(memory_id)
        recorded = record_call(memory_id, sent, (), actor=actor)
        services.set_messages(memory_id, before, actor=actor)
    return recorded


# Errors of the messages themselves. Other errors, such as an unfinished import, may go away before
# the call comes again.
_UNSTORABLE = ("MessageTooLarge", "UnstorableText", "WindowTooLarge", "InvalidMessage")


def _is_own(memory_id: str) -> bool:
    """Return whether calls decide the memory of a conversation: they began it, or it is new."""
    run = CallRun.objects.filter(memory_id=memory_id).values_list("is_own", flat=True).first()
    if run is not None:
        return run
    memory = Memory.objects.filter(pk=memory_id).first()
    if memory is None:
        return True
    policy = memory.policy
    return not (can_decide(policy) and not policy.meters_only)


# The row


def _row(
    call: NewCall, memory_id: str, placed: RecordedCall, tools: Sequence[SentTool]
) -> ModelCall:
    """Return the row of a call without its number. Everything slow is computed here."""
    sent = _messages(placed.request)
    rendered = made_of(sent, call.format) if sent else {}
    target: dict[str, Any] = dict(call.request)
    if tools:
        target["tools"] = None
    difference, style = difference_and_style(rendered, target, call.body, dict(call.request))
    return ModelCall(
        memory_id=memory_id,
        source=call.source,
        format=call.format,
        provider=plain(call.provider, 64),
        model=plain(call.model, 255),
        at=call.at,
        duration=call.duration,
        is_exact=call.is_exact,
        step=placed.step,
        answer_step=placed.answer_step,
        difference=_json(difference),
        style=style,
        tools=json.dumps([each.digest for each in tools]),
        response=_json(_response(call, _messages(placed.answer))),
        headers=_json(dict(call.headers)),
        **call.usage._asdict(),
        counted=_counted(placed.request) + _tokens(tools),
        is_countable=not any(map(_has_media, sent)),
        finish=plain(call.finish, 64),
        error=plain(call.error, ERROR),
    )


def _messages(entries: Iterable[Entry]) -> list[ChatMessage]:
    return [each.message for each in entries if each.message is not None]


def _places(entries: Iterable[Entry]) -> list[Place]:
    return [Place(each.seq, each.tokens, each.overrides) for each in entries]


def _response(call: NewCall, answer: Sequence[ChatMessage]) -> Any:
    """Return the patch from the answer's messages to the answer; None without an answer."""
    if call.response is None:
        return None
    response = dict(call.response)
    rendered = answer_made_of(answer, call.format)
    content = content_at(response, call.format)
    if rendered is None or content is None:
        return {"whole": response}
    return {"around": with_content(response, call.format, None), "said": patch(rendered, content)}


def _json(value: Any) -> str:
    """Return JSON of plain characters, which every database can hold; empty for None."""
    return "" if value is None else json.dumps(value, separators=(",", ":"))


def _counted(entries: Sequence[Entry]) -> int:
    if not entries:
        return 0
    return _tokens(entries) + count_overhead(estimator_for(configuration().ESTIMATOR))


def _tokens(counted: Iterable[Counted]) -> int:
    return total(counted).tokens


def _has_media(message: ChatMessage) -> bool:
    if not isinstance(message, UserMessage | ToolExecutionResultMessage):
        return False
    return any(not isinstance(each, TextContent) for each in message.contents)


def _insert(
    row: ModelCall,
    new_run: CallRun,
    digests: Sequence[bytes],
    tools: Sequence[SentTool],
    prompt: Prompt,
) -> Stored:
    """Give a row its number, and store it unless the call has come in the meantime.

    Raises MemoryNotFound if the conversation was deleted in between.
    """
    with database.atomic():
        memory = Memory.objects.select_for_update().filter(pk=row.memory_id)
        if not memory.exists():
            raise MemoryNotFound(f"no conversation has the id {row.memory_id!r}")
        rows = ModelCall.objects.without_bodies()
        if known := rows.filter(memory_id=row.memory_id, key=row.key).first():
            return Stored(known.memory_id, known.n, is_new=False)
        run = CallRun.objects.filter(memory_id=row.memory_id).first() or new_run
        row.n = run.calls = run.calls + 1
        following = call_after(row)
        if digests and following is None:
            run.digests = b"".join(digests)
            keep_ends(row.memory_id, new_run.prefix, digests, row.at)
        run.save()
        _compare(row, prompt, _tokens(tools))
        row.save(force_insert=True)
        keep_tools(row.memory_id, tools)
        if following is not None:  # it had been compared with the call before this one
            compare_again(following)
    return Stored(row.memory_id, row.n, is_new=True)


def compare_again(call: ModelCall) -> None:
    """Compare a call again, because another call is now the one before it."""
    prompt = prompt_of(call)
    _compare(call, prompt, tool_tokens(call.memory_id, prompt.tools))
    call.save(update_fields=["shared", "again", "is_broken"])


def _compare(call: ModelCall, prompt: Prompt, tokens: int) -> None:
    """Fill in the columns that compare a call with the one that began before it."""
    before = call_compared_with(call) if call.step is not None else None
    found = difference(prompt_of(before), prompt, tokens) if before else NOTHING_BEFORE
    call.shared, call.again, call.is_broken = found.shared, found.again, found.is_broken


# Dropped calls, and old ones


def count_dropped(dropped: Iterable[Dropped], prefix: str) -> None:
    """Count dropped calls by reason and sender. A call whose messages came in an event is stored,
    and not counted.
    """
    found: defaultdict[tuple[DropReason, str], list[str]] = defaultdict(list)
    for why, sender, key in dropped:
        found[why, plain(sender, 100)].append(key and key_of(key, prefix))
    for (why, sender), keys in sorted(found.items()):
        _count(prefix, why, sender, keys)
    awaited = {key for keys in found.values() for key in keys if key}
    if awaited:
        stored = ModelCall.objects.filter(in_list("key", awaited))
        _count_no_more(stored.values_list("key", flat=True), prefix)


def count_no_more(stored: Iterable[NewCall], prefix: str) -> None:
    """Correct the count after calls are stored whose spans had come without messages."""
    _count_no_more((key_of(call.key, prefix) for call in stored), prefix)


def _count(prefix: str, why: DropReason, sender: str, keys: Sequence[str]) -> None:
    """Count calls, each with its key or "". A span that comes again is not counted again."""
    rows = DroppedCalls.objects.filter(prefix=prefix)
    with database.atomic():
        if not rows.filter(why=why, sender=sender).exists() and rows.count() >= SENDERS:
            sender = ""
        row, _ = DroppedCalls.objects.select_for_update().get_or_create(
            prefix=prefix, why=why, sender=sender, defaults={"last_at": timezone.now()}
        )
        known = json.loads(row.awaited)
        new = [key for key in keys if not key or key not in known]
        row.count, row.last_at = row.count + len(new), timezone.now()
        row.awaited = json.dumps([*known, *filter(None, new)][-AWAITED:])
        row.save()


def _count_no_more(keys: Iterable[str], prefix: str) -> None:
    stored = set(keys)
    with database.atomic():
        rows = DroppedCalls.objects.filter(prefix=prefix).exclude(awaited="[]").order_by("pk")
        for row in rows.select_for_update():
            known = json.loads(row.awaited)
            awaited = [key for key in known if key not in stored]
            if len(awaited) < len(known):
                row.count -= len(known) - len(awaited)
                row.awaited = json.dumps(awaited)
                row.save() if row.count > 0 else row.delete()


def forget_old_calls() -> None:
    """Delete calls that are older than INSPECTOR["CALL_DAYS"] allows; their messages stay."""
    days = inspector_configuration().CALL_DAYS
    if not days:
        return
    before = timezone.now() - timedelta(days=days)
    DroppedCalls.objects.filter(last_at__lt=before).delete()
    old = ModelCall.objects.filter(at__lt=before)
    for memory_id in {*old.values_list("memory_id", flat=True)}:
        with database.atomic():
            old.filter(memory_id=memory_id).delete()
            calls = ModelCall.objects.filter(memory_id=memory_id)
            lists = map(json.loads, calls.values_list("tools", flat=True).distinct())
            forget_tools(memory_id, but={*chain.from_iterable(lists)})
            if first := calls.order_by("at", "n").first():
                compare_again(first)
