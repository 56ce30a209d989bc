"""Finds the conversation to which a recorded model call belongs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256

from chatmemory import database
from chatmemory.formats.runs import NEWEST, divided, ends, goes_on_with
from chatmemory.ledger.validation import ID_LENGTH, is_id
from chatmemory.messages.json_values import JsonDict, JsonMap
from chatmemory.models import Memory
from inspector.rooms.calls.bodies import RESPONSES, provider_conversation
from inspector.rooms.calls.call import NewCall
from inspector.rooms.calls.models import CallEnd, CallRun, ModelCall

LOOKED_FOR = 400  # the newest messages of a list: one of them must be the end of a run


def key_of(name: str, prefix: str) -> str:
    """Return the digest that identifies a call or a response.

    For a call, `name` is the ID that the recorder or the trace span gave it. For a response, `name`
    is the ID that the provider gave it. `prefix` is the beginning of the conversation IDs that the
    API token can reach. The same `name` has another digest under another prefix.
    """
    found = f"{prefix}\0{name}".encode(errors="surrogatepass")
    return sha256(found).hexdigest()[:32]


def continued_by(call: NewCall, prefix: str) -> ModelCall | None:
    """Return the stored call that a new call continues; None if there is no such call.

    - If the new request names a conversation that OpenAI stores, return the newest answered call
      whose request names that conversation.
    - If the new request has a `previous_response_id`, return the call whose response has this ID.

    `prefix` is the beginning of the conversation IDs that the API token can reach.
    """
    if name := provider_conversation(call.sent.request):
        return _newest_of(name, conversation_of(call, prefix, ()))
    id = call.sent.request.get("previous_response_id")
    if call.format != RESPONSES or not isinstance(id, str) or not id:
        return None
    rows = ModelCall.objects.filter(answer_key=key_of(id, prefix)).order_by("-at", "-n")
    found = rows.first()
    is_known = found and Memory.objects.filter(pk=found.memory_id).exists()
    return found if is_known else None


def _newest_of(name: str, memory_id: str) -> ModelCall | None:
    """Return the newest answered call whose request names this conversation of the provider, or
    None.
    """
    rows = ModelCall.objects.filter(memory_id=memory_id, format=RESPONSES).exclude(answer_key="")
    newest: list[ModelCall] = list(rows.order_by("-at", "-n")[:NEWEST])
    return next((row for row in newest if _conversation_in(row) == name), None)


def _conversation_in(call: ModelCall) -> str:
    """Return the name of the provider's conversation in a stored request. No message is read."""
    changed = json.loads(call.difference or "{}").get("c", {})
    return provider_conversation({"input": "", **_values(changed)})


def _values(changed: JsonMap) -> JsonDict:
    """Return the members that a patch adds to the rendered messages, with their values."""
    return {name: each["v"] for name, each in changed.items() if "v" in each}


def conversation_of(
    call: NewCall, prefix: str, digests: Sequence[bytes], before: ModelCall | None = None
) -> str:
    """Return the ID of the conversation that a call belongs to. The first rule that applies
    decides:

    - If the app names the conversation (`call.session`), the ID is made of `prefix` and this name.
    - If the request continues the stored call `before`, the ID is that of the conversation of
      `before`.
    - If the messages of the call continue the messages of a conversation's newest call (see
      `formats.runs`), the ID is that of this conversation.
    - Otherwise, the ID is new.

    `prefix` is the beginning of the conversation IDs that the API token can reach. `digests`
    identify the contents of the call's messages and of its answer.
    """
    if call.session:
        return _named(prefix, call.session)
    if before is not None:
        return before.memory_id
    if digests and (found := goes_on_with(_runs(prefix, digests), digests)):
        return found[0]
    digest = sha256(call.key.encode()).hexdigest()[:6]
    return _named(prefix, f"call-{call.at:%m%d-%H%M%S}-{digest}")


def _named(prefix: str, name: str) -> str:
    """Return the ID made of a prefix and a name. A name that is no valid ID is replaced by its
    digest.
    """
    if is_id(found := f"{prefix}{name}"):
        return found
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
    return f"{prefix[: ID_LENGTH - len(digest)]}{digest}"


def _runs(prefix: str, digests: Sequence[bytes]) -> list[tuple[str, list[bytes]]]:
    """Return the conversations whose newest call a list may continue: their IDs, and the digests of
    the newest call's messages. The newest conversation comes first.
    """
    looked_for = {each.hex() for each in digests[-LOOKED_FOR:]} | {digests[0].hex()}
    found = CallEnd.objects.filter(database.in_list("digest", looked_for), prefix=prefix)
    ids = [*dict.fromkeys(found.order_by("-at").values_list("memory_id", flat=True)[: 5 * NEWEST])]
    if not ids:
        return []
    runs = CallRun.objects.filter(database.in_list("memory_id", ids), memory__deleted_at=None)
    lists = {run.memory_id: divided(bytes(run.digests)) for run in runs}
    return [(id, lists[id]) for id in ids if id in lists]


def ends_of(
    memory_id: str, prefix: str, digests: Sequence[bytes], at: datetime
) -> Iterator[CallEnd]:
    """Yield the `CallEnd` rows of a call, by which later calls find its conversation. `digests` are
    the digests of the call's messages and of its answer.

    The first digest and the last two digests get a row each. The first digest is for a call that
    arrives late and has only the beginning of this call's messages.
    """
    for each in {*ends(digests), digests[0]}:
        yield CallEnd(memory_id=memory_id, digest=each.hex(), prefix=prefix, at=at)
