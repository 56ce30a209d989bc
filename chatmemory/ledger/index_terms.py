"""Leaves a term out of the index, or lists the term again.

The index is the message in memory that lists terms of evicted messages. Leaving out a term and
listing it again are steps, in which a new index replaces the old index. Later indexes leave out the
same terms, until the index leaves memory.
"""

from __future__ import annotations

from chatmemory.exceptions import InvalidValue
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.transaction import locked
from chatmemory.recall.index import apart, index_of
from chatmemory.snapshots import one_snapshot


def leave_out_term(
    memory_id: str, term: str, *, actor: str = "", expected_version: int | None = None
) -> ChangeResult | None:
    """Leave a term out of the index, the message in memory that lists terms of evicted messages.

    A new index without the term replaces the old index, and later indexes leave the term out, too.
    If no term is left, the index leaves memory. Returns None if the term is already left out.

    Raises InvalidValue if the index does not have the term, or if the policy makes no index. Raises
    MemoryNotFound, VersionConflict.
    """
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        return _set_listed(recorder, term, is_listed=False)


def list_term(
    memory_id: str, term: str, *, actor: str = "", expected_version: int | None = None
) -> ChangeResult | None:
    """List a term in the index again, after somebody left it out. Return None if the term is not
    left out.

    Raises the exceptions of `leave_out_term`.
    """
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        return _set_listed(recorder, term, is_listed=True)


@one_snapshot()
def preview_term(memory_id: str, term: str, *, is_listed: bool) -> ChangeResult | None:
    """Return the result that `list_term` would return, or with `is_listed=False`, the result of
    `leave_out_term`. Nothing is stored.

    Raises the exceptions of these functions.
    """
    return _set_listed(Recorder(find_memory(memory_id)), term, is_listed=is_listed)


def _set_listed(recorder: Recorder, term: str, *, is_listed: bool) -> ChangeResult | None:
    old, _ = apart(recorder.window)
    index = index_of(old.message) if old else None
    if index is None or term not in {row.term for row in index.rows}:
        raise InvalidValue(
            "the index in memory does not list this term: choose a term that the index lists"
        )
    if is_listed == (term not in index.left_out):
        return None
    left_out = index.left_out - {term} if is_listed else index.left_out | {term}
    if found := recorder.leave_out(left_out):
        return found
    raise InvalidValue("the policy in force makes no index: set a policy with index_terms first")
