from __future__ import annotations

from django.apps import AppConfig, apps
from django.db import connections
from django.db.models.signals import post_migrate

from chatmemory.access.roles import make_groups
from chatmemory.conf import register_extensions


class ChatMemoryConfig(AppConfig):
    name = "chatmemory"
    verbose_name = "Chat memory"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        register_extensions()
        post_migrate.connect(_keep_search, sender=self)
        if apps.is_installed("django.contrib.auth"):
            # The sender is the last app whose permissions a role has.
            post_migrate.connect(make_groups, sender=apps.get_app_config("auth"))


def _keep_search(using: str, **_: object) -> None:
    from chatmemory import search

    search.install_triggers(connections[using])
