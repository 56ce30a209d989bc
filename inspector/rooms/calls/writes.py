"""A call is stored: its messages by the protocol of clients' lists, and a row with what is beside.

The ledger is changed first, in a transaction of its own. What the request has more than the window
is found without a lock, and the row is written in a second transaction. A call that comes again,
after a failure in between or as another signal, changes nothing that is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.db.models import F
from django.utils import timezone

from chatmemory import database, services
from chatmemory.conf import configuration
from chatmemory.core.contents import TextContent
from chatmemory.core.estimators import count_overhead, count_tokens, estimator_for
from chatmemory.core.exceptions import ChatMemoryError, MemoryExists, MemoryNotFound
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.core.runs import digest_of, digests_of
from chatmemory.core.stored_policies import can_decide
from chatmemory.models import Memory, Step
from chatmemory.services import protocol
from inspector.conf import inspector_configuration
from inspector.rooms.calls.belonging import conversation_of, keep_ends
from inspector.rooms.calls.bodies import (
    answer_in,
    answer_made_of,
    made_of,
    messages_in,
    said_at,
    tool_name,
    tools_in,
    with_said,
)
from inspector.rooms.calls.call import Dropped, GivenCall
from inspector.rooms.calls.comparing import Prompt, difference
from inspector.rooms.calls.models import CallRun, CallTool, DroppedCalls, ModelCall
from inspector.rooms.calls.patches import patch
from inspector.rooms.calls.reads import prompt_of, told, window_messages, window_rows
from inspector.rooms.calls.spelling import difference_and_style

SENDERS = 100  # names of senders of dropped calls, of one prefix
ERROR = 20_000  # characters
TOKENS_MAX = 2**31 - 1


@dataclass(frozen=True)
class Stored:
    """Where a call is. It `is_new` unless it was there before."""

    memory_id: str
    n: int
    is_new: bool


@dataclass(frozen=True)
class _Placed:
    """The steps after which the window is the list of a call, and the list with its answer."""

    step: int | None = None
    answer_step: int | None = None


def store(call: GivenCall, prefix: str = "", actor: str = "") -> Stored:
    """Store a call in the conversation that it belongs to, and return where it is.

    Raises ChatMemoryError if it cannot be stored, such as one of a conversation that is imported at
    the moment, and DatabaseError.
    """
    key = _key(call, prefix)
    if known := ModelCall.objects.filter(key=key).first():
        return Stored(known.memory_id, known.n, is_new=False)
    asked = messages_in(call.request, call.format)
    answered = answer_in(call.response, call.format)
    digests = digests_of([*(asked or ()), *(answered or ())])
    memory_id = conversation_of(call, prefix, digests)
    placed = _Placed()
    if asked:
        with suppress(_NotStorable):
            placed = _in_ledger(memory_id, asked, answered or (), actor)
    with suppress(MemoryExists):
        if placed.step is None and not Memory.objects.filter(pk=memory_id).exists():
            services.create(memory_id, None, actor=actor)
    row = _row(call, memory_id, key, placed)
    return _insert(call, row, prefix, digests, is_own=_is_own(memory_id))


def _key(call: GivenCall, prefix: str) -> str:
    """Return what names a call among those of a prefix."""
    return sha256(f"{prefix}\0{call.key}".encode()).hexdigest()[:32]


# The ledger


class _NotStorable(Exception):
    """The messages of a call cannot be in a ledger."""


def _in_ledger(
    memory_id: str, asked: Sequence[ChatMessage], answered: Sequence[ChatMessage], actor: str
) -> _Placed:
    """Make the window of a conversation the list of a call, and then add the answer.

    Where another program decides the memory, the window is then set back to what it was, and the
    answer is not added: that program adds it. Raises _NotStorable.
    """
    before = protocol.get_messages(memory_id)
    is_own = _is_own(memory_id)
    known = {digest_of(each): each for each in before if isinstance(each, AiMessage)}
    sent = [_known(each, known) for each in asked]
    try:
        services.storable_messages([*sent, *answered])
        _count([*sent, *answered])
        with database.atomic():
            step = _set(memory_id, sent, actor)
            if not is_own:
                services.set_messages(memory_id, before, actor=actor)
                return _Placed(step)
            whole = [*sent, *answered]
            return _Placed(step, _set(memory_id, whole, actor) if answered else None)
    except (MemoryNotFound, ChatMemoryError) as error:
        if type(error).__name__ in _UNSTORABLE:
            raise _NotStorable from error
        raise


# Errors of the messages. Others may be gone when the call comes again, as an unfinished import is.
_UNSTORABLE = ("MessageTooLarge", "UnstorableText", "WindowTooLarge", "InvalidMessage")


def _is_own(memory_id: str) -> bool:
    """Whether calls decide the memory of a conversation: they have begun it, or it is new."""
    run = CallRun.objects.filter(memory_id=memory_id).values_list("is_own", flat=True).first()
    if run is not None:
        return run
    memory = Memory.objects.filter(pk=memory_id).first()
    if memory is None:
        return True
    policy = memory.policy
    return not (can_decide(policy) and not policy.meters_only)


def _known(message: ChatMessage, known: Mapping[bytes, ChatMessage]) -> ChatMessage:
    """Return an answer as it was recorded, where a client sends it back in another spelling."""
    return known.get(digest_of(message), message) if isinstance(message, AiMessage) else message


def _count(messages: Iterable[ChatMessage]) -> None:
    """Count tokens before any lock is held. They are remembered in the messages."""
    estimator = estimator_for(configuration().ESTIMATOR)
    for message in messages:
        count_tokens(estimator, message)


def _set(memory_id: str, messages: Sequence[ChatMessage], actor: str) -> int:
    result = protocol.update_messages(memory_id, messages, actor=actor)
    if result.step is not None:
        return result.step
    step: int = Memory.objects.values_list("last_step", flat=True).get(pk=memory_id)
    return step


# The row


def _row(call: GivenCall, memory_id: str, key: str, placed: _Placed) -> ModelCall:
    """Return the row of a call, without its number, and all that must be computed for it."""
    asked = window_messages(memory_id, placed.step)
    made = made_of(asked, call.format) if asked else {}
    wanted: dict[str, Any] = dict(call.request)
    tools = tools_in(wanted)
    if tools:
        wanted["tools"] = None
    difference, style = difference_and_style(made, wanted, call.body, dict(call.request))
    usage, own = call.usage, _counted(memory_id, placed.step)
    return ModelCall(
        memory_id=memory_id,
        key=key,
        source=call.source,
        format=call.format,
        provider=call.provider,
        model=call.model,
        at=call.at,
        duration=call.duration,
        is_exact=call.is_exact,
        step=placed.step,
        answer_step=placed.answer_step,
        difference=_json(difference),
        style=style,
        tools=json.dumps([_digest(each) for each in tools]),
        response=_json(_response(call, memory_id, placed, len(asked))),
        headers=_json(dict(call.headers)),
        **usage._asdict(),
        counted=own + sum(map(tool_tokens, tools)),
        is_countable=not any(map(_has_media, asked)),
        **_beside_the_one_before(call, memory_id, placed.step, tools),
        finish=call.finish,
        error=call.error[:ERROR].replace("\0", ""),
    )


def _response(call: GivenCall, memory_id: str, placed: _Placed, asked: int) -> Any:
    """Return the patch from the answer's messages to the answer; None without an answer."""
    if call.response is None:
        return None
    response = dict(call.response)
    answered = window_messages(memory_id, placed.answer_step)[asked:]
    made = answer_made_of(answered, call.format)
    said = said_at(response, call.format)
    if made is None or said is None:
        return {"whole": response}
    return {"around": with_said(response, call.format, None), "said": patch(made, said)}


def _json(value: Any) -> str:
    """Return JSON of plain characters, which every database can hold; empty for None."""
    return "" if value is None else json.dumps(value, separators=(",", ":"))


def _digest(definition: Mapping[str, Any]) -> str:
    return sha256(json.dumps(definition).encode()).hexdigest()[:32]


def tool_tokens(definition: Mapping[str, Any]) -> int:
    """Return the tokens of a tool's definition as JSON, about what a provider counts for it."""
    estimator = estimator_for(configuration().ESTIMATOR)
    text = json.dumps(definition, ensure_ascii=False, separators=(",", ":"))
    return estimator.estimate_token_count_in_text(text)


def _counted(memory_id: str, step: int | None) -> int:
    if step is None:
        return 0
    found = Step.objects.filter(memory_id=memory_id, n=step)
    tokens: int = next(iter(found.values_list("tokens_after", flat=True)), 0)
    return tokens + count_overhead(estimator_for(configuration().ESTIMATOR))


def _beside_the_one_before(
    call: GivenCall, memory_id: str, step: int | None, tools: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the columns that compare a call with the one that began before it."""
    earlier = ModelCall.objects.filter(memory_id=memory_id, at__lt=call.at, step__isnull=False)
    before = earlier.order_by("-at", "-n").first()
    if before is None or step is None:
        return {}
    tokens = sum(map(tool_tokens, tools))
    digests = tuple(map(_digest, tools))
    found = difference(
        prompt_of(told(before)), Prompt(digests, tokens, window_rows(memory_id, step))
    )
    return {"shared": found.shared, "again": found.again, "is_broken": found.is_broken}


def _has_media(message: ChatMessage) -> bool:
    if not isinstance(message, UserMessage | ToolExecutionResultMessage):
        return False
    return any(not isinstance(each, TextContent) for each in message.contents)


def _insert(
    call: GivenCall, row: ModelCall, prefix: str, digests: Sequence[bytes], is_own: bool
) -> Stored:
    """Give a row its number, and store it unless the call has come in the meantime.

    Raises MemoryNotFound if the conversation was deleted in between.
    """
    tools = {_digest(each): each for each in tools_in(call.request)}
    tokens = {digest: min(tool_tokens(each), TOKENS_MAX) for digest, each in tools.items()}
    with database.atomic():
        memory = Memory.objects.select_for_update().filter(pk=row.memory_id)
        if not memory.exists():
            raise MemoryNotFound(f"no conversation has the id {row.memory_id!r}")
        known = ModelCall.objects.filter(memory_id=row.memory_id, key=row.key).first()
        if known:
            return Stored(known.memory_id, known.n, is_new=False)
        run, _ = CallRun.objects.get_or_create(
            memory_id=row.memory_id, defaults={"prefix": prefix, "is_own": is_own}
        )
        row.n = run.calls = run.calls + 1
        newest = ModelCall.objects.filter(memory_id=row.memory_id, at__gt=row.at).exists()
        if digests and not newest:
            run.digests = b"".join(digests)
            keep_ends(row.memory_id, prefix, digests, call)
        run.save()
        row.save(force_insert=True)
        CallTool.objects.bulk_create(
            [
                CallTool(
                    memory_id=row.memory_id,
                    digest=digest,
                    name=tool_name(each)[:255].replace("\0", ""),
                    definition=json.dumps(each),
                    tokens=tokens[digest],
                )
                for digest, each in tools.items()
            ],
            ignore_conflicts=True,
        )
    return Stored(row.memory_id, row.n, is_new=True)


# What is dropped, and what is old


def count_dropped(dropped: Iterable[Dropped], prefix: str) -> None:
    """Count what was left out, by its reason and its sender."""
    counts: dict[Dropped, int] = {}
    for each in dropped:
        each = each._replace(sender=each.sender[:100].replace("\0", ""))
        counts[each] = counts.get(each, 0) + 1
    for (why, sender), count in sorted(counts.items()):
        rows = DroppedCalls.objects.filter(prefix=prefix)
        with database.atomic():
            if not rows.filter(why=why, sender=sender).exists() and rows.count() >= SENDERS:
                sender = ""
            row, is_new = DroppedCalls.objects.select_for_update().get_or_create(
                prefix=prefix,
                why=why,
                sender=sender,
                defaults={"count": count, "last_at": timezone.now()},
            )
            if not is_new:
                changed = {"count": F("count") + count, "last_at": timezone.now()}
                DroppedCalls.objects.filter(pk=row.pk).update(**changed)


def forget_old_calls(**_: Any) -> None:
    """Delete calls that are older than INSPECTOR["CALL_DAYS"] allows; their messages stay."""
    days = inspector_configuration().CALL_DAYS
    if days:
        before = timezone.now() - timedelta(days=days)
        ModelCall.objects.filter(at__lt=before).delete()
        DroppedCalls.objects.filter(last_at__lt=before).delete()
