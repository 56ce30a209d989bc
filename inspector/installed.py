"""Raises an error on import if the project has the URLs of the pages, but not the Django
applications `chatmemory` and `inspector`.
"""

from chatmemory.settings_reader import require_apps

require_apps("inspector.urls", "chatmemory", "inspector")
