"""Base class of readers of agents' session files. These formats are only read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from typing import Any, ClassVar

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.account import Account
from chatmemory.formats.building import SessionBuilder
from chatmemory.formats.format import Format, Loss, Transcript
from chatmemory.formats.json_properties import object_in
from chatmemory.formats.packed import Packed
from chatmemory.formats.readers_and_writers import Calls
from chatmemory.formats.times import known_times, said_at_of
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    ToolExecutionResultMessage,
    UserMessage,
)


class SessionReader(ABC):
    """Base class that reads all records of one session. A subclass implements `read`, which reads
    one record.

    Some details of a record have no field in a message, such as the provider's token counts. A
    reader keeps them in the attributes of the message, under the name of the format, or records
    them as losses.
    """

    format: ClassVar[str]

    def __init__(self) -> None:
        self.calls = Calls()
        self.built = SessionBuilder()
        self._missing: Counter[str] = Counter()
        self._first: dict[str, int | None] = {}  # where each loss occurred first
        self._named: set[int] = set()  # records that a loss names before any is read
        self._account: Account | None = None
        self._turns: list[int] = []
        self._times: list[datetime | None] = []  # of the message at each position
        self._said_at: datetime | None = None  # of the record at hand
        self._turn, self._is_reading = 0, False
        self._answers: dict[str, int] = {}

    @classmethod
    def parse(cls, turns: Sequence[JsonValue], after: Iterable[ChatMessage] = ()) -> Transcript:
        """Return the transcript of a session. All its records are read, in the order of the file.
        Tool results may answer tool calls of the earlier messages in `after`.
        """
        return cls().read_all(turns, range(len(turns)), after)

    def read_all(
        self, turns: Sequence[JsonValue], order: Iterable[int], after: Iterable[ChatMessage] = ()
    ) -> Transcript:
        """Return the session that is read from the records with the indexes `order`, in this order.

        Summaries of compactions are in the `session` of the result, but not in its `messages`. A
        record that cannot be read is left out and reported.
        """
        self.calls.continue_from(after)
        self._account = account = Account.of(turns)
        account.name(*self._named)
        self._is_reading = True
        for self._turn, record in account.each(order):
            self._said_at = said_at_of(record)
            try:
                self.read(object_in(record, "a record must be a JSON object"))
            except InvalidMessage as error:
                account.refuse(self._turn, str(error))
        session = self.built.session()
        messages, summaries = session.messages, session.summaries
        places = [place for place in range(len(messages)) if place not in summaries]
        losses = [
            Loss("session", f"{what} ({n:,})", self._first[what])
            for what, n in self._missing.items()
        ]
        return Transcript(
            None,
            Packed(messages[place] for place in places) if summaries else messages,
            tuple(losses),
            turns=tuple(self._turns[place] for place in places),
            times=known_times(self._times),
            session=session,
        )

    @abstractmethod
    def read(self, record: JsonDict) -> None:
        """Add the messages of one record. Raises InvalidMessage if the record cannot be read.

        If the method adds neither a message nor a loss, the words of the record are reported as
        lost.
        """

    def miss(self, what: str, times: int = 1, *records: int) -> None:
        """Record that the detail `what` was lost, `times` times. Equal losses are counted together.

        `records` are the indexes of the records with the loss. By default, the current record has
        the loss, or the whole session if no record was read yet.
        """
        if times:
            at_hand = (self._turn,) if self._is_reading else ()
            self._missing[what] += times
            self._first.setdefault(what, min(records or at_hand, default=None))
            if self._account:
                self._account.name(*(records or at_hand))
            else:
                self._named.update(records)

    def lack(self, what: str, times: int = 1) -> None:
        """Record that `what`, such as "messages without content", was lost `times` times in the
        current record.

        Use `lack` instead of `miss` if the words of the record must still be checked. Words that
        are in no message are then reported as lost, too.
        """
        if times:
            self.account_for_record()
            self.miss(what, times)

    def add(self, message: ChatMessage, by_program: bool = False) -> int:
        self._turns.append(self._turn)
        self._times.append(self._said_at)
        self.account_for_record()
        return self.built.add(message, by_program)

    def account_for_record(self) -> None:
        """Mark the current record as read, in the session's `Account`. `add` calls this method for
        each message.
        """
        if self._account:
            self._account.read(self._turn)

    def answer(self, part: AiMessage, id: str | None) -> int:
        """Add a part of the model's answer to the session, and return the index of its message in
        `built.messages`.

        `id` is the id of the answer. Parts with the same `id` become one message. A part without an
        id becomes a message of its own.
        """
        place = self._answers.get(id) if id is not None else None
        if place is None:
            place = self.add(part)
            if id is not None:
                self._answers[id] = place
        else:
            self.account_for_record()
            self.built.join(place, part)
        return place

    def close(self, id: str | None) -> None:
        """Let the next part of a model's answer begin a new message. `id` is the id of the answer.
        If it is None, nothing happens.
        """
        if id is not None:
            self._answers.pop(id, None)

    def compact(self, summary: UserMessage, **how: Any) -> None:  # as of `SessionBuilder.compact`
        self._turns.append(self._turn)
        self._times.append(self._said_at)
        self.account_for_record()
        self._answers.clear()
        self.built.compact(summary, **how)

    def summaries(self) -> set[int]:
        return {each.summary for each in self.built.compactions}

    def result(
        self, id: str | None, contents: JsonValue, is_error: bool | None, about: JsonMap
    ) -> int:
        id, name = self.calls.answered(id)
        contents = contents or ""
        return self.add(ToolExecutionResultMessage(id, name, contents, is_error, self.own(about)))

    def own(self, about: JsonMap) -> JsonDict:
        """Return attributes that keep the details `about` a record, under the name of the format.
        Empty details are left out. Returns {} if all details are empty.
        """
        known = {name: value for name, value in about.items() if value not in (None, "", [], {})}
        return {self.format: known} if known else {}


def branch_of(
    outer: Account,
    read_way: Callable[[Account], Transcript],
    own: Collection[int],
    main: Transcript,
    format: Format,
) -> tuple[Transcript, list[Loss]]:
    """Read a branch of a session, such as the messages before a rewind. Return all messages of the
    branch, and the losses in the records that only the branch has.

    - `outer`: the `Account` with which the conversation `main` was read. The records that only the
      branch has are marked in it, so that they are no losses of `main`.
    - `read_way`: returns the messages of the branch. It is called with a new `Account` of all
      records.
    - `own`: the indexes of the records that only the branch has.
    - `main`: the session's main conversation.
    - `format`: the format of the session, which tells where a record has words.
    """
    account = Account(outer)
    read = read_way(account)
    account.leave(*(n for n in range(len(outer)) if n not in own))
    losses = [*read.losses, *account.losses(read, format.content_of, format.kinds)]
    outer.leave(*own)
    for each in account.left_out:
        if each.turn in own:
            outer.refuse(each.turn, each.why)
    assert read.session is not None
    assert main.session is not None
    pairs = zip(read.session.messages, main.session.messages, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    branch = replace(read, losses=(), shared=shared)
    return branch, [each for each in losses if each.turn in own]


def whole(value: JsonValue) -> int | None:
    """Return a count from a file: the value if it is an integer, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def part_texts(parts: JsonValue) -> list[str]:
    """Return the texts of a list of parts. Parts without a text are left out."""
    listed = parts if isinstance(parts, list) else ()
    found = [part.get("text") for part in listed if isinstance(part, dict)]
    return [text for text in found if isinstance(text, str) and text]
