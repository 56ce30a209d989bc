"""The ASGI application of the inspector's own project: Django with a limit for simultaneous
requests, live streams, and limits for request bodies.
"""

import gc
import os

import django
from django.conf import settings

from inspector.live import with_live_streams

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
django.setup(set_prefix=False)

from inspector.middleware.admission import Admission, Places  # noqa: E402  (needs Django set up)
from inspector.project.handler import Handler  # noqa: E402

places = Places(settings.CONNECTIONS, settings.LOCK_SECONDS)
application = with_live_streams(Admission(Handler(), places))  # type: ignore[arg-type]  # Django's handler is an ASGI application

# Loaded modules live as long as the process, so that the garbage collector can skip them. Pages of
# long windows make hundreds of thousands of objects; at the usual threshold of 700, the collector
# takes up to half of their time.
gc.collect()
gc.freeze()
gc.set_threshold(10_000, 10, 10)
