"""Raises AppMissing on import unless the application `chatmemory` is in INSTALLED_APPS. The API's
routes (`chatmemory.api.urls`) import this module first.
"""

from chatmemory.settings_reader import require_apps

require_apps("chatmemory.api.urls", "chatmemory")
