"""The web site. docs/mounting.md says how another Django project mounts it."""

import chatmemory.reports  # noqa: F401  (refuses another package named chatmemory in its place)

MIDDLEWARE = ["inspector.middleware.own_pages.InspectorMiddleware"]
