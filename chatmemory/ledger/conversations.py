"""Services that create, change and label conversations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial

from chatmemory import database
from chatmemory.exceptions import MemoryNotFound
from chatmemory.ledger.adding import Recount, change_policy
from chatmemory.ledger.defaults import Default, chosen_policy
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.transaction import (
    audit,
    check_imported,
    locked,
    locked_new,
    sizes_of,
    unsaved_memory,
)
from chatmemory.ledger.validation import check_id, check_labels, check_policy
from chatmemory.models import Memory
from chatmemory.search import DIGEST_LABEL, user_labels
from chatmemory.windows.policies import Policy

LABELLED_AT_ONCE = 200  # conversations that take about a third of a second


def create(
    memory_id: str,
    policy: Policy | Default | None = "default",
    labels: Mapping[str, str] | None = None,
    actor: str = "",
) -> Memory:
    """Create an empty conversation. This is not a step.

    With the policy "default", the conversation gets the default policy of its id. With None, the
    client decides what is in the window.

    Raises MemoryExists, DeletionUnfinished, InvalidValue, PolicyUnavailable.
    """
    check_id(memory_id)
    policy = check_policy(chosen_policy(memory_id, policy))
    with created(memory_id, policy, check_labels(labels or {}), actor) as recorder:
        return recorder.memory


@contextmanager
def created(
    memory_id: str, policy: Policy | None, labels: dict[str, str], actor: str, note: str = ""
) -> Iterator[Recorder]:
    """Create a conversation, and yield its recorder to a `with` block. The changes that the block
    makes by the recorder are written when the block ends.

    The caller has checked the policy and the labels.
    """
    create = partial(unsaved_memory, memory_id, labels, policy)
    with locked_new(memory_id, create, actor=actor, note=note) as recorder:
        audit(f"create {memory_id!r}", action="create", actor=actor, memory_id=memory_id)
        yield recorder


def change(
    memory_id: str,
    *,
    policy: Policy | None = None,
    labels: Mapping[str, str] | None = None,
    recount: Recount | None = None,
    actor: str = "",
    expected_version: int | None = None,
) -> Memory:
    """Change the policy of a conversation, its labels, or both. Each change is a step; an equal
    value makes no step.

    - `policy`: the new policy; None keeps the current policy. A lower limit evicts nothing at once.
      Messages over the limit are hidden from the model, and the next add evicts them. If the limit
      is raised before that add, they are shown again (LangChain4j trims on reading).
    - `labels`: the labels that replace all current labels; None keeps the current labels. The label
      that identifies an import always stays.
    - `recount`: the window, counted by the new policy's estimator. Without `recount`, the window is
      counted before the lock.

    Raises MemoryNotFound, InvalidValue, UnknownEstimator, VersionConflict.
    """
    policy = check_policy(policy)
    new_labels = None if labels is None else check_labels(labels)
    check_id(memory_id)
    if policy is not None and recount is None:
        recount = Recount.ahead(memory_id, policy.estimator)
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        if policy is not None:
            change_policy(recorder, policy, recount)
        if new_labels is not None:
            _set_labels(recorder, new_labels)
        return recorder.memory


def label(memory_ids: Iterable[str], name: str, value: str, actor: str = "") -> None:
    """Give conversations the label `name` with this value, in short transactions. If a conversation
    already has the label, its value changes. A conversation that is deleted meanwhile is skipped.

    Raises MemoryNotFound, InvalidValue and ImportUnfinished before any conversation is changed.
    """
    sizes = sizes_of(memory_ids)
    for row in Memory.objects.filter(id__in=list(sizes)):
        check_labels({**user_labels(row.labels), name: value})
        check_imported(row)
    for part in database.pausing_for_writers(
        database.parts_of(dict.fromkeys(sizes, 1), LABELLED_AT_ONCE)
    ):
        with database.atomic():
            for memory_id in part:
                with suppress(MemoryNotFound), locked(memory_id, actor=actor) as recorder:
                    labels = user_labels(recorder.memory.labels)
                    _set_labels(recorder, check_labels({**labels, name: value}))


def _set_labels(recorder: Recorder, labels: dict[str, str]) -> None:
    """Replace all labels. Only the label that identifies an import is kept."""
    own = recorder.memory.labels.keys() & {DIGEST_LABEL}
    recorder.set_labels(labels | {name: recorder.memory.labels[name] for name in own})
