"""The ASGI application: live streams beside Django, and a limit to the size of any request."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
_django = get_asgi_application()

from inspector.asgi import Receive, Scope, Send  # noqa: E402  (needs Django set up)
from inspector.live.routes import is_stream  # noqa: E402
from inspector.live.stream import stream  # noqa: E402
from inspector.middleware.body_limit import BoundedBodies  # noqa: E402  (needs Django set up)


async def _application(scope: Scope, receive: Receive, send: Send) -> None:
    if is_stream(scope):
        await stream(scope, receive, send)
    else:
        await _django(scope, receive, send)  # type: ignore[arg-type]


application = BoundedBodies(_application)
