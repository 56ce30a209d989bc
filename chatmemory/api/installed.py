"""Refuses the addresses of the API in a project that lacks the application."""

from chatmemory.given_settings import require_apps

require_apps("chatmemory.api.urls", "chatmemory")
