"""Trials: drafts and limits of simulations, stored so that each simulation has a URL.

A trial neither changes nor locks its conversation. Trials are deleted some weeks after somebody
last stored them. Of each person, only the newest trials are kept.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from django.utils import timezone
from django.utils.crypto import salted_hmac

from chatmemory import database
from chatmemory.database_errors import leaving_out_lost_nodes
from chatmemory.exceptions import MemoryNotFound
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.validation import check_actor, storable_messages
from chatmemory.messages.codec import messages_from_json, messages_to_json
from chatmemory.messages.ids import storable_id
from chatmemory.messages.message import ChatMessage
from chatmemory.models import Memory
from chatmemory.reading.simulation import Simulation, simulated
from chatmemory.reading.windows import StoredState
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from inspector.rooms.simulation.models import Trial

KEY_BYTES = 12
KEPT_FOR = timedelta(days=30)
KEPT_OF_A_PERSON = 50


@dataclass(frozen=True)
class WhatIf:
    """A trial: drafts to add, and a limit to try. Without a `limit`, the policy keeps its limit.
    `key` is the key of the stored trial; "" if the trial is not stored.
    """

    drafts: tuple[ChatMessage, ...] = ()
    limit: int | None = None
    key: str = ""

    def policy(self, current: Policy | None) -> Policy | None:
        """Return the `current` policy with the trial's limit. Return None if the trial does not
        change the limit, or if no policy decides the window.
        """
        if not can_decide(current) or self.limit in (None, current.limit):
            return None
        return replace(current, limit=self.limit)


def trial(memory_id: str, key: str) -> WhatIf | None:
    """Return a stored trial of a conversation; None if it is not stored any more. Raises
    UnstorableText.
    """
    row = Trial.objects.filter(memory_id=storable_id(memory_id), key=key).first()
    if row is None:
        return None
    drafts = tuple(draft for draft in messages_from_json(row.drafts) if draft is not None)
    return WhatIf(drafts, row.limit, row.key)


def keep_trial(
    memory_id: str, drafts: Sequence[ChatMessage], limit: int | None = None, *, actor: str = ""
) -> str:
    """Store drafts and a limit as a trial, and return its key. Equal trials have the same key.

    Raises InvalidValue, MemoryNotFound, MessageTooLarge, UnstorableText.
    """
    check_actor(actor)
    memory, now = find_memory(memory_id), timezone.now()
    text = messages_to_json(storable_messages(drafts))
    row = Trial(
        memory=memory,
        key=_key(memory_id, text, limit),
        drafts=text,
        limit=limit,
        tried_by=actor,
        tried_at=now,
    )
    with database.atomic():
        if not Trial.objects.filter(memory=memory, key=row.key).update(tried_at=now):
            Trial.objects.bulk_create([row], ignore_conflicts=True)
        known = Memory.objects.select_for_update(no_key=True).filter(pk=memory.pk)
        if not known.exists():  # it was deleted meanwhile
            raise MemoryNotFound(f"no conversation has the id {memory_id!r}")
    with leaving_out_lost_nodes():  # a later trial forgets those
        forget_old_trials()
        _forget_surplus(actor)
    return row.key


def forget_old_trials() -> None:
    """Delete the trials that nobody has stored for some weeks."""
    Trial.objects.filter(tried_at__lt=timezone.now() - KEPT_FOR).delete()


def _forget_surplus(actor: str) -> None:
    """Delete a person's oldest trials, if the person has too many."""
    mine = Trial.objects.filter(tried_by=actor)
    times = mine.order_by("-tried_at").values_list("tried_at", flat=True)
    for oldest_kept in times[KEPT_OF_A_PERSON - 1 : KEPT_OF_A_PERSON]:
        mine.filter(tried_at__lt=oldest_kept).delete()


def _key(memory_id: str, drafts: str, limit: int | None) -> str:
    """Return a key made of a salted digest. Keys are parts of URLs, and nobody may guess short
    drafts from a key.
    """
    content = f"{memory_id}\n{limit}\n{drafts}"
    digest = salted_hmac("chatmemory.trial", content, algorithm="sha256").digest()
    return base64.urlsafe_b64encode(digest[:KEY_BYTES]).decode()


# What they do


@one_snapshot()
def simulate_trial(
    memory_id: str, trial: WhatIf, at: int | None = None, since: int = 0
) -> Simulation:
    """Return what a trial would do now, or at step `at`.

    `since` is an index in the trial's drafts. The `outlook` of the result describes the effects of
    the draft at this index and of all later drafts. With 0, the effects of the limit are included.

    Raises the exceptions of `simulate`.
    """
    return simulated_trial(StoredState.of(memory_id, at), trial, since)


def simulated_trial(stored: StoredState, trial: WhatIf, since: int = 0) -> Simulation:
    """Return what a trial would do in a state that the caller has read. For `since`, see
    `simulate_trial`.
    """
    policy = trial.policy(stored.policy)
    return simulated(stored, policy, trial.drafts, since=since, are_drafts=True)
