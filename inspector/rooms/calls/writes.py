"""Stores model calls: their messages, and one row for the rest of each call.

- If model calls decide the memory of the conversation (see `calls_decide`), a first transaction
  stores the messages in the ledger. Otherwise, the call gets its own list of messages (see
  `beside`), and the ledger is unchanged.
- Then the patch from the messages to the request is computed without a lock. Messages that cannot
  be stored are only in this patch.
- A last transaction writes the row, and the call's own list if there is one. If this transaction
  fails, the call can be stored again.

A call that already has a row is not stored again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import NamedTuple

from django.utils import timezone

from chatmemory import database, services
from chatmemory.conf import configuration
from chatmemory.database import in_list
from chatmemory.exceptions import ChatMemoryError, MemoryExists
from chatmemory.ledger.transaction import lock_memory
from chatmemory.messages.contents import TextContent
from chatmemory.messages.estimators import count_overhead, estimator_for
from chatmemory.messages.json_values import JsonDict, JsonValue
from chatmemory.messages.message import (
    ChatMessage,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.models import Memory
from chatmemory.windows.window import Counted, Entry, total
from inspector.conf import inspector_configuration
from inspector.rooms.calls.belonging import continued_by, conversation_of, ends_of, key_of
from inspector.rooms.calls.beside import ListBeside, forget_unsent, list_beside
from inspector.rooms.calls.bodies import (
    OWN_FIELDS,
    answer_in,
    answer_made_of,
    content_at,
    made_of,
    messages_in,
    provider_conversation,
    response_id_in,
    tools_in,
    with_content,
)
from inspector.rooms.calls.call import Dropped, DropReason, NewCall
from inspector.rooms.calls.comparing import NOTHING_BEFORE, Place, Prompt, difference
from inspector.rooms.calls.known import (
    KnownList,
    difference_of_turns,
    keep_list,
    read_list,
    rendered_after,
    storable_list,
)
from inspector.rooms.calls.matching import forget_known
from inspector.rooms.calls.models import CallRun, DroppedCalls, ModelCall
from inspector.rooms.calls.patches import Patch, patch
from inspector.rooms.calls.places import encoded
from inspector.rooms.calls.reads import (
    call_after,
    call_compared_with,
    context_behind,
    keep_newest,
    known_before,
    prompt_of,
)
from inspector.rooms.calls.recording import (
    NOT_RECORDED,
    OthersDecide,
    RecordedCall,
    calls_decide,
    contents,
    has_recorded,
    is_joined,
    record_call,
)
from inspector.rooms.calls.rows import (
    insert_call,
    number_of,
    place_of,
    replace_ends,
    run_of,
    save_run,
)
from inspector.rooms.calls.spelling import difference_in_style, plain
from inspector.rooms.calls.tools import SentTool, forget_tools, keep_tools, sent_tools, tool_tokens

AWAITED = 500  # keys of dropped calls of one sender
SENDERS = 100  # names of senders of dropped calls under one prefix
ERROR = 20_000  # characters


@dataclass(frozen=True)
class Stored:
    """Identifies a stored call: its conversation and number. `is_new` is False if the call was
    stored before.
    """

    memory_id: str
    n: int
    is_new: bool


def store(call: NewCall, prefix: str = "", actor: str = "") -> Stored:
    """Store a model call in its conversation, and return its conversation and number. A call that
    is already stored is not stored again.

    `prefix` is the beginning of all conversation IDs that the sender's API token can reach.

    Raises DatabaseError. Raises ChatMemoryError if the call cannot be stored, such as while its
    conversation is being imported.
    """
    key = key_of(call.key, prefix)
    if place := place_of(key):
        return Stored(*place, is_new=False)
    before = continued_by(call, prefix)
    after = context_behind(before) if before else ()
    known = None if after else read_list(call.sent.request, call.format)
    sent = known.messages if known else messages_in(call.sent.request, call.format, after) or ()
    answer = answer_in(call.received.response, call.format) or ()
    digests = [*(filter(None, known.digests) if known else contents(sent)), *contents(answer)]
    memory_id = conversation_of(call, prefix, digests, before)
    new = _New(call, prefix, actor, memory_id, digests, known)
    tools = sent_tools(memory_id, tools_in(call.sent.request))
    while True:
        placed = _placed(new, sent, answer)
        row = _row(new, placed, tools)
        row.key, row.answer_key = key, _answer_key(call, prefix)
        with suppress(_Outdated):
            return _insert(new, row, placed, tools)


class _Outdated(Exception):
    """A text was redacted while its call was being stored."""


class _New(NamedTuple):
    """A call that is being stored, its conversation, and the digests of its messages. `known` is
    its parsed list, or None.
    """

    call: NewCall
    prefix: str
    actor: str
    memory_id: str
    digests: Sequence[bytes]
    known: KnownList | None


@dataclass(frozen=True)
class _Placed:
    """The messages of a call, where they are stored: in the ledger, beside it, or nowhere."""

    recorded: RecordedCall = NOT_RECORDED
    beside: ListBeside | None = None

    @property
    def sent(self) -> list[ChatMessage]:
        return self.beside.sent if self.beside else _messages(self.recorded.request)

    @property
    def tokens(self) -> int:
        """The tokens of the sent messages, as counted by chatmemory."""
        return self.beside.tokens if self.beside else _tokens(self.recorded.request)


def _answer_key(call: NewCall, prefix: str) -> str:
    id = response_id_in(call.received.response, call.format)
    return key_of(id, prefix) if id else ""


# The ledger


class _NotStorable(Exception):
    """The messages of a call cannot be in a ledger."""


def _placed(new: _New, sent: Sequence[ChatMessage], answer: Sequence[ChatMessage]) -> _Placed:
    """Place the messages of a call in the ledger, or beside it if others decide the memory."""
    with suppress(_NotStorable):
        if sent:
            return _placed_messages(new, sent, answer)
    with suppress(MemoryExists), database.atomic():
        if not Memory.objects.filter(pk=new.memory_id).exists():
            services.create(new.memory_id, None, actor=new.actor)
            CallRun.objects.create(memory_id=new.memory_id, prefix=new.prefix)
    return _Placed()


def _placed_messages(
    new: _New, sent: Sequence[ChatMessage], answer: Sequence[ChatMessage]
) -> _Placed:
    """Store the messages in the ledger or beside it. Raises _NotStorable, or an error that may be
    gone when the call comes again.
    """
    memory_id = new.memory_id
    try:
        sent = storable_list(new.known) if new.known else sent
        if has_recorded(memory_id) or _calls_decide(memory_id):
            with suppress(OthersDecide):
                return _Placed(
                    record_call(memory_id, sent, answer, actor=new.actor, prefix=new.prefix)
                )
        return _Placed(beside=list_beside(memory_id, sent, _run_of(memory_id)))
    except ChatMemoryError as error:
        if type(error).__name__ in _UNSTORABLE:
            raise _NotStorable from error
        raise


def _calls_decide(memory_id: str) -> bool:
    return calls_decide(Memory.objects.filter(pk=memory_id).first(), _run_of(memory_id))


def _run_of(memory_id: str) -> CallRun | None:
    with database.cursor() as cursor:
        return run_of(memory_id, cursor)


# Errors of the messages themselves. Other errors, such as an unfinished import, may go away before
# the call comes again.
_UNSTORABLE = ("MessageTooLarge", "UnstorableText", "WindowTooLarge", "InvalidMessage")


# The row


def _row(new: _New, placed: _Placed, tools: Sequence[SentTool]) -> ModelCall:
    """Return the row of a call without its number. Everything slow is computed here."""
    call, recorded = new.call, placed.recorded
    sent, received, messages = call.sent, call.received, placed.sent
    is_whole = not provider_conversation(sent.request)
    return ModelCall(
        memory_id=new.memory_id,
        source=call.source,
        format=call.format,
        provider=plain(call.provider, 64),
        model=plain(call.model, 255),
        at=call.at,
        duration=received.duration,
        is_exact=sent.is_exact and not sent.removed and is_whole,
        removed=sent.removed,
        step=recorded.step,
        answer_step=recorded.answer_step,
        difference=_json(_difference(new, messages, has_tools=bool(tools))),
        style=sent.style,
        tools=json.dumps([each.digest for each in tools]),
        response=_json(_response(call, _messages(recorded.answer))),
        headers=_json(dict(sent.headers)),
        **received.usage._asdict(),
        counted=_counted(messages, placed.tokens) + _tokens(tools),
        is_countable=not any(map(_has_media, messages)),
        finish=plain(received.finish, 64),
        error=plain(received.error, ERROR),
    )


def _difference(new: _New, sent: Sequence[ChatMessage], has_tools: bool) -> Patch | None:
    """Return the patch from the messages to the request."""
    call, known = new.call, new.known
    target: JsonDict = dict(call.sent.request)
    if has_tools:
        target["tools"] = None
    rendered = rendered_after(known.rendered, sent, call.format) if known and sent else None
    if known is not None and rendered is not None:
        turns = known.turns[len(known.turns) - len(target[OWN_FIELDS[call.format][0]]) :]
        found = difference_of_turns(rendered, turns, target, call.format)
        if found is not None:
            keep_list(known, rendered)
            return found
    made = made_of(sent, call.format) if sent else {}
    return difference_in_style(made, target, call.sent.style)


def _messages(entries: Iterable[Entry]) -> list[ChatMessage]:
    return [each.message for each in entries if each.message is not None]


def _response(call: NewCall, answer: Sequence[ChatMessage]) -> JsonValue:
    """Return the patch from the answer's messages to the answer; None without an answer."""
    if call.received.response is None:
        return None
    response = dict(call.received.response)
    rendered = answer_made_of(answer, call.format)
    content = content_at(response, call.format)
    if rendered is None or content is None:
        return {"whole": response}
    return {"around": with_content(response, call.format, None), "said": patch(rendered, content)}


def _json(value: JsonValue) -> str:
    """Return JSON of plain characters, which every database can hold; empty for None."""
    return "" if value is None else json.dumps(value, separators=(",", ":"))


def _counted(sent: Sequence[ChatMessage], tokens: int) -> int:
    """Return `tokens` plus the overhead of a request; 0 without messages."""
    return tokens + count_overhead(estimator_for(configuration().ESTIMATOR)) if sent else 0


def _tokens(counted: Iterable[Counted]) -> int:
    return total(counted).tokens


def _has_media(message: ChatMessage) -> bool:
    if not isinstance(message, UserMessage | ToolExecutionResultMessage):
        return False
    return any(not isinstance(each, TextContent) for each in message.contents)


def _insert(new: _New, row: ModelCall, placed: _Placed, tools: Sequence[SentTool]) -> Stored:
    """Give a row its number and store it, unless the call has been stored in the meantime.

    Raises MemoryNotFound if the conversation was deleted meanwhile, and _Outdated.
    """
    with database.atomic(), database.cursor() as cursor:
        lock_memory(row.memory_id, cursor=cursor)
        run = run_of(row.memory_id, cursor)
        run = run or CallRun(memory_id=row.memory_id, prefix=new.prefix, is_own=False)
        row.n = run.calls = run.calls + 1
        run.changed_at = timezone.now()
        before = known_before(row) if placed.recorded.continues else None
        if before is None and (n := number_of(row.memory_id, row.key, cursor)):
            return Stored(row.memory_id, n, is_new=False)
        places = placed.recorded.places
        if placed.beside is not None:
            places = _keep_beside(run, row, placed.beside)
        prompt = Prompt([each.digest for each in tools], places)
        following = call_after(row) if before is None else None
        if new.digests and following is None:
            run.digests = b"".join(new.digests)
            ends = ends_of(row.memory_id, new.prefix, new.digests, row.at)
            replace_ends(row.memory_id, ends, cursor)
        save_run(run, cursor)
        _compare(row, prompt, _tokens(tools), before.prompt if before else None)
        insert_call(row, cursor)
        keep_tools(row.memory_id, tools)
        if following is None and row.step is not None:
            database.on_commit(keep_newest, row, prompt)
        if following is not None:  # it had been compared with the call before this one
            compare_again(following)
    return Stored(row.memory_id, row.n, is_new=True)


def _keep_beside(run: CallRun, row: ModelCall, beside: ListBeside) -> list[Place]:
    """Store the list of a call that is not in the ledger, and return its places. Raises
    _Outdated.
    """
    if beside.is_outdated:
        raise _Outdated
    run.is_own = run.is_own and not is_joined(run)
    run.known_seq = max(run.known_seq, beside.known_seq)
    references = beside.keep(run)
    row.places = encoded(references)
    return beside.places(references)


def compare_again(call: ModelCall) -> None:
    """Compare a stored call again with its previous call, and save the result. Use this function
    when another call has become the previous call: an earlier call was stored late, or old calls
    were deleted.
    """
    prompt = prompt_of(call)
    _compare(call, prompt, tool_tokens(call.memory_id, prompt.tools))
    call.save(update_fields=["shared", "again", "is_broken"])


def _compare(
    call: ModelCall, prompt: Prompt, tokens: int, prompt_before: Prompt | None = None
) -> None:
    """Fill in the columns that compare a model call with the previous one. `prompt_before` is the
    previous prompt, if the caller knows it.
    """
    if prompt_before is None and call.has_list and (before := call_compared_with(call)):
        prompt_before = prompt_of(before)
    found = difference(prompt_before, prompt, tokens) if prompt_before else NOTHING_BEFORE
    call.shared, call.again, call.is_broken = found.shared, found.again, found.is_broken


# Dropped calls, and old ones


def count_dropped(dropped: Iterable[Dropped], prefix: str) -> None:
    """Count, in `DroppedCalls`, the calls that were not stored. Each reason and sender has its own
    count. A call with a key is not counted if a stored call has the same key.

    `prefix` is the beginning of all conversation IDs that the sender's API token can reach.
    """
    found: defaultdict[tuple[DropReason, str], list[str]] = defaultdict(list)
    for why, sender, key, count in dropped:
        found[why, plain(sender, 100)] += [key and key_of(key, prefix)] * count
    for (why, sender), keys in sorted(found.items()):
        _count(prefix, why, sender, keys)
    awaited = {key for keys in found.values() for key in keys if key}
    if awaited:
        stored = ModelCall.objects.filter(in_list("key", awaited))
        _count_no_more(stored.values_list("key", flat=True), prefix)


def count_no_more(stored: Iterable[NewCall], prefix: str) -> None:
    """Lower the counts of calls that were not stored, because the calls in `stored` are stored now.
    Calls that were never counted are ignored.

    For example, a trace span without messages is counted, and its messages arrive later. `prefix`
    is the same as in `count_dropped`.
    """
    _count_no_more((key_of(call.key, prefix) for call in stored), prefix)


def _count(prefix: str, why: DropReason, sender: str, keys: Sequence[str]) -> None:
    """Count calls that were not stored. Each has a key or "". A key that is already counted is not
    counted again.
    """
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
    """Delete calls that are older than the setting INSPECTOR["CALL_DAYS"] allows. Also delete each
    row of `DroppedCalls` that has counted no call for this number of days. Messages in history
    stay.
    """
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
            forget_unsent(memory_id)
            if not calls.exclude(places="").exists():
                forget_known(memory_id)
            if first := calls.order_by("at", "n").first():
                compare_again(first)
