"""Calls of a model: a request and its answer, each in a format that is read here.

Logs and traces hold calls. Those of one run repeat all that was said before: they become one
conversation (see `core.runs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chatmemory.core.exceptions import UnreadableTranscript
from chatmemory.core.messages import AiMessage, ChatMessage, SystemMessage, UserMessage
from chatmemory.core.runs import Runs, digest_of
from chatmemory.core.texts import printable
from chatmemory.formats.conversion import decoded, is_list_of
from chatmemory.formats.format import Format, Loss, RawTranscript, Refused, Transcript

NOTHING = "neither its request nor its answer has messages in a format that is read"
# Where requests and answers have their messages, one within the other
_WITHIN = ("body", "messages", "message", "output", "outputs", "response", "result", "generations")


@dataclass(frozen=True)
class Call:
    """A call of a model.

    All calls of one `session` are one conversation, in their order. Without a session, calls belong
    together by what they say; then the conversation has the `name` of its first call.
    """

    request: Any
    answer: Any = None
    session: str | None = None
    name: str | None = None
    losses: tuple[Loss, ...] = ()


def format_of_calls(
    name: str,
    finds: Callable[[Any], bool],
    calls: Callable[[Iterable[Any]], Iterable[Call | Refused]],
) -> Format:
    """Return the format of files whose values hold calls; `calls` returns those of all values."""

    def conversations(values: Iterable[Any]) -> Iterator[Transcript | Refused]:
        return _joined(calls(values))

    return format_of_several(name, finds, conversations)


def format_of_several(
    name: str,
    finds: Callable[[Any], bool],
    conversations: Callable[[Iterable[Any]], Iterator[Transcript | Refused]],
) -> Format:
    """Return a format in which a value is not one conversation. It is only read."""

    def find(value: Any) -> RawTranscript | None:
        return RawTranscript(None, [value]) if finds(value) else None

    def parse(turns: Sequence[Any], after: Iterable[ChatMessage] = ()) -> Transcript:
        found = [*conversations(turns)]
        if len(found) != 1 or isinstance(found[0], Refused):
            why = next((each.why for each in found if isinstance(each, Refused)), "")
            raise UnreadableTranscript(0, why or f"it holds {len(found):,} conversations")
        return found[0]

    return Format(name, find, parse, conversations=conversations)


def format_around(name: str, find: Callable[[Any], RawTranscript | None]) -> Format:
    """Return the format of values around messages in another format, which `find` returns."""

    def parse(turns: Sequence[Any], after: Iterable[ChatMessage] = ()) -> Transcript:
        format = format_of([*turns])
        if format is None:
            raise UnreadableTranscript(-1, NOTHING)
        return format.parse(turns, after)

    def conversations(values: Iterable[Any]) -> Iterator[Transcript | Refused]:
        for number, value in enumerate(values, 1):
            raw = find(value)
            try:
                if raw is None:
                    raise UnreadableTranscript(-1, NOTHING)
                read = parse(raw.turns)
            except UnreadableTranscript as error:
                yield Refused(f"conversation {number}", str(error))
            else:
                yield replace(read, name=raw.name, losses=raw.losses + read.losses)

    return Format(name, find, parse, conversations=conversations)


# One call


def said_in(value: Any, by_model: bool = False) -> Transcript | None:
    """Return the messages of a request or an answer; None if it is in no format that is read.

    A text alone is what the user said, or the model. Raises UnreadableTranscript.
    """
    value = decoded(value) if isinstance(value, str) and value[:1] in "{[" else value
    if isinstance(value, str):
        message = AiMessage(value) if by_model else UserMessage(value)
        return Transcript(None, (message,)) if value.strip() else None
    for each in _ways(value):
        format = format_of(each)
        if format and (raw := format.find(each)):
            read = format.parse(raw.turns, ())
            return replace(read, name=raw.name, losses=raw.losses + read.losses)
    return None


def format_of(value: Any) -> Format | None:
    """Return the format of a list of messages, a request or an answer; None if there is none."""
    # The registry has the formats that use this module.
    from chatmemory.formats.registry import readable_formats

    formats = readable_formats().values()
    plain = (each for each in formats if each.conversations is None)
    return next((each for each in plain if (each.claims or each.find)(value)), None)


def _ways(value: Any) -> Iterator[Any]:
    """Yield what may be the messages: the value, one message in a list, and what is within."""
    yield value
    if isinstance(value, dict):
        yield [value]
        for name in _WITHIN:
            if value.get(name):
                yield from _ways(value[name])
    elif isinstance(value, list) and value and isinstance(value[0], list):
        yield from _ways(value[0])
    elif is_list_of(value, "message"):  # the generations of LangChain
        yield [each["message"] for each in value[:1]]


def read_call(call: Call) -> Transcript:
    """Return what was said in a call, the answer last. Raises UnreadableTranscript."""
    asked = said_in(call.request) if call.request else None
    answered = said_in(call.answer, by_model=True) if call.answer else None
    if asked is None and answered is None:
        raise UnreadableTranscript(-1, NOTHING)
    losses = list(call.losses)
    for read, given, what in ((asked, call.request, "request"), (answered, call.answer, "answer")):
        if read is None and given:
            losses.append(Loss("call", f"the {what}, {_told(given)}"))
    found = [each for each in (asked, answered) if each]
    messages = [message for each in found for message in each.messages]
    losses += [loss for each in found for loss in each.losses]
    name = call.session or call.name or next((each.name for each in found if each.name), None)
    return Transcript(name, tuple(messages), tuple(losses))


def _told(value: Any) -> str:
    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, dict):
        error = error.get("message")
    if isinstance(error, str) and error:
        return f"which is an error: {printable(error)[:200]}"
    return "which is in no format that is read"


# The calls of a run


@dataclass
class _Run:
    name: str | None
    messages: list[ChatMessage] = field(default_factory=list)
    losses: dict[Loss, None] = field(default_factory=dict)
    system: list[str] = field(default_factory=list)

    def add(self, read: Transcript, said: Sequence[ChatMessage], places: Sequence[int]) -> None:
        """Add the messages at some places, after a system message that is not the one before."""
        system = [each for each in read.messages if isinstance(each, SystemMessage)]
        texts = [each.text for each in system]
        if texts and texts != self.system and (places or not self.messages):
            self.messages += system
            self.system = texts
        self.messages += [said[place] for place in places]
        self.losses.update(dict.fromkeys(read.losses))


class _Conversations:
    """The conversations of a log, in the order of their first calls.

    The answers that were recorded are kept, with their thoughts, and not what came back of them in
    later requests.
    """

    def __init__(self) -> None:
        self.found: list[_Run] = []
        self._runs, self._by_run = Runs(), list[_Run]()
        self._sessions: dict[str, tuple[_Run, Runs]] = {}

    def add(self, read: Transcript, session: str | None) -> None:
        said = [each for each in read.messages if not isinstance(each, SystemMessage)]
        digests = [digest_of(each) for each in said]
        if session is not None and session not in self._sessions:
            self._sessions[session] = self._new(read), Runs(all_alike=True)
        if session is not None:
            one, runs = self._sessions[session]
            number, places = runs.find(digests) or (None, [*range(len(said))])
        else:
            runs = self._runs
            number, places = runs.find(digests) or (None, [*range(len(said))])
            if number is None:
                self._by_run.append(self._new(read))
            one = self._by_run[-1 if number is None else number]
        one.add(read, said, places)
        if places or number is None:
            runs.put(number, digests)

    def _new(self, read: Transcript) -> _Run:
        self.found.append(_Run(read.name))
        return self.found[-1]


def _joined(calls: Iterable[Call | Refused]) -> Iterator[Transcript | Refused]:
    """Yield what cannot be read, then the conversations."""
    conversations = _Conversations()
    for number, call in enumerate(calls, 1):
        if isinstance(call, Refused):
            yield call
            continue
        try:
            conversations.add(read_call(call), call.session)
        except UnreadableTranscript as error:
            yield Refused(f"call {number}", error.why)
    for each in conversations.found:
        yield Transcript(each.name, tuple(each.messages), tuple(each.losses))
