"""Implements LangChain4j's ChatMemoryStore, for clients that decide themselves what is in their
windows.

`get_messages`, `update_messages` and `delete_messages` are LangChain4j's three methods. If several
clients write to one conversation, the last write wins. The memories of this library avoid this:
they use `DjangoChatMemoryStore.transact`, which locks the conversation while a change is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from django.db.models import Sum

from chatmemory.conf import configuration
from chatmemory.exceptions import MemoryNotFound
from chatmemory.ledger.adding import (
    Recount,
    count_all,
    counted_ahead,
    counted_entries,
    ensure_countable,
)
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.defaults import metering_policy
from chatmemory.ledger.messages import clear_messages
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.sql import STAY, WindowMessage, window_messages
from chatmemory.ledger.transaction import Planned, Result, planned, unsaved_memory
from chatmemory.ledger.validation import check_id, storable_messages
from chatmemory.ledger.windows import (
    PART,
    entry_of,
    in_parts,
    open_stays,
    shown_message,
)
from chatmemory.messages.estimators import family_named, is_known, remember_tokens
from chatmemory.messages.ids import storable_id
from chatmemory.messages.message import ChatMessage
from chatmemory.windows.transitions import refill
from chatmemory.windows.window import Window


def get_messages(memory_id: str) -> list[ChatMessage]:
    """Return the messages of the window, also those over the limit. Returns [] for an unknown id,
    and creates no conversation.

    Each message object has its stored token count. Only a redacted message has none, because its
    stored count includes the erased text.
    """
    return [message for _, message in _read(window_messages(storable_id(memory_id)))]


def messages_in_parts(memory_id: str) -> Iterable[ChatMessage]:
    """Return the messages of `get_messages` as an iterable that reads about a megabyte at a time.

    Iterate over it in the same snapshot of the database in which you call this function.
    """
    stays = open_stays(storable_id(memory_id)).filter(memory__deleted_at=None)
    size = stays.aggregate(size=Sum("size"))["size"] or 0
    if size <= PART:
        return get_messages(memory_id)
    return (shown_message(stay.message, stay.overrides) for stay in in_parts(stays))


def get_window(memory_id: str) -> Window:
    """Return the messages of `get_messages` as a window, with their pins and token counts."""
    rows = window_messages(storable_id(memory_id))
    if not rows:
        return Window()
    entries = [entry_of(row[: len(STAY)], message) for row, message in _read(rows)]
    return Window(entries, counted_by=family_named(rows[0].estimator))


def _read(rows: Sequence[WindowMessage]) -> Iterator[tuple[WindowMessage, ChatMessage]]:
    family = family_named(rows[0].estimator) if rows else ""
    for row in rows:
        message = shown_message(row, row.overrides)
        if row.redacted_step is None:
            remember_tokens(message, family, row.tokens)
        yield row, message


def update_messages(
    memory_id: str,
    messages: Sequence[ChatMessage],
    *,
    actor: str = "",
    expected_version: int | None = None,
) -> ChangeResult:
    """Replace the messages of the window by a client's list, without trimming.

    An unknown id creates a conversation. If there is a default policy for the id, the new
    conversation gets a copy of this policy that counts tokens, but evicts nothing.

    Raises InvalidValue for an invalid id, InvalidMessage, MessageTooLarge, UnstorableText,
    VersionConflict.
    """
    return plan_update(memory_id, messages, actor=actor, expected_version=expected_version).write()


def plan_update(
    memory_id: str,
    messages: Sequence[ChatMessage],
    *,
    actor: str = "",
    expected_version: int | None = None,
) -> Planned[ChangeResult]:
    """Prepare the replacement of the window by a client's list. The method `write` of the result
    stores the replacement.

    Takes the arguments of `update_messages`, and raises its exceptions.
    """
    messages = storable_messages(messages)

    def change(recorder: Recorder) -> ChangeResult:
        return replace_window(recorder, messages)

    return by_client(memory_id, messages, change, actor, expected_version)


def by_client(
    memory_id: str,
    messages: Sequence[ChatMessage],
    change: Callable[[Recorder], Result],
    actor: str,
    expected_version: int | None = None,
) -> Planned[Result]:
    """Prepare a change by a client that sends its whole list. Call `write` of the result to store
    the change.

    - `messages`: the client's list. The tokens of its messages are counted now, before the
      conversation is locked.
    - `change`: the function that records the change. `write` returns the function's result.

    For an unknown id, `write` creates the conversation.
    """
    check_id(memory_id)
    estimator, count = counted_ahead(memory_id, messages)
    policy = recount = None
    if estimator is None:
        policy = metering_policy(memory_id)
    elif not is_known(estimator):
        recount = Recount.ahead(memory_id, configuration().ESTIMATOR)
    if policy is not None:
        count_all(messages, policy.estimator)

    def countable(recorder: Recorder) -> Result:
        ensure_countable(recorder, recount)
        return change(recorder)

    create = partial(unsaved_memory, memory_id, policy=policy)
    return planned(
        memory_id,
        countable,
        actor=actor,
        create=create,
        messages=count + len(messages),
        expected_version=expected_version,
    )


def replace_window(recorder: Recorder, messages: Sequence[ChatMessage]) -> ChangeResult:
    """Record a client's list as the new window, without trimming."""
    arrivals = counted_entries(recorder.memory, messages)
    return recorder.replace(refill(recorder.window, arrivals, None), by_client=True)


def delete_messages(
    memory_id: str, *, actor: str = "", expected_version: int | None = None
) -> None:
    """Remove all messages from the window. The history keeps them. For an unknown id, nothing
    happens, unless `expected_version` is given: then MemoryNotFound is raised.

    Raises VersionConflict.
    """
    try:
        clear_messages(memory_id, actor=actor, expected_version=expected_version)
    except MemoryNotFound:
        if expected_version is not None:
            raise
