"""Which conversation a call belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from chatmemory import database
from chatmemory.core.runs import NEWEST, divided, ends, goes_on_with
from chatmemory.models import Memory
from chatmemory.services.validation import ID_LENGTH, is_id
from inspector.rooms.calls.call import GivenCall
from inspector.rooms.calls.models import CallEnd, CallRun

LOOKED_FOR = 400  # of the newest messages of a list: a run ends at one of them


def conversation_of(call: GivenCall, prefix: str, digests: Sequence[bytes]) -> str:
    """Return the id of the conversation that a call belongs to, which may be new.

    It is the prefix and what the sender calls the conversation. Without that, it is the run that
    the call goes on with (see `core.runs`), or else a new one. `digests` are those of the call's
    messages and of its answer.
    """
    if call.session:
        return _named(prefix, call.session)
    if digests and (found := goes_on_with(_runs(prefix, digests), digests)):
        return found[0]
    digest = sha256(call.key.encode()).hexdigest()[:6]
    return _named(prefix, f"call-{call.at:%m%d-%H%M%S}-{digest}")


def _named(prefix: str, name: str) -> str:
    """Return an id with a prefix. A name that no id can have is replaced by its digest."""
    if is_id(found := f"{prefix}{name}"):
        return found
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
    return f"{prefix[: ID_LENGTH - len(digest)]}{digest}"


def _runs(prefix: str, digests: Sequence[bytes]) -> list[tuple[str, list[bytes]]]:
    """Return the newest runs that may go on with a list, by the ids of their conversations."""
    wanted = {each.hex() for each in digests[-LOOKED_FOR:]} | {digests[0].hex()}
    found = CallEnd.objects.filter(database.in_list("digest", wanted), prefix=prefix)
    ids = [*dict.fromkeys(found.order_by("-at").values_list("memory_id", flat=True)[: 5 * NEWEST])]
    known = Memory.objects.filter(database.in_list("id", ids)).values_list("id", flat=True)
    runs = CallRun.objects.filter(database.in_list("memory_id", [*known]))
    lists = {run.memory_id: divided(bytes(run.digests)) for run in runs}
    return [(id, lists[id]) for id in ids if id in lists]


def keep_ends(memory_id: str, prefix: str, digests: Sequence[bytes], call: GivenCall) -> None:
    """Remember by what a run is looked for, in the transaction that stores its newest call: its
    end, and its first message for a call that was sent again or comes late.
    """
    CallEnd.objects.filter(memory_id=memory_id).delete()
    CallEnd.objects.bulk_create(
        CallEnd(memory_id=memory_id, digest=each.hex(), prefix=prefix, at=call.at)
        for each in {*ends(digests), digests[0]}
    )
