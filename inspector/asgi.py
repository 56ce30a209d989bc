"""Types of an ASGI application, https://asgi.readthedocs.io/en/latest/specs/main.html."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]  # each key has a type of its own
Message = MutableMapping[str, Any]  # as of a scope
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
