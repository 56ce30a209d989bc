"""The web site. docs/mounting.md says how another Django project mounts it."""

import chatmemory.core  # noqa: F401  (says so if another package named chatmemory is in its place)

MIDDLEWARE = ["inspector.middleware.own_pages.InspectorMiddleware"]
