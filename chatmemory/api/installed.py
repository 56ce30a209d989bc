"""Raises an error on import if the project has the API's routes, but not its Django application."""

from chatmemory.settings_reader import require_apps

require_apps("chatmemory.api.urls", "chatmemory")
