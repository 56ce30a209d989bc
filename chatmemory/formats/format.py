"""The contract of a format, and the types that its functions take and return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue, LibraryValue
from chatmemory.messages.message import ChatMessage
from chatmemory.messages.sessions import Session


@dataclass(frozen=True)
class Loss:
    """A detail that the target format or a message cannot express.

    `where` is the position in the conversation, such as "message 3", and `what` the detail. `turn`
    is the index of the first turn with this loss, if known. `place` is the position in the file,
    such as "line 5"; the reader of the file derives it from `turn`.
    """

    where: str
    what: str
    turn: int | None = field(default=None, compare=False)
    place: str = field(default="", compare=False)


@dataclass(frozen=True)
class SkippedTurn:
    """A turn, or JSON value in a list of messages, that cannot be read: its index, and the reason.
    The remaining turns are read.
    """

    turn: int
    why: str


@dataclass(frozen=True)
class Response:
    """A turn, or JSON value in a list of messages, that is a provider's answer. `about` is the
    provider's data about the answer, such as token usage.
    """

    turn: JsonValue
    about: JsonMap


@dataclass(frozen=True)
class Node:
    """A message of a tree of messages, as chat sites store them. `is_shown` means that the site
    shows it: it is on the path to the last message.
    """

    id: str
    parent: str | None
    value: JsonValue
    is_shown: bool = True


def unwrapped(turn: JsonValue) -> JsonValue:
    """Return the JSON value of a turn: of a `Response` its turn, of a `Node` its value, else the
    turn itself.
    """
    if isinstance(turn, Response):
        return turn.turn
    return turn.value if isinstance(turn, Node) else turn


def kind_of(record: JsonValue) -> str:
    """Return the type of a record as most formats name it, or "none" if it has no type."""
    names = ("type", "kind", "role", "sender", "from")
    found = (record.get(name) for name in names) if isinstance(record, dict) else ()
    return next((each for each in found if isinstance(each, str) and each), "none")


@dataclass(frozen=True)
class RawTranscript:
    """A conversation found in a file but not read yet. `name` is its id in the file, or None.
    `turns` are the JSON values in its list of messages.

    `places` has, for each turn, its index in the list of records in which `Format.find_each`
    searched. `places` is empty if `turns` is that whole list, in the same order.
    """

    name: str | None
    turns: Sequence[JsonValue]
    losses: tuple[Loss, ...] = ()
    places: Sequence[int] = ()


@dataclass(frozen=True)
class Transcript:
    """The messages of one conversation, and the losses of reading it.

    `number` is the position of the conversation in its file, from 1. `turns` has the index of each
    message's turn, or of its first turn if it was made from several. `turns` is empty if each turn
    is one message, and the `parse` of the format does not fill it.

    `session` is an agent's recording, if the format has it: the messages with summaries and
    compactions.

    `times` has the time of each message, None where the file has none. With a session, the
    summaries of the session have times, too. `times` is empty if no message has a time.

    `branches` are other versions of this conversation, such as after an edited question. The first
    `shared` messages of a branch are also the first of this conversation, or of its session. In a
    file, a conversation with `is_branch` follows the conversation that it is a version of.
    """

    name: str | None
    messages: Sequence[ChatMessage]
    losses: tuple[Loss, ...] = ()
    number: int = 1
    turns: tuple[int, ...] = ()
    session: Session | None = None
    branches: tuple[Transcript, ...] = ()
    shared: int = 0
    is_branch: bool = False
    times: tuple[datetime | None, ...] = ()


@dataclass(frozen=True)
class Refused:
    """A conversation or a line of a file that cannot be read: its position, and why. The remaining
    conversations are read.

    `turn` is the index of the value in the file, if known. `is_empty` marks a conversation without
    any messages, which is no failure.
    """

    where: str
    why: str
    turn: int | None = field(default=None, compare=False)
    is_empty: bool = False


@dataclass(frozen=True)
class Rendered:
    """Messages as JSON values of a format, and the losses of writing them.

    The value is a list; or an object, if the format has a name for the list or values outside it,
    `{"system": …, "messages": […]}`; or the whole text, if the format writes text.
    """

    value: list[JsonDict] | JsonDict | str
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True)
class Rendering:
    """Messages as a stream of a format's JSON values, with the `losses` so far.

    `within` is the name of the list in the format, "" for a bare list. `beside` has the values
    outside the list, such as the system prompt; it is complete after the last value. If `is_text`,
    the values are strings to join.
    """

    values: Iterable[JsonValue]
    losses: Sequence[Loss] = ()
    within: str = ""
    beside: JsonMap = field(default_factory=dict)
    is_text: bool = False

    def whole(self) -> Rendered:
        values = list(self.values)
        if self.is_text:
            return Rendered("".join(values), tuple(self.losses))
        value = {**self.beside, self.within: values} if self.within else values
        return Rendered(value, tuple(self.losses))


# The written formats of this library by their JSON type, for the types of `render`.
WrittenAsList = Literal[
    "langchain",
    "langchain4j",
    "llama_index",
    "openai_chat",
    "pydantic_ai",
    "sharegpt",
    "vercel_ui",
]
WrittenAsObject = Literal["anthropic", "bedrock", "gemini", "openai_responses", "otel_genai"]
WrittenAsText = Literal["markdown"]


NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Kinds:
    """The types of a format's records. `of` returns the name of a record's type.

    `silent` lists the types whose records hold no words of people, models or tools. The value of a
    type is the newest version of the program that is known to write such records, or `NOT_KNOWN`.
    """

    of: Callable[[JsonValue], str]
    silent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Format:
    """A format of conversations, as JSON or as text for people, by the functions that read and
    write it.

    - `find` returns the conversation that a JSON value of any type holds in this format, or None.
      It detects the format for "auto", so it must return None for other formats.
    - `claims`, if there is one, detects the format for "auto" instead: it tells whether a value can
      only be of this format. Then `find` may also take values that other formats have.
    - `parse` takes the turns that `find` has found, still unchecked, and the messages before them,
      whose calls they may answer. It returns the messages of the turns. It raises
      UnreadableTranscript with the index of a turn that cannot be read. A `Reader` does so for
      every InvalidMessage.
    - `render` returns messages in this format. It can do so message by message, so that an export
      need not be in memory as a whole. It may read the messages more than once. It is None for a
      format that is only read.
    - `is_text` is True for a format that only writes, text for people: it finds nothing, and
      `parse` raises UnreadableTranscript.
    - `plain`, if there is one, returns an object of the format's library as JSON values.
    - `is_record`, if there is one, tells whether a line of a file is a record of a session. Then
      lines that are not JSON or not records are left out and reported, as "line 5: not JSON", and
      `find` is given the list of all records. Without `is_record`, a line is a conversation, or a
      message of a conversation.
    - `session_of`, if there is one, returns the id of a record's session, or None if the record
      names no session. Another id begins another session: only one session's records are in memory
      at a time.
    - `find_each`, if there is one, returns every conversation of a value that `find` takes: two
      sessions of one file, or the conversations of a store, each under its key.
    - `content_of`, if there is one, returns the part of a turn that holds the text of people,
      models and tools. The part is the whole turn if there is no `content_of`, or if the part is
      empty and no message was made from the turn. Each string of four letters or more in the part
      must be in a text, a thought, an argument or a result of a message, except names such as ids
      and types. Otherwise the string is reported as a loss (see `chatmemory.formats.account`).
    - `is_whole` is True if `find` takes everything of a conversation that has words as turns. Then
      words outside the turns are reported as losses, too.
    - `reads_streams` is True if `plain` also takes the library's streams, iterators of chunks.
    - `is_empty`, if there is one, tells whether a value is a conversation without any messages,
      which exports of accounts have.
    - `kinds`, if there are any, name the types of its records, and the types without words.
    - `conversations`, if there is one, takes the values of a file in order and yields its
      conversations. It is for formats in which several values make one conversation, such as model
      calls.

    Register a format of your own in the entry point group "chatmemory.formats", in
    CHATMEMORY["FORMATS"], or by `FORMATS.register`.
    """

    name: str
    find: Callable[[JsonValue], RawTranscript | None]
    parse: Callable[[Sequence[JsonValue], Iterable[ChatMessage]], Transcript]
    render: Callable[[Iterable[ChatMessage]], Rendering] | None = None
    plain: Callable[[LibraryValue], JsonValue] | None = None
    claims: Callable[[JsonValue], bool] | None = None
    is_text: bool = False
    is_record: Callable[[JsonValue], bool] | None = None
    session_of: Callable[[JsonValue], str | None] | None = None
    find_each: Callable[[JsonValue], Sequence[RawTranscript]] | None = None
    content_of: Callable[[JsonValue], JsonValue] | None = None
    kinds: Kinds | None = None
    is_empty: Callable[[JsonValue], bool] | None = None
    reads_streams: bool = False
    is_whole: bool = False
    conversations: Callable[[Iterable[JsonValue]], Iterator[Transcript | Refused]] | None = None
