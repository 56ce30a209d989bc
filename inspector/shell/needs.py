"""What a room tells the conversation page about a message that left memory: when the message was
needed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from chatmemory.recall.incidents import Forgotten, Incident


class NextNeed(NamedTuple):
    """When the selected message was needed again after it left memory: the `incident`, and the
    repeated `fact`. Both are None if the message was not needed again.

    `until` is the last step for which incidents have been computed.
    """

    incident: Incident | None
    fact: Forgotten | None
    until: int
