"""A project that keeps conversations in a database of their own, and reads from a replica.

The replica is an empty database: reading a conversation from it fails.
"""

from inspector.project.settings import *  # noqa: F403
from inspector.project.settings import DATABASES as _ONE
from inspector.project.settings import VAR


def _beside(name: str) -> dict[str, str]:
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(VAR / name)}


DATABASES = {
    "default": _beside("accounts.sqlite3"),
    "conversations": _ONE["default"],
    "replica": _beside("replica.sqlite3"),
}
DATABASE_ROUTERS = ["tests.routed.router.ConversationsRouter"]
