"""Import of transcript files: one transaction per conversation, one step per message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from django.db import transaction

from chatmemory.core.codec import messages_to_json
from chatmemory.core.exceptions import ChatMemoryError, MemoryExists
from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import Policy
from chatmemory.core.printable import printable
from chatmemory.formats import Loss, Reading, Refused, Transcript
from chatmemory.ledger.changes import ChangeResult, NewMessage
from chatmemory.managers import DIGEST_LABEL
from chatmemory.models import Memory
from chatmemory.services.fingerprints import fingerprint, is_fingerprint
from chatmemory.services.memories import create
from chatmemory.services.messages import add


@dataclass(frozen=True)
class Imported:
    """The result for one conversation of a file: stored, already stored, or refused and why."""

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
    """Create a conversation and add its messages, one step each, in one transaction.

    Raises the exceptions of `create` and `add`; then nothing is stored.
    """
    with transaction.atomic():
        create(memory_id, policy, labels, actor)
        return add(memory_id, messages, actor=actor)


def import_all(
    reading: Reading, policy: Policy, prefix: str = "", actor: str = ""
) -> Iterator[Imported]:
    """Import the transcripts of a file and yield a result for each. Ids are prefix + name.

    A conversation that was already imported is skipped. One that exists with other content is
    refused, and the import continues with the next. A redaction erases the fingerprint by which
    the content is known, so the same file is then refused.
    """
    names: Counter[str] = Counter()
    for transcript in reading.transcripts:
        name = transcript.name or ""
        names[name] += 1
        suffix = f"-{names[name]}" if names[name] > 1 else ""
        yield _import(f"{prefix}{name}{suffix}", transcript, policy, actor)


def _import(memory_id: str, transcript: Transcript, policy: Policy, actor: str) -> Imported:
    content = messages_to_json(transcript.messages).encode("utf-8", "surrogatepass")
    labels = {DIGEST_LABEL: fingerprint("import", content)}
    try:
        import_conversation(memory_id, transcript.messages, policy, labels=labels, actor=actor)
    except MemoryExists as error:
        labels = Memory.objects.values_list("labels", flat=True).get(pk=memory_id)
        if is_fingerprint(labels.get(DIGEST_LABEL, ""), "import", content):
            return Imported(memory_id, already=True)
        return Imported(memory_id, refused=str(error))
    except ChatMemoryError as error:
        return Imported(printable(memory_id), refused=str(error))
    return Imported(memory_id, len(transcript.messages), losses=transcript.losses)
