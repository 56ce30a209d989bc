"""The ASGI application: live streams beside Django, and limits around both."""

import os

from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
_django = get_asgi_application()

from inspector.asgi import Receive, Scope, Send  # noqa: E402  (needs Django set up)
from inspector.live.routes import is_stream  # noqa: E402
from inspector.live.stream import stream  # noqa: E402
from inspector.middleware.admission import Admission  # noqa: E402
from inspector.middleware.body_limit import BoundedBodies  # noqa: E402
from inspector.middleware.places import Places  # noqa: E402

_admitted = Admission(
    _django,  # type: ignore[arg-type]
    Places(settings.CONNECTIONS, settings.LOCK_SECONDS),
)


async def _application(scope: Scope, receive: Receive, send: Send) -> None:
    if is_stream(scope):
        await stream(scope, receive, send)
    else:
        await _admitted(scope, receive, send)


application = BoundedBodies(_application)
