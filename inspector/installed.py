"""Refuses the URLs of the pages in a project that lacks the applications."""

from chatmemory.settings_reader import require_apps

require_apps("inspector.urls", "chatmemory", "inspector")
