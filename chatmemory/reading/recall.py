"""Reads the history of a stored conversation, with the facts of each message, for replays under
other policies.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory.messages.message import ChatMessage
from chatmemory.reading.history import read_with_history
from chatmemory.recall.history import History
from chatmemory.snapshots import one_snapshot


@one_snapshot()
def recall_history(
    memory_id: str, estimator: str | None = None, *, latest: int | None = None
) -> History:
    """Return the history of a conversation with the facts in its messages. The field `numbers` of
    the result has the seqs.

    `estimator` is by default the conversation's estimator. `latest` is how many of the last
    messages are read; None reads all. Raises MemoryNotFound, UnknownEstimator.
    """
    return messages_and_history(memory_id, estimator, latest)[1]


def messages_and_history(
    memory_id: str, estimator: str | None = None, latest: int | None = None
) -> tuple[Sequence[ChatMessage], History]:
    """Return the messages in the history of a conversation, and the result of `recall_history` for
    the same arguments.

    With `latest`, only the last `latest` messages are returned. Raises MemoryNotFound,
    UnknownEstimator.
    """
    return read_with_history(memory_id, estimator, latest)
