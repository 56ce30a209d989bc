"""The web site. docs/mounting.md says how another Django project mounts it."""

MIDDLEWARE = ["inspector.middleware.own_pages.InspectorMiddleware"]
