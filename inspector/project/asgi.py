"""The ASGI application: live streams beside Django, and limits around both."""

import os

from django.conf import settings
from django.core.asgi import get_asgi_application

from inspector.live import with_live_streams

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
_django = get_asgi_application()

from inspector.middleware.admission import Admission  # noqa: E402  (needs Django set up)
from inspector.middleware.body_limit import BoundedBodies  # noqa: E402
from inspector.middleware.places import Places  # noqa: E402

_admitted = Admission(
    _django,  # type: ignore[arg-type]
    Places(settings.CONNECTIONS, settings.LOCK_SECONDS),
)
application = BoundedBodies(with_live_streams(_admitted))
