"""Refuses the URLs of the pages in a project that lacks the applications."""

from chatmemory.given_settings import require_apps

require_apps("inspector.urls", "chatmemory", "inspector")
