"""Imports transcript files. Each message becomes a step. A system message that repeats the current
system message is left out.

In a recorded session of an agent, a client decides the window. Memory has the messages that the
agent saw at each step, and each compaction is a step.

All messages of a conversation are checked before any message is stored. A long conversation is
stored in slices. Until the last slice is stored, other changes of the conversation raise
ImportUnfinished. After an interruption, import the same file under the same policy again to
continue.

If a file has grown, another import adds the new messages. The stored messages must be the beginning
of the conversation in the file, or of one of its branches. A session has branches if its user went
back to an earlier message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Generic, TypeVar

from chatmemory import database
from chatmemory.exceptions import ChatMemoryError, MemoryExists
from chatmemory.formats import Loss, Reading, Refused, Transcript
from chatmemory.inserted import NewMessage
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.defaults import default_policy
from chatmemory.ledger.fingerprints import fingerprint, is_fingerprint
from chatmemory.ledger.redaction import is_redacted
from chatmemory.ledger.slices import (
    add_rest,
    adder,
    check_admitted,
    import_labelled,
    is_long,
    set_stored,
)
from chatmemory.ledger.transaction import locked
from chatmemory.ledger.validation import (
    ID_LENGTH,
    Storable,
    check_actor,
    check_id,
    check_policy,
    storable_additions,
)
from chatmemory.ledger.windows import read_message
from chatmemory.messages.codec import stored_json
from chatmemory.messages.message import ChatMessage, SystemMessage, with_attributes
from chatmemory.messages.sessions import Session
from chatmemory.messages.texts import printable
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.recall.sessions import recorded_messages
from chatmemory.search import DIGEST_LABEL
from chatmemory.windows.policies import MessageWindow, Policy

OTHER_POLICY = (
    "an import of this conversation under a different policy is unfinished: import the "
    "conversation again under that policy"
)

LISTED = 100  # conversations in a report
Result = TypeVar("Result")

REPEATED = "a system message equal to the one in force, which a memory ignores"
CLEARED = "results that the agent's program had cleared, whose texts memory keeps"
MOVED = "compactions that put messages back or in another order, which memory cannot follow"
UNUSED = "the given policy: agent sessions keep their recorded window"


@dataclass(frozen=True)
class Imported:
    """The result for one conversation of a file: imported, stored already (`already`), or not
    imported, with the reason in `refused`.

    - `memory_id`: the ID of the conversation; for a part of the file without an ID, its position,
      such as "line 3".
    - `messages`: the number of messages that this import stored.
    - `is_empty`: whether the conversation has no messages, so that nothing is stored.
    - `losses`: the parts of the file that cannot be stored.
    """

    memory_id: str
    messages: int = 0
    already: bool = False
    refused: str = ""
    is_empty: bool = False
    losses: tuple[Loss, ...] = ()


@dataclass
class Listed(Generic[Result]):
    """A list of conversations for which an import had the same result, such as all refused
    conversations. `count` is the number of these conversations, and `first` has the results of the
    first 100.
    """

    count: int = 0
    first: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        self.count += 1
        if len(self.first) < LISTED:
            self.first.append(result)


@dataclass
class Report:
    """The results of importing one file.

    - `format`: the name of the file's format.
    - `stored`: new conversations, and conversations with new messages.
    - `messages`: the number of messages that this import stored.
    - `known`: conversations that were stored already.
    - `refused`: conversations that cannot be imported.
    - `empty`: the number of conversations without messages.
    - `losses`: how many parts of the file cannot be stored, by kind, such as "attributes of a
      system message".
    - `places`: for each kind in `losses`, the position of the first such part in the file; "" if
      unknown.
    """

    format: str
    stored: Listed[Imported] = field(default_factory=Listed)
    messages: int = 0
    known: Listed[Imported] = field(default_factory=Listed)
    refused: Listed[Refused] = field(default_factory=Listed)
    empty: int = 0
    losses: Counter[str] = field(default_factory=Counter)
    places: dict[str, str] = field(default_factory=dict)

    def add(self, result: Imported) -> None:
        if result.is_empty:
            self.empty += 1
        elif result.refused:
            self.refused.add(Refused(result.memory_id, result.refused))
        elif result.already:
            self.known.add(result)
        else:
            self.stored.add(replace(result, losses=()))
            self.messages += result.messages
            for loss in result.losses:
                self.losses[loss.what] += 1
                self.places.setdefault(loss.what, loss.place)

    @property
    def lost(self) -> list[tuple[str, int]]:
        """The kinds of parts that cannot be stored, each with the position of the first part and
        the number of parts: `("attributes of a system message, first at line 5", 3)`. The most
        frequent kind comes first.
        """
        losses = self.losses.most_common()
        return [(lost_at(what, self.places.get(what, "")), n) for what, n in losses]


def lost_at(what: str, place: str) -> str:
    """Return words about parts of a file that cannot be stored, such as "attributes of a system
    message, first at line 5". `what` is the kind of these parts. `place` is the position of the
    first part in the file, or "" if unknown.
    """
    return f"{what}, first at {place}" if place else what


def import_all(
    reading: Reading, policy: Policy | None = None, prefix: str = "", actor: str = ""
) -> Iterator[Imported]:
    """Import the transcripts of a file and yield a result for each; see `import_each`."""
    return import_each(chain(reading.refused, reading.transcripts), policy, prefix, actor)


def import_each(
    conversations: Iterable[Transcript | Refused],
    policy: Policy | None = None,
    prefix: str = "",
    actor: str = "",
) -> Iterator[Imported]:
    """Import conversations one after the other, and yield a result for each. The new ID is
    `prefix`, followed by the conversation's name. The second conversation named "chat" becomes
    "chat-2".

    If `policy` is None, a conversation gets the default policy for its ID. If no default policy
    matches, the conversation gets a window of 20 messages. A recorded session of an agent gets no
    policy, because memory has what the agent saw.

    If a conversation is stored already, only the messages that are new in the file are added.
    Without new messages, the conversation is skipped. If the stored conversation was not imported,
    or differs from the beginning of the conversation in the file, the import is refused. Of a
    redacted message, only its position and its role are compared with the file.

    Raises InvalidValue for an invalid actor.
    """
    check_actor(actor)
    taken: dict[str, int] = {}
    for group in _with_branches(database.pausing_for_writers(conversations)):
        if isinstance(group, Refused):
            if group.is_empty:
                yield Imported(group.where, is_empty=True)
            else:
                yield Imported(group.where, refused=group.why)
            continue
        ids = [f"{prefix}{_free_name(each.name or '', taken)}" for each in group]
        source = ids[0]
        for memory_id, each in zip(ids, _stored_first(source, group), strict=True):
            yield _import(memory_id, each, policy, actor, "" if memory_id == source else source)


def _with_branches(
    conversations: Iterable[Transcript | Refused],
) -> Iterator[list[Transcript] | Refused]:
    """Yield each conversation together with its branches, which follow it in the file."""
    group: list[Transcript] = []
    for each in conversations:
        if group and not (isinstance(each, Transcript) and each.is_branch):
            yield group
            group = []
        if isinstance(each, Refused):
            yield each
        else:
            group.append(each)
    if group:
        yield group


def _stored_first(memory_id: str, group: list[Transcript]) -> list[Transcript]:
    """Return a conversation and its branches, with the stored one first. A branch can be stored
    under the ID, if the import came before the agent's user went back.
    """
    memory = _stored(memory_id) if len(group) > 1 else None
    going_on = [
        n for n, each in enumerate(group) if memory and _stored_of(memory, each) is not None
    ]
    if 0 not in going_on:
        for n in going_on[:1]:
            group[0], group[n] = group[n], replace(group[0], shared=group[n].shared)
    return group


def _free_name(name: str, taken: dict[str, int]) -> str:
    """Return a name that is not taken: "chat", then "chat-2". `taken` has the last number of each
    name.
    """
    found = name
    while found in taken:
        taken[name] += 1
        found = f"{name}-{taken[name]}"
    taken[found] = 1
    return found


def _import(
    memory_id: str, transcript: Transcript, policy: Policy | None, actor: str, source: str
) -> Imported:
    """Import one conversation. `source` is the ID of the conversation whose branch it is, or ""."""
    try:
        check_id(memory_id)
        if transcript.session:
            transcript = _recorded(transcript, transcript.session, policy)
            own = None
        else:
            own = check_policy(policy or default_policy(memory_id) or MessageWindow(20))
        if memory := _stored(memory_id):
            return _import_again(memory, transcript, own, actor)
        try:
            return _import_new(memory_id, transcript, own, actor, source)
        except MemoryExists:  # another import of the file may have stored it meanwhile
            memory = _stored(memory_id)
            if memory is None:
                raise
            return _import_again(memory, transcript, own, actor)
    except ChatMemoryError as error:
        return Imported(printable(memory_id), refused=str(error))


def _stored(memory_id: str) -> Memory | None:
    found: Memory | None = Memory.objects.filter(pk=memory_id).first()
    return found


def _import_new(
    memory_id: str, transcript: Transcript, policy: Policy | None, actor: str, source: str
) -> Imported:
    """Store a conversation under a new id. Raises MemoryExists."""
    labels = {DIGEST_LABEL: fingerprint("import", _content(transcript))}
    new = _timed(transcript)
    if source and (shared := _shared(source, transcript.shared)):
        labels["from"] = f"{source} step {shared[-1][0]}"[:ID_LENGTH]
        new[: len(shared)] = [each for _, each in shared]
        if any(is_redacted(each.message) for _, each in shared):
            del labels[DIGEST_LABEL]  # its text was redacted
    results = import_labelled(memory_id, new, policy, labels, actor, transcript.session)
    imported = _imported(memory_id, transcript, results)
    if "from" in labels:
        Memory.objects.filter(pk=memory_id).update(branched_from=source)
    return imported


def _timed(transcript: Transcript) -> list[NewMessage]:
    """Return the messages of a transcript, each with its time if the transcript has it."""
    times = transcript.times or (None,) * len(transcript.messages)
    pairs = zip(transcript.messages, times, strict=True)
    return [NewMessage(message, said_at=time) for message, time in pairs]


def _recorded(transcript: Transcript, session: Session, policy: Policy | None) -> Transcript:
    """Return the transcript of an agent's session with all its messages, including summaries, and
    with what cannot be stored.
    """
    moved = sum([*each.window] != window for each, window in session.windows())
    missing = [(CLEARED, len(session.cleared)), (MOVED, moved)]
    details = [f"{what} ({times:,})" for what, times in missing if times]
    details += [UNUSED] * (policy is not None)
    losses = (*transcript.losses, *(Loss("session", what) for what in details))
    return replace(transcript, messages=tuple(recorded_messages(session)), losses=losses)


def _content(transcript: Transcript) -> Iterator[bytes]:
    """Yield what a fingerprint covers: the JSON of each message, and the windows of a session."""
    before = b"["
    for message in transcript.messages:
        yield before
        yield stored_json(message).encode("utf-8", "surrogatepass")
        before = b","
    yield b"]" if transcript.messages else b"[]"
    for each in transcript.session.compactions if transcript.session else ():
        yield f"{each.summary}{each.window}".encode()


def _imported(
    memory_id: str, transcript: Transcript, results: Iterable[ChangeResult], before: int = 0
) -> Imported:
    """Return the result of an import. `before` is the number of messages stored by earlier
    imports.
    """
    stored = before + sum(result.step is not None for result in results)
    repeated = [Loss("conversation", REPEATED)] * (len(transcript.messages) - stored)
    summaries = len(transcript.session.summaries) if transcript.session else 0
    return Imported(memory_id, stored - summaries, losses=(*transcript.losses, *repeated))


def _import_again(
    memory: Memory, transcript: Transcript, policy: Policy | None, actor: str
) -> Imported:
    """Import a conversation that is stored already: continue an unfinished import, or add what the
    file has gained.
    """
    label = memory.labels.get(DIGEST_LABEL, "")
    if not is_fingerprint(label, "import", _content(transcript)):
        return _import_rest(memory, transcript, actor)
    if memory.imported is None:
        return Imported(memory.pk, already=True)
    if memory.policy != policy:
        return Imported(memory.pk, refused=OTHER_POLICY)
    new = storable_additions(_timed(transcript))
    check_admitted(new, policy, transcript.session)
    results = add_rest(memory.pk, new, memory.imported, actor, transcript.session)
    return _imported(memory.pk, transcript, results, memory.last_seq)


# Files that have grown


def _import_rest(memory: Memory, transcript: Transcript, actor: str) -> Imported:
    """Add the messages of a file that are not stored yet. Raises MemoryExists if the stored
    messages are not the beginning of the conversation in the file.

    Raises ImportUnfinished if another import of the conversation has not ended.
    """
    stored = _stored_of(memory, transcript)
    if stored is None or (memory.policy is None) != (transcript.session is not None):
        raise MemoryExists(
            f"a conversation with the id {memory.pk!r} already exists, but does not begin like "
            "the conversation in the file: choose a different prefix"
        )
    if stored == len(transcript.messages):
        return Imported(memory.pk, already=True)
    new = storable_additions(_timed(transcript))
    check_admitted(new, memory.policy, transcript.session)
    rest = Storable(new[stored:], sum(len(stored_json(each.message)) for each in new[stored:]))
    is_short = not is_long(rest, rest.characters)
    with database.atomic():
        with locked(memory.pk, actor=actor, note=Step.IMPORTED) as recorder:
            if recorder.memory.last_seq != memory.last_seq:
                raise MemoryExists(
                    f"the conversation {memory.pk!r} changed during the import: import the file "
                    "again"
                )
            if DIGEST_LABEL in recorder.memory.labels:  # else a redaction erased it, too
                digest = fingerprint("import", _content(transcript))
                recorder.set_labels({**recorder.memory.labels, DIGEST_LABEL: digest})
            results = adder(transcript.session)(recorder, rest) if is_short else []
        if not is_short:
            set_stored(memory.pk, stored)
    if not is_short:
        results = list(add_rest(memory.pk, new, stored, actor, transcript.session))
    summaries = transcript.session.summaries if transcript.session else ()
    added = sum(result.step is not None for result in results)
    said_count = added - sum(place >= stored for place in summaries)
    return Imported(memory.pk, said_count, losses=transcript.losses)


def _stored_of(memory: Memory, transcript: Transcript) -> int | None:
    """Return how many of a transcript's messages are stored. None if the stored conversation was
    not imported, or does not begin like the transcript.

    Repeated system messages are not stored, but count as stored.
    """
    session = transcript.session
    messages = session.messages if session else transcript.messages
    first = Step.objects.filter(memory=memory).order_by("n").first()
    if memory.imported is not None or first is None or first.note != Step.IMPORTED:
        return None
    place, in_force = 0, None
    for row in Message.objects.filter(memory=memory).order_by("seq").iterator():
        while session is None and place < len(messages) and messages[place] == in_force:
            place += 1
        if place == len(messages):
            return place
        if not _is_same(read_message(row), messages[place]):
            return None
        in_force = messages[place] if isinstance(messages[place], SystemMessage) else in_force
        place += 1
    if session and _window_after(session, place) != _window_of(memory):
        return None
    return place


def _window_after(session: Session, count: int) -> list[int]:
    """Return the positions of the messages that an agent saw after the first `count` messages of
    its session.
    """
    positions, end = [*range(count)], 0
    for each, window in session.windows():
        if each.summary < count:
            positions, end = window, each.summary + 1
    return [*positions, *range(end, count)] if end else positions


def _window_of(memory: Memory) -> list[int]:
    """Return the positions of the messages in memory."""
    stays = Stay.objects.filter(memory=memory, left_step=None).order_by("rank")
    return [seq - 1 for seq in stays.values_list("seq", flat=True)]


def _is_same(stored: ChatMessage, message: ChatMessage) -> bool:
    """Return whether a stored message is the given message, or the given message redacted.

    The given message may have gained attributes, such as a provider's token counts. Of a system
    message, the only attributes are its role.
    """
    if type(stored) is not type(message) or is_redacted(stored):
        return type(stored) is type(message)
    if isinstance(stored, SystemMessage) and isinstance(message, SystemMessage):
        return stored == message and stored.attributes == message.attributes
    return with_attributes(stored, {}) == with_attributes(message, {})


def _shared(source: str, count: int) -> list[tuple[int, NewMessage]]:
    """Return the first `count` messages of the source for a branch, each with the step that added
    it. Redacted messages stay redacted.
    """
    steps = Step.objects.filter(memory=source, last_seq__lte=count).order_by("-n")
    added = {last_seq: n for n, last_seq in steps.values_list("n", "last_seq")}
    rows = Message.objects.filter(memory=source, seq__lte=count).order_by("seq")
    found = [(row.seq, NewMessage(read_message(row), said_at=row.said_at)) for row in rows]
    return [(added[seq], each) for seq, each in found if seq in added]
