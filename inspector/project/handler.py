"""An ASGI handler of Django that runs synchronous views with few changes between threads."""

from __future__ import annotations

from collections.abc import Callable

from asgiref.sync import AsyncToSync, sync_to_async
from django.core.handlers.asgi import ASGIHandler


class Handler(ASGIHandler):
    """Runs the view of a request, and all middleware after `StaticFiles`, by one call in a thread.

    Django's own handler would change to another thread for each middleware that supports both
    synchronous and asynchronous calls. These changes would happen a dozen times a request, and take
    longer than a short response.
    """

    _middleware_chain: Callable[..., object]

    def load_middleware(self, is_async: bool = False) -> None:
        """Load all middleware as for a synchronous handler, and ignore `is_async`. Then make the
        chain of middleware awaitable, because this handler awaits it.
        """
        super().load_middleware(is_async=False)
        chain = self._middleware_chain
        if isinstance(chain, AsyncToSync):  # the outermost middleware is asynchronous
            self._middleware_chain = chain.awaitable
        else:
            self._middleware_chain = sync_to_async(chain)
