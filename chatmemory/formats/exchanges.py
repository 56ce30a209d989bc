"""Makes conversations from logs and traces of model calls. A call is a request and its answer, in
any format that this library reads.

Each request of a conversation repeats all earlier messages. So calls that continue each other
become one conversation (see `formats.runs`).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from zlib import compress, decompress

from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats.account import Account, beside
from chatmemory.formats.format import Format, Loss, RawTranscript, Refused, Transcript
from chatmemory.formats.json_properties import is_list_of
from chatmemory.formats.known import shape_of
from chatmemory.formats.runs import Runs, digest_of
from chatmemory.formats.times import known_times
from chatmemory.formats.words import Beside
from chatmemory.messages.codec import decoded
from chatmemory.messages.json_values import JsonDict, JsonList, JsonValue
from chatmemory.messages.message import AiMessage, ChatMessage, SystemMessage, UserMessage
from chatmemory.messages.texts import printable

Timed = tuple[ChatMessage, datetime | None]
NOTHING = "no message in a known format was found"
# The properties that lead to the messages of requests and answers
_WITHIN = ("body", "messages", "message", "output", "outputs", "response", "result", "generations")


@dataclass(frozen=True)
class Call:
    """A model call in a log or trace, or another record of a trace.

    - `request`, `answer`: what was sent to the model, and what the model returned, as JSON or text.
      None if the log does not have it.
    - `session`: the id of the call's session, or None. All calls of a session are one conversation.
      Other calls are grouped by their traces and messages.
    - `name`: the name for a conversation without a session, or None.
    - `trace`: the id of the call's trace, or None. The records of a trace may repeat each other's
      messages.
    - `level`: 0 for a model call, and a higher number for any other record of a trace. Only the
      records with the lowest level of their trace are read.
    - `time`: a text by which the calls of a session or trace are sorted, or "".
    - `at`: the time of messages that have no time of their own, or None.
    - `beside`: the other properties of the record, or None. Words in these properties that are in
      no message are reported as lost.
    """

    request: JsonValue
    answer: JsonValue = None
    session: str | None = None
    name: str | None = None
    trace: str | None = None
    level: int = 0
    time: str = ""
    at: datetime | None = None
    beside: JsonValue = None


def format_of_calls(
    name: str,
    finds: Callable[[JsonValue], bool],
    calls: Callable[[Iterable[JsonValue]], Iterable[Call | Refused]],
) -> Format:
    """Return a format of files that have model calls. `finds` returns whether a value has calls,
    and `calls` yields the calls of all values.
    """

    def find(value: JsonValue) -> RawTranscript | None:
        return RawTranscript(None, [value]) if finds(value) else None

    def conversations(values: Iterable[JsonValue]) -> Iterator[Transcript | Refused]:
        counted = _Counted(values, finds)
        return _joined(calls(counted), counted)

    def parse(turns: Sequence[JsonValue], after: Iterable[ChatMessage] = ()) -> Transcript:
        found = [*conversations(turns)]
        if len(found) != 1 or isinstance(found[0], Refused):
            why = next((each.why for each in found if isinstance(each, Refused)), "")
            raise UnreadableTranscript(
                0,
                why
                or f"expected the records of one conversation, but found {len(found):,} "
                "conversations: give the records of each conversation alone",
            )
        return found[0]

    return Format(name, find, parse, conversations=conversations)


def format_around(
    name: str,
    find: Callable[[JsonValue], RawTranscript | None],
    plain: Callable[[JsonValue], JsonValue] = lambda turn: turn,
) -> Format:
    """Return a format that wraps messages of another format.

    `find` returns the wrapped messages of a value, and `plain` takes the message out of its
    wrapper.
    """

    def conversations(values: Iterable[JsonValue]) -> Iterator[Transcript | Refused]:
        for n, value in enumerate(values):
            try:
                raw = find(value) or RawTranscript(None, ())
                turns = [*map(plain, raw.turns)]
                yield at_value(n, read_as(_format_in(turns), raw, turns))
            except UnreadableTranscript as error:
                yield Refused(f"conversation {n + 1}", str(error), n)

    def parse(turns: Sequence[JsonValue], after: Iterable[ChatMessage] = ()) -> Transcript:
        return parse_any([*map(plain, turns)], after)

    return Format(name, find, parse, conversations=conversations)


def parse_any(turns: Sequence[JsonValue], after: Iterable[ChatMessage] = ()) -> Transcript:
    """Return the messages read from a list of JSON values, whose format is detected.

    `after` has the earlier messages of the conversation. Tool results in the list may answer tool
    calls of these messages. Raises UnreadableTranscript.
    """
    return _format_in(turns).parse(turns, after)


def _format_in(turns: Sequence[JsonValue]) -> Format:
    format = format_of([each for each in turns if isinstance(each, dict)])
    if format is None:
        raise UnreadableTranscript(-1, NOTHING)
    return format


# One call


def messages_in(value: JsonValue, by_model: bool = False) -> Transcript | None:
    """Return the messages of a request or an answer. None for blank text, and for a value in no
    known format.

    Plain text becomes a message of the user, or with `by_model`, of the model. Raises
    UnreadableTranscript if a message cannot be read.
    """
    value = decoded(value) if isinstance(value, str) and value[:1] in "{[" else value
    if isinstance(value, str):
        message = AiMessage(value) if by_model else UserMessage(value)
        return Transcript(None, (message,)) if value.strip() else None
    for way in _ways(_Way(value)):
        format = format_of(way.value)
        if format and (raw := format.find(way.value)):
            read = read_as(format, raw)
            lost = [Loss("call", f"{way.others:,} other generations")] if way.others else []
            lost += [loss for each in way.around for loss in beside(each, (), read)]
            return replace(read, losses=(*read.losses, *lost))
    return None


def read_as(
    format: Format, raw: RawTranscript, plain: Sequence[JsonValue] | None = None
) -> Transcript:
    """Return the messages of the conversation `raw`, read in the format `format`, with all losses.
    Raises UnreadableTranscript.

    `plain` has the messages to read if each turn of `raw` wraps a message in another object. By
    default, the turns are read. Words of the turns that are in no message are losses, too.
    """
    account = Account(raw.turns)
    read = format.parse(account if plain is None else plain, ())
    words = account.losses(read, format.content_of, format.kinds)
    return replace(read, name=raw.name, losses=(*raw.losses, *read.losses, *words))


def format_of(value: JsonValue) -> Format | None:
    """Return the format of a list of messages, a request or an answer; None if no format fits."""
    # The registry imports formats that use this module.
    from chatmemory.formats.registry import readable_formats

    formats = readable_formats().values()
    plain = (each for each in formats if each.conversations is None)
    return next((each for each in plain if (each.claims or each.find)(value)), None)


@dataclass(frozen=True)
class _Way:
    """A value inside another value that may be a list of messages.

    `around` are the values beside it that are not read. `others` is the number of similar values
    that are not read.
    """

    value: JsonValue
    around: tuple[JsonValue, ...] = ()
    others: int = 0

    def into(self, value: JsonValue, around: JsonValue = None, others: int = 0) -> _Way:
        more = (around,) if around else ()
        return _Way(value, (*self.around, *more), self.others + others)


def _ways(way: _Way) -> Iterator[_Way]:
    """Yield the values that may be messages: the value of `way`, the value as a single message, and
    values inside it.
    """
    yield way
    value = way.value
    if isinstance(value, dict):
        yield way.into([value])
        for name in _WITHIN:
            if value.get(name):
                yield from _ways(way.into(value[name], _around(value, name)))
    elif isinstance(value, list) and value and isinstance(value[0], list):
        yield from _ways(way.into(value[0], others=len(value) - 1))
    elif is_list_of(value, "message"):  # the generations of LangChain
        first, *others = value
        yield way.into([first["message"]], _around(first, "message"), others=len(others))


def _around(value: JsonDict, name: str) -> JsonDict:
    """Return the properties of a request or an answer that are not under `name` and may
    have words.
    """
    about = {each: _AROUND.without(value[each]) for each in _ABOUT if each in value}
    return {**_AROUND.without(value, name, *about), **about}


# Properties with data about an answer, and names in them and around messages
_ABOUT = ("llm_output", "generation_info")
_AROUND = Beside(
    texts=("model_name", "model_provider", "system_fingerprint"),
    wholes=("token_usage", "safety_ratings", "run"),
)


def read_call(call: Call) -> Transcript:
    """Return the messages of a call: first the messages of the request, then those of the answer.
    Raises UnreadableTranscript.
    """
    request = messages_in(call.request) if call.request else None
    answer = messages_in(call.answer, by_model=True) if call.answer else None
    is_around = call.beside is not None and not (call.request or call.answer)
    if request is None and answer is None and not is_around:
        raise UnreadableTranscript(-1, NOTHING)
    losses: list[Loss] = []
    parts = ((request, call.request, "request"), (answer, call.answer, "answer"))
    for read, value, what in parts:
        if read is None and value:
            losses.append(Loss("call", f"the {what}, {_why_unread(value)}"))
    found = [each for each in (request, answer) if each]
    messages = [message for each in found for message in each.messages]
    times = [time or call.at for each in found for time in _times_of(each)]
    losses += [loss for each in found for loss in each.losses]
    losses += beside(call.beside, (), Transcript(None, messages))
    name = call.session or call.name or next((each.name for each in found if each.name), None)
    return Transcript(name, tuple(messages), tuple(losses), times=known_times(times))


def _times_of(read: Transcript) -> Sequence[datetime | None]:
    return read.times or (None,) * len(read.messages)


def _why_unread(value: JsonValue) -> str:
    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, dict):
        error = error.get("message")
    if isinstance(error, str) and error:
        return f"which is an error: {printable(error)[:200]}"
    return "which is in no known format"


# The calls of a run


class _Log:
    """The calls of a file, compressed, because many short calls would take far more memory than the
    file.

    Calls of a session or a trace wait until all calls have been read. Of other calls, only the new
    messages are stored. An answer is taken from its own call if possible, because later requests
    repeat it without thoughts.
    """

    def __init__(self) -> None:
        self._waiting: dict[tuple[str | None, str | None], list[bytes]] = {}
        self._runs = Runs()
        self._packed: list[list[bytes]] = []  # the new messages of each call of a run
        self._systems: list[bytes] = []  # the digest of the last system message of each run

    def add(self, call: Call, number: int) -> Iterator[Refused]:
        if call.session is None and call.trace is None:
            try:
                self._put(at_value(number, read_call(call)))
            except UnreadableTranscript as error:
                yield Refused(f"call {number + 1}", error.why, number)
        else:
            waiting = self._waiting.setdefault((call.session, call.trace), [])
            waiting.append(_packed((call, number)))

    def conversations(self) -> Iterator[Transcript | Refused]:
        """Yield the conversations of sessions, then the others. A trace without a session may
        continue another conversation.
        """
        sessions = {trace: session for session, trace in self._waiting if session is not None}
        groups: dict[tuple[str | None, str | None], list[list[bytes]]] = {}
        for (session, trace), packed in self._waiting.items():
            session = session or sessions.get(trace) if trace is not None else session
            key = (session, None) if session is not None else (None, trace)
            groups.setdefault(key, []).append(packed)
        for (session, _), some in groups.items():
            for read in _of_session([_unpacked(each) for packed in some for each in packed]):
                if session is not None or isinstance(read, Refused):
                    yield read
                else:
                    self._put(read)
        yield from (_whole(map(_unpacked, packed)) for packed in self._packed)

    def _put(self, read: Transcript) -> None:
        """Add the new messages of a call to the conversation that the call continues, or begin
        another conversation.
        """
        system, rest = _divided(read)
        digests = [digest_of(each) for each in rest]
        run, places = self._runs.find(digests) or (None, [*range(len(rest))])
        if run is None or places:
            run = self._runs.put(run, digests)
        if run == len(self._packed):
            self._packed.append([])
            self._systems.append(b"")
        digest = digest_of(UserMessage("\n".join(each.text for each in system)))
        new = system if system and places and digest != self._systems[run] else []
        self._systems[run] = digest if new else self._systems[run]
        new += [rest[place] for place in places]
        self._packed[run].append(_packed((read.name, _timed(new, read), read.losses)))


def _packed(value: JsonValue) -> bytes:
    return compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), 1)


def _unpacked(packed: bytes) -> JsonValue:
    return pickle.loads(decompress(packed))  # noqa: S301 (packed in this process)


def _started(
    calls: Iterable[tuple[Call, int]],
) -> Callable[[tuple[Call, int]], tuple[str, str, str]]:
    """Return a function that returns the sort key of a call: traces are sorted by their beginnings,
    and calls within a trace by time.
    """
    first: dict[str | None, str] = {}
    for call, _ in calls:
        first[call.trace] = min(first.get(call.trace, call.time), call.time)
    return lambda each: (first[each[0].trace], each[0].trace or "", each[0].time)


def _chosen(calls: Sequence[tuple[Call, int]]) -> tuple[list[tuple[Call, int]], tuple[Loss, ...]]:
    """Return the calls with the lowest level of each trace, and a loss that counts the other
    records.
    """
    levels: dict[str | None, int] = {}
    for call, _ in calls:
        levels[call.trace] = min(levels.get(call.trace, call.level), call.level)
    chosen = [each for each in calls if each[0].level == levels[each[0].trace]]
    others = len(calls) - len(chosen)
    losses = (Loss("trace", f"records other than model calls ({others:,})"),)
    return chosen, losses if others else ()


def _of_session(calls: Sequence[tuple[Call, int]]) -> Iterator[Transcript | Refused]:
    """Yield the calls that cannot be read, then the conversation of a session or a trace."""
    chosen, losses = _chosen(sorted(calls, key=_started(calls)))
    runs = Runs(all_alike=True)
    parts: list[tuple[str | None, Sequence[Timed], tuple[Loss, ...]]] = []
    last: list[SystemMessage] = []
    for call, number in chosen:
        try:
            read = at_value(number, read_call(call))
        except UnreadableTranscript as error:
            yield Refused(f"call {number + 1}", error.why, number)
            continue
        if not read.messages:
            parts.append((read.name, (), read.losses + losses))
            continue
        system, rest = _divided(read)
        digests = [digest_of(each) for each in rest]
        run, places = runs.find(digests) or (None, [*range(len(rest))])
        if run is None or places:
            runs.put(run, digests)
        new: list[ChatMessage] = [*system] if places and system != last else []
        last = system if new else last
        new_ones = [*new, *(rest[place] for place in places)]
        parts.append((read.name, _timed(new_ones, read), read.losses + losses))
    if parts:
        yield _whole(parts)


def _timed(messages: Iterable[ChatMessage], read: Transcript) -> list[Timed]:
    """Return messages of a call, each with the time at which it was said."""
    times = {id(each): time for each, time in zip(read.messages, read.times, strict=False)}
    return [(each, times.get(id(each))) for each in messages]


def _divided(read: Transcript) -> tuple[JsonList, list[ChatMessage]]:
    """Return the system messages of a call, and its other messages."""
    system = [each for each in read.messages if isinstance(each, SystemMessage)]
    return system, [each for each in read.messages if not isinstance(each, SystemMessage)]


def _whole(
    parts: Iterable[tuple[str | None, Sequence[Timed], tuple[Loss, ...]]],
) -> Transcript:
    name: str | None = None
    timed: list[Timed] = []
    losses: dict[Loss, None] = {}
    for named, new, lost in parts:
        name = name or named
        timed += new
        losses.update(dict.fromkeys(lost))
    messages = tuple(message for message, _ in timed)
    times = known_times([time for _, time in timed])
    return Transcript(name, messages, tuple(losses), times=times)


def _joined(calls: Iterable[Call | Refused], values: _Counted) -> Iterator[Transcript | Refused]:
    """Yield the calls that cannot be read, then all conversations."""
    log = _Log()
    for call in calls:
        if isinstance(call, Refused):
            yield replace(call, turn=values.at)
        else:
            yield from log.add(call, values.at)
    yield from values.others
    yield from log.conversations()


class _Counted(Iterable[JsonValue]):
    """The values of a file. `at` is the index of the current value, and `others` are refusals of
    values without a call.
    """

    def __init__(self, values: Iterable[JsonValue], finds: Callable[[JsonValue], bool]) -> None:
        self._values, self._finds = values, finds
        self.at = 0
        self.others: list[Refused] = []

    def __iter__(self) -> Iterator[JsonValue]:
        for n, value in enumerate(self._values):
            self.at = n
            if self._finds(value):
                yield value
            else:
                why = f"the record has neither a request nor an answer: it is {shape_of(value)}"
                self.others.append(Refused(f"call {self.at + 1}", why, self.at))


def at_value(n: int, read: Transcript) -> Transcript:
    """Return the transcript, with `n` as the `turn` of all its losses.

    The transcript was read from one JSON value of a file. `n` is the index of this value.
    """
    return replace(read, losses=tuple(replace(each, turn=n) for each in read.losses))
