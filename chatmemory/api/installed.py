"""Refuses the addresses of the API in a project that lacks the application."""

from chatmemory.settings_reader import require_apps

require_apps("chatmemory.api.urls", "chatmemory")
