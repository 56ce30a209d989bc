"""Erases a whole conversation, or data that were derived from the text of a message. An audit entry
of the erasure remains.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain

from django.db.models import Model, QuerySet, Value
from django.db.models.expressions import Combinable
from django.utils import timezone

from chatmemory import database
from chatmemory.contradictions import Contradicted, naming
from chatmemory.database_errors import leaving_out_lost_nodes
from chatmemory.exceptions import MemoryNotFound
from chatmemory.ledger.branches import branches_of, source_of
from chatmemory.ledger.deletions import check_hidden
from chatmemory.ledger.transaction import audit, lock_memory, notify_followers, row_count, sizes_of
from chatmemory.ledger.validation import check_change
from chatmemory.models import AuditEntry, IdempotentAnswer, Memory, Message, Stay, Step
from chatmemory.room import Erased
from chatmemory.rooms import keepers, rooms
from chatmemory.search import INDEXED_AT_ONCE, searched_characters
from chatmemory.sqlite_files import empty_log_after_erasure

# Rows in a transaction, which then takes less than a second.
AT_ONCE = 3_000
SLICE = 1_000


def delete(memory_id: str, *, actor: str = "", expected_version: int | None = None) -> None:
    """Delete a conversation with its whole history. This cannot be undone.

    A long conversation is removed in several short transactions. After the first transaction,
    nobody can read the conversation. Raises InvalidValue, MemoryNotFound, VersionConflict.
    """
    check_change(memory_id, actor, expected_version)
    with database.atomic():
        memory = lock_memory(memory_id, expected_version)
        detail: dict[str, int | str] = {
            "steps": memory.last_step,
            "messages": memory.last_seq,
            "head": bytes(memory.head).hex(),
        }
        record_erasure(AuditEntry.Action.DELETE, memory_id, actor, detail)
        _erase_responses(memory_id)
        _ask_rooms(Erased(memory_id))
        database.on_commit(notify_followers, memory_id)
        if source := source_of(memory):
            # Its branches become branches of its own source.
            branches = Memory.objects.filter(branched_from=memory_id)
            saved = branches.filter(created_at__gte=memory.created_at)
            saved.update(branched_from=source.pk)
        if row_count(memory) <= AT_ONCE:
            memory.delete()
        else:
            _erase_findings(memory)
            Memory.objects.filter(pk=memory_id).update(deleted_at=timezone.now(), labels={})
            database.on_commit(purge, memory_id)
        database.on_commit(empty_log_after_erasure)


def delete_all(memory_ids: Iterable[str], actor: str = "") -> None:
    """Delete conversations, in short transactions. A conversation that somebody else deletes
    meanwhile is skipped.

    Raises InvalidValue and MemoryNotFound before any conversation is deleted.
    """
    for part in database.pausing_for_writers(database.parts_of(sizes_of(memory_ids), AT_ONCE)):
        with database.atomic():
            for memory_id in part:
                with suppress(MemoryNotFound):
                    delete(memory_id, actor=actor)


def finish_deletions() -> list[str]:
    """Finish interrupted deletions of conversations. Returns the ids of the conversations that were
    deleted.

    Deletions without an audit entry are left as they are: see `unaudited_deletions`.
    """
    unaudited = set(unaudited_deletions())
    ids = [memory_id for memory_id in _begun_deletions() if memory_id not in unaudited]
    for memory_id in ids:
        purge(memory_id)
    empty_log_after_erasure()
    return ids


def unaudited_deletions() -> list[str]:
    """Return the ids of conversations that are marked as being deleted, but have no audit entry for
    the deletion.

    Somebody may have altered the rows of these conversations. `verify` reports them, and nothing
    removes them.
    """
    return [memory_id for memory_id in _begun_deletions() if not _is_audited(memory_id)]


def _begun_deletions() -> list[str]:
    begun = Memory.with_deleted.filter(deleted_at__isnull=False).order_by("pk")
    return list(begun.values_list("pk", flat=True))


def _is_audited(memory_id: str) -> bool:
    try:
        with naming("the conversation"):
            check_hidden(memory_id)
    except Contradicted:
        return False
    return True


def purge(memory_id: str) -> None:
    """Remove the rows of a conversation that is being deleted, in short transactions."""
    short, text = Value(0), searched_characters()
    slices = (
        iter(partial(purge_slice, memory_id, model, number, size), False)
        for model, number, size in ((Stay, "n", short), (Message, "seq", text), (Step, "n", short))
    )
    for _ in database.pausing_for_writers(chain.from_iterable(slices)):
        pass
    with database.atomic():
        _being_deleted(memory_id).delete()


def purge_slice(memory_id: str, model: type[Model], number: str, size: Combinable) -> bool:
    """Remove rows from the table `model`: the first rows of a conversation that is being deleted,
    as many as fit in a short transaction. Returns False if there was nothing to remove.

    `number` is the column that orders the rows. `size` is an SQL expression for how many characters
    of a row are in the search index. This number decides how long the removal takes. A new
    conversation with the same id is not touched.
    """
    with database.atomic():
        if not _being_deleted(memory_id).select_for_update().exists():
            return False
        rows = model._default_manager.filter(memory_id=memory_id)
        sizes = dict(rows.order_by(number).values_list(number, size)[:SLICE])
        if not sizes:
            return False
        (*_, last) = next(database.parts_of(sizes, INDEXED_AT_ONCE))
        rows.filter(**{f"{number}__lte": last}).delete()
        return True


def _being_deleted(memory_id: str) -> QuerySet[Memory]:
    rows: QuerySet[Memory] = Memory.with_deleted.filter(pk=memory_id, deleted_at__isnull=False)
    return rows


def known_branches(memory_ids: Iterable[str]) -> list[str] | None:
    """Return the ids of the branches of conversations, including branches of branches. None if they
    cannot be read, because the database or a node of its cluster is down.
    """
    with leaving_out_lost_nodes():
        return branches_of(memory_ids)
    return None


def _erase_findings(memory: Memory) -> None:
    """Erase the rows that keepers have derived for a conversation."""
    for keeper in keepers():
        keeper.model.objects.filter(memory=memory).delete()
        if keeper.part is not None:
            keeper.part.objects.filter(memory=memory).delete()


def erase_derived(memory: Memory, seqs: Sequence[int]) -> None:
    """Erase everything that was derived from the text of the messages `seqs`: stored responses,
    derived data, and the copies that rooms keep.

    The rows of the messages themselves are not changed here.
    """
    _erase_responses(memory.pk)
    _erase_findings(memory)
    _ask_rooms(Erased(memory.pk, seqs))


def _ask_rooms(erased: Erased) -> None:
    """Let rooms erase their copies of the erased text."""
    for room in rooms():
        room.erasing(erased)


def _erase_responses(memory_id: str) -> None:
    """Erase the stored responses of a conversation. Their idempotency keys are kept, so that no
    request is carried out twice.
    """
    responses = IdempotentAnswer.objects.filter(memory_id=memory_id)
    responses.update(request="", headers={}, body="")


def record_erasure(action: str, memory_id: str, actor: str, detail: dict[str, int | str]) -> None:
    AuditEntry.objects.create(
        at=timezone.now(), actor=actor, action=action, memory_id=memory_id, detail=detail
    )
    audit(f"{action} {memory_id!r}", action=action, actor=actor, memory_id=memory_id, **detail)
