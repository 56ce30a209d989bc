"""Trials: the drafts of a simulation and the limit that it tries, so that it has a URL.

A trial neither locks nor changes the conversation. It is kept for some weeks after it was last
tried, and only the newest ones of each person are kept.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import timedelta

from django.db import IntegrityError
from django.utils import timezone
from django.utils.crypto import salted_hmac

from chatmemory import database
from chatmemory.core.codec import messages_to_json
from chatmemory.core.exceptions import MemoryNotFound
from chatmemory.core.messages import ChatMessage
from chatmemory.ledger.lookup import find_memory
from chatmemory.models import Trial
from chatmemory.services.database_errors import leaving_out_lost_nodes
from chatmemory.services.validation import check_actor, storable_messages

KEY_BYTES = 12
KEPT_FOR = timedelta(days=30)
KEPT_OF_A_PERSON = 50


def keep_trial(
    memory_id: str, drafts: Sequence[ChatMessage], limit: int | None = None, *, actor: str = ""
) -> str:
    """Keep drafts and a limit, and return the key of the trial; equal ones have the same key.

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
    try:
        with database.atomic():
            if not Trial.objects.filter(memory=memory, key=row.key).update(tried_at=now):
                Trial.objects.bulk_create([row], ignore_conflicts=True)
    except IntegrityError:  # told at the commit: the conversation was deleted meanwhile
        raise MemoryNotFound(f"no conversation has the id {memory_id!r}") from None
    with leaving_out_lost_nodes():  # a later trial forgets those
        forget_old_trials()
        _forget_surplus(actor)
    return row.key


def forget_old_trials() -> None:
    """Delete the trials that nobody has tried for some weeks."""
    Trial.objects.filter(tried_at__lt=timezone.now() - KEPT_FOR).delete()


def _forget_surplus(actor: str) -> None:
    """Delete the oldest trials of a person who has more than are kept."""
    mine = Trial.objects.filter(tried_by=actor)
    times = mine.order_by("-tried_at").values_list("tried_at", flat=True)
    for oldest_kept in times[KEPT_OF_A_PERSON - 1 : KEPT_OF_A_PERSON]:
        mine.filter(tried_at__lt=oldest_kept).delete()


def _key(memory_id: str, drafts: str, limit: int | None) -> str:
    """Return a digest that does not let short drafts be guessed: keys are parts of URLs."""
    content = f"{memory_id}\n{limit}\n{drafts}"
    digest = salted_hmac("chatmemory.trial", content, algorithm="sha256").digest()
    return base64.urlsafe_b64encode(digest[:KEY_BYTES]).decode()
