"""Collects the new rows of a conversation during a transaction, and writes them together at its
end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.backends.utils import CursorWrapper

from chatmemory.inserted import InsertedMessage, InsertedStay, InsertedStep
from chatmemory.ledger import sql
from chatmemory.models import Memory, Message
from chatmemory.room import Recorded
from chatmemory.rooms import seal


class PendingRows:
    """The new rows of one conversation. They are collected during a transaction, and written
    together at its end.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._stored = sql.values_of(memory)
        self._messages: list[InsertedMessage] = []
        self._stays: dict[int, InsertedStay] = {}
        self._steps: list[InsertedStep] = []
        self._ended: dict[int, tuple[int, str]] = {}

    def keep(
        self,
        step: InsertedStep,
        messages: Sequence[InsertedMessage],
        stays: Sequence[InsertedStay],
        ended: Mapping[int, str],
        redacted: Message | None = None,
    ) -> None:
        """Let the rooms add digests to the rows of a step, and collect the rows.

        - `ended`: maps the number of each stay that ends in the step to the reason.
        - `redacted`: the message whose text the step erases; None for any other step.
        """
        seal(Recorded(self._memory, messages, stays, [step], sorted(ended.items()), redacted))
        self._messages += messages
        for stay in stays:
            self._stays[stay.n] = stay
        self._steps.append(step)
        for n, reason in ended.items():
            if begun := self._stays.get(n):
                begun.left_step, begun.reason = step.n, reason
            else:
                self._ended[n] = step.n, reason

    def write(self, cursor: CursorWrapper) -> None:
        """Write the rows, and the changed columns of the conversation, inside the transaction."""
        sql.write(
            self._memory,
            self._stored,
            self._ended,
            messages=self._messages,
            stays=self._stays.values(),
            steps=self._steps,
            cursor=cursor,
        )
