"""Django's ASGI handler for synchronous views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.handlers.asgi import ASGIHandler


class Handler(ASGIHandler):
    """Answers a request by one call in its thread: all views are synchronous, and all middleware
    behind the one that serves static files.

    Django's handler goes to the thread and back for each middleware that can be either, a dozen
    times a request. That takes longer than a short answer.
    """

    _middleware_chain: Callable[..., Any]

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)
        self._middleware_chain = self.adapt_method_mode(True, self._middleware_chain)

    def adapt_method_mode(
        self,
        is_async: bool,
        method: Callable[..., Any],
        method_is_async: bool | None = None,
        debug: bool = False,
        name: str | None = None,
    ) -> Callable[..., Any]:
        """Leave the outermost middleware asynchronous, as the server calls it."""
        if method_is_async and not is_async:
            return method
        return super().adapt_method_mode(is_async, method, method_is_async, debug, name)
