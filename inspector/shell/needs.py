"""A value for when a message that left memory was needed again. A room (feature) computes this
value for the conversation page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from chatmemory.recall.incidents import Forgotten, Incident


class NextNeed(NamedTuple):
    """When the selected message was needed again after it left memory: in an `incident`, because of
    a `fact`. Both are None if the message was not needed.

    Incidents are known up to step `until`.
    """

    incident: Incident | None
    fact: Forgotten | None
    until: int
