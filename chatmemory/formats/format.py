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
    """A detail that is lost, because the target format or a message cannot express it.

    `where` is the position in the conversation, such as "message 3", and `what` the detail. `turn`
    is an index in the list of messages: that of the first JSON value with this loss, None if
    unknown. `place` is the position in the file, such as "line 5"; the reader of the file derives
    it from `turn`.
    """

    where: str
    what: str
    turn: int | None = field(default=None, compare=False)
    place: str = field(default="", compare=False)


@dataclass(frozen=True)
class SkippedTurn:
    """A turn (a JSON value in a list of messages) that cannot be read. `turn` is its index, and
    `why` the reason. The remaining turns are read.
    """

    turn: int
    why: str


@dataclass(frozen=True)
class Response:
    """A turn (a JSON value in a list of messages) that is a provider's answer. `about` is the
    provider's data about the answer, such as token usage.
    """

    turn: JsonValue
    about: JsonMap


@dataclass(frozen=True)
class Node:
    """A message in a tree of messages, as chat sites store them. `parent` is the id of the message
    before it. `is_shown` is True on the path to the message that the site shows last.
    """

    id: str
    parent: str | None
    value: JsonValue
    is_shown: bool = True


def unwrapped(turn: JsonValue) -> JsonValue:
    """Return the JSON value of a turn (an item in a list of messages). A `Response` or a `Node` has
    the value in a field; any other turn is the value itself.
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
    """A conversation that was found in a file but is not read yet. `name` is the conversation's id
    in the file, or None.

    `turns` are the JSON values in the list of messages. `Format.find_each` may take the turns from
    a longer list of records: then `places` has the index of each turn in that list. `places` is
    empty if `turns` is the whole list in the same order.
    """

    name: str | None
    turns: Sequence[JsonValue]
    losses: tuple[Loss, ...] = ()
    places: Sequence[int] = ()


@dataclass(frozen=True)
class Transcript:
    """The messages of one conversation, and the losses of reading it.

    `number` is the position of the conversation in its file, from 1. `turns` has an index for each
    message: the index of the JSON value (the turn) from which the message was read, or of the first
    one. `turns` may be empty if each turn is one message.

    `session` is an agent's recording, if the format has it: the messages with summaries and
    compactions.

    `times` has the time of each message, None for a message without a time. With a session, `times`
    also has the times of the summaries. `times` is empty if no message has a time.

    `branches` are other versions of this conversation, such as after an edited question. A branch
    begins with the first `shared` messages of this conversation, or of its session. From a file,
    branches come as conversations with `is_branch`, after the conversation of which they are
    versions.
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

    `value` is a list in most formats. It is an object such as `{"system": …, "messages": […]}` if
    the format names the list, or has values outside the list. It is the whole text if the format
    writes text.
    """

    value: list[JsonDict] | JsonDict | str
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True)
class Rendering:
    """Messages as a stream of a format's JSON values, with the `losses` so far.

    `within` is the name of the list in the format, "" for a list without a name. `beside` has the
    values outside the list, such as the system prompt. `beside` is complete when the stream has
    ended. With `is_text`, the values are strings, which together are the text.
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

    `silent` has the types whose records hold no words of people, models or tools. It maps each type
    to the newest version of the program that is known to write such records, or to `NOT_KNOWN`.
    """

    of: Callable[[JsonValue], str]
    silent: Mapping[str, str] = field(default_factory=dict)


# Wide: authors of formats outside this project write these arguments by name.
@dataclass(frozen=True)
class Format:
    """A format of conversations, as JSON or as text for people, by the functions that read and
    write it.

    A turn is a JSON value in the list of messages. In a session file, a turn is called a record.

    - `find` returns the conversation that a JSON value of any type holds in this format, or None.
      It detects the format for "auto", so it must return None for other formats.
    - `claims`, if there is one, detects the format for "auto" instead: it tells whether a value can
      only be of this format. Then `find` may also take values that other formats have.
    - `parse` takes the turns that `find` has found, still unchecked, and the earlier messages,
      whose calls the turns may answer. It returns the messages of the turns. It raises
      UnreadableTranscript with the index of a turn that cannot be read. A `Reader` does so for
      every InvalidMessage.
    - `render` returns messages in this format. It can do so message by message, so that an export
      need not be in memory as a whole. It may read the messages more than once. It is None for a
      format that is only read.
    - `is_text` is True for a format that only writes, text for people: it finds nothing, and
      `parse` raises UnreadableTranscript.
    - `plain`, if there is one, returns an object of the format's library as JSON values.
    - `is_record`, if there is one, tells whether a line of a file is a record of a session. Then
      `find` is given the list of all records. Other lines are left out and reported, as "line 5:
      not JSON". Without `is_record`, a line is a conversation, or a message of a conversation.
    - `session_of`, if there is one, returns the id of a record's session, or None if the record
      names no session. A record with another id begins another session: only one session's records
      are in memory at a time.
    - `find_each`, if there is one, returns every conversation of a value that `find` takes: two
      sessions of one file, or all conversations of a store.
    - `content_of`, if there is one, returns the part of a turn that holds the text of people,
      models and tools. The part is the whole turn if there is no `content_of`, or if the part is
      empty and no message was made from the turn. Each string of four letters or more in the part
      must be in a text, a thought, an argument or a result of a message. Names such as ids and
      types are exempt. A string that is not found is reported as a loss (see
      `chatmemory.formats.account`).
    - `is_whole` is True if everything with words in a conversation is in the turns that `find`
      returns. Then words outside the turns are reported as losses, too.
    - `reads_streams` is True if `plain` also takes the library's streams, iterators of chunks.
    - `is_empty`, if there is one, tells whether a value is a conversation without any messages.
      Exports of accounts have such conversations.
    - `kinds`, if there are any, name the types of the format's records, and the types without
      words.
    - `conversations`, if there is one, takes the values of a file in order and yields the
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
