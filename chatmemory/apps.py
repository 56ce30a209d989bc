from __future__ import annotations

from collections.abc import Sequence

from django.apps import AppConfig, apps
from django.conf import settings
from django.core import checks
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate, pre_migrate
from django.urls import NoReverseMatch, reverse

from chatmemory.access.rates import check_requests_are_counted
from chatmemory.conf import check_settings, check_times_have_zones, register_extensions
from chatmemory.database import (
    alias,
    answers,
    check_sessions_are_kept,
    check_tables_are_together,
    check_transactions_are_short,
)
from chatmemory.leftovers import check_leftover_tables
from chatmemory.rebuilds import announce_rebuilds
from chatmemory.roles import make_groups
from chatmemory.rooms import check_rooms
from chatmemory.schema import check_schema, refuse_other_schema
from chatmemory.search.conditions import add_functions

_SWAGGER_SCRIPTS = "drf_spectacular_sidecar"


class ChatMemoryConfig(AppConfig):
    name = "chatmemory"
    verbose_name = "Chat memory"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        register_extensions()
        check_settings()
        checks.register(check_tables_are_together, checks.Tags.models)
        checks.register(check_times_have_zones, checks.Tags.models)
        checks.register(check_transactions_are_short, checks.Tags.models)
        checks.register(check_requests_are_counted, checks.Tags.caches)
        checks.register(check_rooms, checks.Tags.models)
        checks.register(_check_databases, checks.Tags.database)
        checks.register(_check_docs_have_scripts, checks.Tags.urls)
        connection_created.connect(add_functions, dispatch_uid=self.label)
        pre_migrate.connect(refuse_other_schema, sender=self)
        pre_migrate.connect(announce_rebuilds, sender=self)
        if apps.is_installed("django.contrib.auth"):
            # The sender is the last app whose permissions a role has.
            post_migrate.connect(make_groups, sender=apps.get_app_config("auth"))


def _check_databases(
    databases: Sequence[str] | None = None, **_: object
) -> list[checks.CheckMessage]:
    """System checks that query a database. A database that is down is tried only once, because each
    attempt waits.
    """
    found = [using for using in databases or [alias()] if answers(using)]
    if not found:
        return []
    sessions = check_sessions_are_kept() if alias() in found else []
    return [*check_schema(found), *sessions, *check_leftover_tables(found)]


def _check_docs_have_scripts(**_: object) -> list[checks.Warning]:
    """A system check: warns if the Swagger page is installed without the package that has its
    scripts.
    """
    if apps.is_installed(_SWAGGER_SCRIPTS) or not getattr(settings, "ROOT_URLCONF", None):
        return []
    try:
        page = reverse("chatmemory:docs")
    except NoReverseMatch:
        return []
    return [
        checks.Warning(
            f"{page} is a blank page: it takes its scripts from {_SWAGGER_SCRIPTS!r}.",
            hint="Add it to INSTALLED_APPS.",
            id="chatmemory.W002",
        )
    ]
