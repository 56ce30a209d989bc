"""Import of transcript files, one step per message.

Before anything is stored, all messages are checked. A long conversation is stored in slices. Its
row has the fingerprint of the content as a label, the policy, and how much is stored; with these,
importing the same file again goes on where it was interrupted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from chatmemory import database
from chatmemory.core.codec import stored_json
from chatmemory.core.exceptions import ChatMemoryError, MemoryExists
from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import MessageWindow, Policy
from chatmemory.core.texts import printable
from chatmemory.formats import Loss, Reading, Refused, Transcript
from chatmemory.ledger.adding import add_all, count_all
from chatmemory.ledger.changes import ChangeResult, NewMessage
from chatmemory.models import Memory, Step
from chatmemory.search import DIGEST_LABEL
from chatmemory.services.conversations import created
from chatmemory.services.defaults import default_policy
from chatmemory.services.fingerprints import fingerprint, is_fingerprint
from chatmemory.services.slices import add_slices, check_all, is_long, set_stored
from chatmemory.services.validation import (
    check_actor,
    check_id,
    check_labels,
    check_policy,
    storable_additions,
)

OTHER_POLICY = "its import under another policy is unfinished: import it again under that policy"

REPEATED = "a system message equal to the one in force, which a memory ignores"


@dataclass(frozen=True)
class Imported:
    """The result for one conversation of a file: stored, already stored, or refused and why.

    `messages` are those that were stored.
    """

    memory_id: str
    messages: int = 0
    already: bool = False
    refused: str = ""
    losses: tuple[Loss, ...] = ()


@dataclass
class Report:
    """The results of importing one file."""

    format: str
    results: list[Imported] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)

    def add(self, result: Imported) -> None:
        self.results.append(result)
        if result.refused:
            self.refused.append(Refused(result.memory_id, result.refused))

    @property
    def stored(self) -> list[Imported]:
        return [result for result in self.results if result.messages]

    @property
    def already(self) -> int:
        return sum(result.already for result in self.results)

    @property
    def lost(self) -> list[tuple[str, int]]:
        """The losses with their counts, the most frequent first."""
        return Counter(loss.what for result in self.stored for loss in result.losses).most_common()


def import_conversation(
    memory_id: str,
    messages: Sequence[ChatMessage | NewMessage],
    policy: Policy,
    *,
    labels: Mapping[str, str] | None = None,
    actor: str = "",
) -> list[ChangeResult]:
    """Create a conversation and add its messages, one step each.

    A long one is stored in several transactions. Until the last, other changes raise
    ImportUnfinished. Raises the exceptions of `create` and `add`; then nothing is stored.
    """
    labels = check_labels(labels or {})
    return list(_import_labelled(memory_id, messages, check_policy(policy), labels, actor))


def _import_labelled(
    memory_id: str,
    messages: Sequence[ChatMessage | NewMessage],
    policy: Policy,
    labels: dict[str, str],
    actor: str,
) -> Iterable[ChangeResult]:
    """Return what each add does; those of a long conversation are made while they are iterated."""
    new = storable_additions(messages)
    if not is_long(new, new.characters):
        count_all((each.message for each in new), policy.estimator)
        with created(memory_id, policy, labels, actor, Step.IMPORTED) as recorder:
            return add_all(recorder, new)
    check_all(new, policy)
    with created(memory_id, policy, labels, actor):
        set_stored(memory_id, 0)
    return _add_rest(memory_id, new, 0, actor)


def _add_rest(
    memory_id: str, new: Sequence[NewMessage], stored: int, actor: str
) -> Iterator[ChangeResult]:
    yield from add_slices(memory_id, new, stored=stored, actor=actor)
    set_stored(memory_id, None)


def import_all(
    reading: Reading, policy: Policy | None = None, prefix: str = "", actor: str = ""
) -> Iterator[Imported]:
    """Import the transcripts of a file and yield a result for each. Ids are prefix + name.

    Without a policy, each conversation gets the default policy of its id, or a window of 20
    messages.

    A conversation that was already imported is skipped. One that exists with other content is
    refused, and the import continues with the next. A redaction erases the fingerprint by which
    the content is known, so the same file is then refused. Raises InvalidValue for an invalid
    actor.
    """
    check_actor(actor)
    named = zip(_names(reading.transcripts), reading.transcripts, strict=True)
    for name, transcript in database.pausing_for_writers(named):
        yield _import(f"{prefix}{name}", transcript, policy, actor)


def _names(transcripts: Iterable[Transcript]) -> Iterator[str]:
    """Yield the names; one that is taken in the file gets the next free number, from 2."""
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    for transcript in transcripts:
        name = found = transcript.name or ""
        while found in taken:
            numbers[name] = numbers.get(name, 1) + 1
            found = f"{name}-{numbers[name]}"
        taken.add(found)
        yield found


def _import(memory_id: str, transcript: Transcript, policy: Policy | None, actor: str) -> Imported:
    labels = {DIGEST_LABEL: fingerprint("import", _content(transcript))}
    try:
        check_id(memory_id)
        own = check_policy(policy or default_policy(memory_id) or MessageWindow(20))
        results = _import_labelled(memory_id, transcript.messages, own, labels, actor)
        return _imported(memory_id, transcript, results)
    except MemoryExists as error:
        return _import_again(memory_id, transcript, own, actor, str(error))
    except ChatMemoryError as error:
        return Imported(printable(memory_id), refused=str(error))


def _content(transcript: Transcript) -> Iterator[bytes]:
    """Yield the JSON of a conversation, message by message."""
    before = b"["
    for message in transcript.messages:
        yield before
        yield stored_json(message).encode("utf-8", "surrogatepass")
        before = b","
    yield b"]" if transcript.messages else b"[]"


def _imported(
    memory_id: str, transcript: Transcript, results: Iterable[ChangeResult], before: int = 0
) -> Imported:
    """Return the result of an import, of which `before` messages were stored earlier."""
    stored = before + sum(result.step is not None for result in results)
    repeated = [Loss("conversation", REPEATED)] * (len(transcript.messages) - stored)
    return Imported(memory_id, stored, losses=(*transcript.losses, *repeated))


def _import_again(
    memory_id: str, transcript: Transcript, policy: Policy, actor: str, exists: str
) -> Imported:
    """Go on with an unfinished import of the same content under the same policy."""
    memory = Memory.objects.filter(pk=memory_id).first()
    label = memory.labels.get(DIGEST_LABEL, "") if memory else ""
    if memory is None or not is_fingerprint(label, "import", _content(transcript)):
        return Imported(memory_id, refused=exists)
    if memory.imported is None:
        return Imported(memory_id, already=True)
    if memory.policy != policy:
        return Imported(memory_id, refused=OTHER_POLICY)
    try:
        new = storable_additions(transcript.messages)
        check_all(new, policy)
        results = _add_rest(memory_id, new, memory.imported, actor)
        return _imported(memory_id, transcript, results, memory.said_count)
    except ChatMemoryError as error:
        return Imported(memory_id, refused=str(error))
