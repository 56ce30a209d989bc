"""The contract of a format: `Format`, and the types of the values that its functions take and
return.
"""

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

    - `where`: the position in the conversation, such as "message 3".
    - `what`: the detail.
    - `turn`: the index, in the list of messages, of the JSON value with the loss. None if unknown.
      If several values have the same loss, this is the index of the first value.
    - `place`: the position in the file, such as "line 5".
    """

    where: str
    what: str
    turn: int | None = field(default=None, compare=False)
    place: str = field(default="", compare=False)


@dataclass(frozen=True)
class SkippedTurn:
    """An unreadable item of the list of messages. `turn` is the index of the item, and `why` is the
    reason. The other items of the list are read.
    """

    turn: int
    why: str


@dataclass(frozen=True)
class Response:
    """A provider's answer, as an item of the list of messages. `turn` is the message as JSON, and
    `about` has the provider's data about the answer, such as token usage.
    """

    turn: JsonValue
    about: JsonMap


@dataclass(frozen=True)
class Node:
    """A message in a tree of messages, as chat sites store them.

    `parent` is the id of the previous message, and `value` is the message as JSON. `is_shown` is
    True if the message is on the path that the site shows.
    """

    id: str
    parent: str | None
    value: JsonValue
    is_shown: bool = True


def unwrapped(turn: JsonValue) -> JsonValue:
    """Return the JSON value of an item of the list of messages. A `Response` or a `Node` has the
    value in a field; any other item is the value.
    """
    if isinstance(turn, Response):
        return turn.turn
    return turn.value if isinstance(turn, Node) else turn


def kind_of(record: JsonValue) -> str:
    """Return the type of a record: the first of `type`, `kind`, `role`, `sender` and `from` that
    has a text. Return "none" if none of these properties has a text.
    """
    names = ("type", "kind", "role", "sender", "from")
    found = (record.get(name) for name in names) if isinstance(record, dict) else ()
    return next((each for each in found if isinstance(each, str) and each), "none")


@dataclass(frozen=True)
class RawTranscript:
    """A conversation that was found in a file, but is not read yet.

    - `name`: the conversation's id in the file, or None.
    - `turns`: the JSON values in the list of messages.
    - `losses`: what was lost when the conversation was found.
    - `places`: the index of each turn in the file's list of records, if `turns` is only a part of
      this list; else empty.
    """

    name: str | None
    turns: Sequence[JsonValue]
    losses: tuple[Loss, ...] = ()
    places: Sequence[int] = ()


@dataclass(frozen=True)
class Transcript:
    """The messages of one conversation, and the losses of reading it.

    - `name`: the id of the conversation in its file, or None.
    - `messages`: the messages without the summaries of compactions.
    - `number`: the position of the conversation in its file, from 1.
    - `turns`: the index of the JSON value from which each message was read. Empty if each value is
      one message.
    - `session`: for a session of a coding agent, the messages with the summaries, and the
      compactions. Otherwise None.
    - `times`: the time of each message, or None for a message without a time. With a session, these
      are the times of `session.messages`. Empty if no message has a time.
    - `branches`: other versions of this conversation, such as after an edited question. Empty once
      each branch is returned as a conversation.
    - `is_branch`: True for a branch that is returned as a conversation.
    - `shared`: in a branch, the number of messages at its beginning that are the same as in the
      conversation from which it branches.
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
    """A conversation or a line of a file that cannot be read. The other conversations are read.

    - `where`, `why`: its position and the reason.
    - `turn`: the index of the value in the file, or None if unknown.
    - `is_empty`: whether it is a conversation without messages, which is no failure.
    """

    where: str
    why: str
    turn: int | None = field(default=None, compare=False)
    is_empty: bool = False


@dataclass(frozen=True)
class Rendered:
    """Messages in a format, and the losses of writing them.

    `value` is a list of messages in most formats. In some formats, it is an object with the list
    and other values, such as `{"system": …, "messages": […]}`. In a text format, it is the text.
    """

    value: list[JsonDict] | JsonDict | str
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True)
class Rendering:
    """Messages as a stream of a format's JSON values.

    - `losses`: the losses so far.
    - `within`: the name of the list of messages in the format, "" for a list without a name.
    - `beside`: the values outside the list, such as the system prompt. Complete when the stream has
      ended.
    - `is_text`: whether the values are strings, which together are the text.
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
    """The types of a format's records. `of` returns the type of a record.

    `silent` has the types whose records have no words of people, models or tools. A key is such a
    type, and its value is the newest version of the program that is known to write this type, or
    `NOT_KNOWN`.
    """

    of: Callable[[JsonValue], str]
    silent: Mapping[str, str] = field(default_factory=dict)


# Wide: authors of formats outside this project write these arguments by name.
@dataclass(frozen=True)
class Format:
    """A format of conversations, as JSON or as text for people. Most fields are functions that read
    and write the format.

    A *turn* is a JSON value in the list of messages. In a session file, a turn is called a record.
    Fields that may be None are optional.

    Finding:

    - `find`: returns the conversation in a JSON value, or None if the value is in another format.
      For the format "auto", `find` also detects the format.
    - `claims`: returns whether a value can only be of this format. With `claims`, "auto" tries this
      format only for values that `claims` accepts. Then `find` may also accept values of other
      formats.
    - `find_each`: returns every conversation of a value that `find` accepts.
    - `is_record`: returns whether a line of a file is a record of a session. With `is_record`,
      `find` gets the list of all records, and other lines are reported. Otherwise, a line is a
      conversation, or a message of a conversation.
    - `session_of`: returns the id of a record's session, or None. A record with another id begins
      another session. Only one session's records are in memory at a time.
    - `is_empty`: returns whether a value is a conversation without messages.
    - `conversations`: yields the conversations of all values of a file. It is for formats in which
      several values make one conversation, such as model calls.

    Reading:

    - `parse`: returns the messages of the turns that `find` has found. Its second argument has the
      earlier messages of the conversation, whose tool calls the turns may answer. `parse` raises
      UnreadableTranscript with the index of a turn that cannot be read.
    - `plain`: returns an object of the format's library as JSON values. With `reads_streams`, it
      also accepts the library's streams, which are iterators of chunks.

    Losses:

    - `content_of`: returns the part of a turn with the texts of people, models and tools; by
      default, the whole turn. Words of this part that are in no message are reported as losses (see
      `chatmemory.formats.account`). Words are strings with at least four letters, except ids, types
      and the like.
    - If no message was read from a turn, and `content_of` returns no words, the words of the whole
      turn are checked. To prevent this, list the type of the turn in `kinds`, or return
      `account.NOTHING` from `content_of`.
    - `kinds`: the types of records, and which types have no words.
    - `is_whole`: whether all words of a conversation are in the turns. If True, words outside the
      turns are reported as losses, too.

    Writing:

    - `render`: returns messages in this format. None for a format that is only read. `render` may
      read the messages more than once.
    - `is_text`: True for a format that is only written, as text for people, such as Markdown.

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
