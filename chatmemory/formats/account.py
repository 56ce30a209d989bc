"""Keeps an account of the records in a conversation's file, so that no record is dropped silently.

A reader gets its records from an `Account`. The reader marks the records from which it reads a
message, and the records that it refuses or reports as lost. At the end, `Account.losses` searches
the records for words that are in no message. Records that are already refused or reported are
skipped.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from chatmemory.exceptions import ChatMemoryError, UnreadableTranscript
from chatmemory.formats.format import (
    Kinds,
    Loss,
    Response,
    SkippedTurn,
    Transcript,
    kind_of,
    unwrapped,
)
from chatmemory.formats.packed import Packed
from chatmemory.formats.words import Words, misplaced_objects, plain_name, strings_in, told
from chatmemory.messages.json_values import JsonValue

logger = logging.getLogger(__name__)

# A record that is named and read is read: then only a part of it is named. One that is refused on a
# branch is refused here, too.
UNKNOWN, NAMED, READ, ELSEWHERE, REFUSED = range(5)
# What `Format.content_of` returns for a record that is known, and whose words are another record's.
NOTHING: tuple[()] = ()


class Places:
    """The positions of a conversation's records in its file, in words:

        line 5                      in JSON Lines: `numbers` has the line number of each record
        .messages[2]                in one JSON document: `root` is the document
        line 5, .messages[2]        in a document on a line: `line` is the number of the line
        .[3].messages[2]            in a document within a list: `prefix` is its path in the list

    Errors and losses name these positions.
    """

    def __init__(
        self,
        numbers: Iterable[int] = (),
        root: JsonValue = None,
        line: int | None = None,
        prefix: str = "",
    ) -> None:
        self.numbers = array("L", numbers)
        self._root, self._line, self._prefix = root, line, prefix

    def of(self, records: Iterable[int]) -> Places:
        """Return the positions of the records with these indexes."""
        if not self.numbers:
            return self
        return Places((self.numbers[n] for n in records), self._root, self._line, self._prefix)

    def name(self, n: int, record: JsonValue) -> str:
        """Return the position of the record with index `n`, such as "line 5" or ".messages[2]"."""
        if n < len(self.numbers):
            return line_name(self.numbers[n])
        path = _path_to(unwrapped(record), self._root)
        where = f".{f'{self._prefix}{path}'.removeprefix('.')}" if path else f"record {n + 1}"
        return where if self._line is None else f"{line_name(self._line)}, {where}"

    def of_value(self, n: int = 0) -> str:
        """Return the position of the JSON value with index `n` in a file, such as "line 5".

        If the file is one document, the position is ".". If the value is an item of a list, the
        position is the path of the item, such as ".[3]".
        """
        if n < len(self.numbers):
            return line_name(self.numbers[n])
        return f".{self._prefix}" if self._line is None else line_name(self._line)


def line_name(number: int) -> str:
    return f"line {number}"


def _path_to(record: JsonValue, root: JsonValue) -> str:
    """Return the path of an object in the JSON document `root`, or "" if the object is not
    in it.
    """
    waiting: list[tuple[str, JsonValue]] = [("", root)]
    while waiting:
        path, value = waiting.pop()
        if value is record and path:
            return path
        if isinstance(value, dict):
            waiting += [(f"{path}{_step(name)}", each) for name, each in value.items()]
        elif isinstance(value, list):
            waiting += [(f"{path}[{n}]", each) for n, each in enumerate(value)]
    return ""


def _step(name: str) -> str:
    is_plain = name.isascii() and name.isidentifier()
    return f".{name}" if is_plain else f'["{name}"]'


class Account(Sequence[JsonValue]):
    """The records of one conversation. A reader marks each record that it read, refused, reported
    as lost, or left to another account.

    Only a call of a method such as `read` sets a mark. Iterating over the records sets no mark.
    """

    def __init__(self, records: Sequence[JsonValue], places: Places | None = None) -> None:
        self._records = records
        self._states = bytearray(len(records))
        self._places = places or Places(root=records)
        self.left_out: list[SkippedTurn] = []
        self.at: int | None = None  # the record at hand

    @classmethod
    def of(cls, records: Sequence[JsonValue]) -> Account:
        return records if isinstance(records, Account) else cls(records)

    def __len__(self) -> int:
        return len(self._states)

    def __getitem__(self, n: int | slice) -> JsonValue:
        return self._records[n]

    def __iter__(self) -> Iterator[JsonValue]:
        return iter(self._records)

    @property
    def is_packed(self) -> bool:
        return isinstance(self._records, Packed)

    def each(self, order: Iterable[int] | None = None) -> Iterator[tuple[int, JsonValue]]:
        """Yield each record with its index, in the order of the file. If `order` is given, only the
        records with the indexes in `order` are yielded, in that order.

        The attribute `at` is the index of the current record, and None at the end.
        """
        if order is None:
            for n, record in enumerate(self._records):
                self.at = n
                yield n, record
        else:
            for n in order:
                self.at = n
                yield n, self._records[n]
        self.at = None

    def read(self, *records: int) -> None:
        """Mark records from which a message was read."""
        self._set(READ, records)

    def name(self, *records: int) -> None:
        """Mark records that the reader itself reports as a loss."""
        self._set(NAMED, records)

    def leave(self, *records: int) -> None:
        """Mark records that belong to another account, such as that of a branch."""
        self._set(ELSEWHERE, records)

    def _set(self, state: int, records: Iterable[int]) -> None:
        for n in records:
            self._states[n] = max(state, self._states[n])

    def refuse(self, record: int, why: str) -> None:
        if self._states[record] != REFUSED:
            self._set(REFUSED, [record])
            self.left_out.append(SkippedTurn(record, why))

    def take_over(self, inner: Account, records: Sequence[int]) -> None:
        """Copy the marks of the account `inner`. Its record n is the record `records[n]` of this
        account.
        """
        for n, state in enumerate(inner._states):
            self._states[records[n]] = max(state, self._states[records[n]])
        self.left_out += [SkippedTurn(records[each.turn], each.why) for each in inner.left_out]

    def place(self, n: int) -> str:
        return self._places.name(n, self._records[n])

    def losses(
        self,
        read: Transcript,
        content_of: Callable[[JsonValue], JsonValue] | None = None,
        kinds: Kinds | None = None,
    ) -> Iterator[Loss]:
        """Yield the losses: words of the records that are in no message of the transcript `read`.

        - A property with such words is one loss.
        - If no message was read from a record, and `content_of` finds no words in it, the whole
          record is searched. The record is then at most one loss. This search leaves out the types
          of records that `kinds` lists as having no words.
        - Records that were refused, already reported, or left to another account are skipped.

        `content_of` and `kinds` are fields of `Format`.
        """
        known = Words(read)
        for n, record in enumerate(self._records):
            state = self._states[n]
            if state in (NAMED, REFUSED, ELSEWHERE):
                continue
            about = dict(record.about) if isinstance(record, Response) else None
            record = unwrapped(record)
            is_known, strings = True, [*self._said(record, content_of), *strings_in(about)]
            if not strings and state != READ and self._is_open(record, content_of, kinds):
                is_known, strings = False, [*strings_in(record)]
            paths = {path for path, text in strings if not known.has_all(text, n)}
            if paths and not is_known:
                kind = kinds.of(record) if kinds else kind_of(record)
                yield Loss(_message(n), f"records of type {kind!r}, which {known.missing}", turn=n)
            else:
                for path in sorted(paths):
                    words = f"words under {path!r}, which" if path else "words that"
                    yield Loss(_message(n), f"{words} {known.missing}", turn=n)

    @staticmethod
    def _said(
        record: JsonValue, content_of: Callable[[JsonValue], JsonValue] | None
    ) -> Iterator[tuple[str, str]]:
        if content_of is None or not isinstance(record, dict):
            return strings_in(record)
        return strings_in(content_of(record))

    @staticmethod
    def _is_open(
        record: JsonValue, content_of: Callable[[JsonValue], JsonValue] | None, kinds: Kinds | None
    ) -> bool:
        """Return whether any property of an unread record may have words, because the format does
        not know where its words are.
        """
        if content_of is None or not isinstance(record, dict):
            return False
        if kinds and kinds.of(record) in kinds.silent:
            return False
        return content_of(record) is not NOTHING


# Properties of conversations and of nodes of trees that say how they are kept, not what was said,
# by their plain names. Objects under `_ABOUT` are not what programs write there.
_ABOUT = {
    *("title", "tags", "children", "childrenids", "parent", "currentnode", "models", "slug"),
    *("endpoint", "directory", "workingdir", "exportat", "starttime", "projecthash", "lastupdated"),
    *("memoryscope", "initiallocation", "requesterusername", "responderusername", "classname"),
    *("currentid", "conversationorigin", "gizmotype", "account", "project", "summary"),
}
_ABOUT_WHOLE = {"settings", "extensiondata", "revert", "todos"}


def beside(value: JsonValue, turns: Iterable[JsonValue], read: Transcript) -> Iterator[Loss]:
    """Yield a loss for each property outside the messages if the words of the property are in no
    message.

    `value` is the whole conversation as JSON, and `turns` are its messages as JSON.
    """
    known = Words(read)
    inner = {id(unwrapped(each)) for each in turns}
    waiting: list[tuple[str, JsonValue]] = [("", value)]
    paths: set[str] = set()
    while waiting:
        path, each = waiting.pop()
        if id(each) in inner:
            continue
        if isinstance(each, dict):
            within = [(name, _told_beside(name, one)) for name, one in each.items()]
            waiting += [(f"{path}.{name}" if path else name, one) for name, one in within if one]
        elif isinstance(each, list):
            waiting += [(f"{path}[]", one) for one in each]
        elif any(not known.has_all(text, 0) for _, text in strings_in(each)):
            paths.add(path)
    for path in sorted(paths):
        yield Loss("conversation", f"words under {path!r}, beside the messages, that are not read")


def _told_beside(name: str, value: JsonValue) -> JsonValue:
    plain = plain_name(name)
    if plain in _ABOUT_WHOLE:
        return None
    return misplaced_objects(value) if plain in _ABOUT else told(name, value)


def _message(n: int) -> str:
    return f"message {n + 1}"


@contextmanager
def refusing_faults(called: str) -> Iterator[None]:
    """Turn an unexpected exception in a `with` block into UnreadableTranscript. Exceptions of
    chatmemory are not changed.

    The unexpected exception is logged. `called` says in the log record what was read, such as the
    name of the file.
    """
    try:
        yield
    except ChatMemoryError:
        raise
    except Exception as error:
        raise UnreadableTranscript(-1, fault(error, called)) from error


def fault(error: Exception, where: str) -> str:
    """Log an unexpected exception of a reader. Return a sentence that says why the file is refused.

    `where` is the position in the file.
    """
    logger.error(
        "a transcript cannot be read because of a fault in chatmemory, not in the transcript: %s",
        where,
        exc_info=error,
    )
    name = type(error).__name__
    return (
        f"chatmemory failed to read this ({name}) because of a fault of its own: please report it"
    )
