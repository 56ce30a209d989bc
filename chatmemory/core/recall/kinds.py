"""How a fact can come up again in a message: said by a user, fetched by a call, used by a model."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum

from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)


class IncidentKind(StrEnum):
    """How a forgotten fact came up again: in a user's message, in the result of a call equal to an
    earlier one, or in the assistant's text or call.
    """

    SAID_AGAIN = "said_again"
    FETCHED_AGAIN = "fetched_again"
    USED = "used"


class Calls:
    """The calls so far, to know those that are made again."""

    def __init__(self) -> None:
        self._made: set[tuple[str, str]] = set()
        self._awaited: dict[str | None, list[bool]] = {}  # by id, whether each was made before

    def kind_of(self, message: ChatMessage) -> IncidentKind | None:
        """Return the kind of an incident in the next message; None if it can be none."""
        match message:
            case UserMessage():
                return IncidentKind.SAID_AGAIN
            case AiMessage():
                self._call(message.tool_execution_requests)
                return IncidentKind.USED
            case ToolExecutionResultMessage():
                awaited = self._awaited.get(message.id)
                return IncidentKind.FETCHED_AGAIN if awaited and awaited.pop(0) else None
        return None

    def _call(self, requests: Iterable[ToolExecutionRequest | None]) -> None:
        awaited: defaultdict[str | None, list[bool]] = defaultdict(list)
        made = [(request, _call_of(request)) for request in requests if request]
        for request, call in made:
            awaited[request.id].append(call in self._made)
        self._made.update(call for _, call in made)
        self._awaited.update(awaited)


def _call_of(request: ToolExecutionRequest) -> tuple[str, str]:
    """Return the name and the arguments of a call, equal for arguments that are equal as JSON."""
    arguments = request.arguments or "{}"
    with suppress(ValueError, RecursionError):
        arguments = json.dumps(json.loads(arguments), sort_keys=True)
    return request.name or "", arguments
