from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import apps
from django.db import connections
from django.db.models.signals import post_migrate

from chatmemory import search
from chatmemory.database import has_tables
from chatmemory.signals import vacuuming
from inspector.shell import room

if TYPE_CHECKING:
    from chatmemory.contradictions import LedgerCheck
    from chatmemory.models import Memory


class Search(room.SiteRoom):
    name = "inspector.rooms.search"
    verbose_name = "Search"

    def ready(self) -> None:
        from inspector.rooms.search.postgresql import PostgresqlIndex
        from inspector.rooms.search.sqlite import SqliteIndex

        search.INDEXES.update(sqlite=SqliteIndex, postgresql=PostgresqlIndex)
        # Django sends no signal for an application without models, such as this one
        kernel = apps.get_app_config("chatmemory")
        post_migrate.connect(_keep_up, sender=kernel, dispatch_uid=self.label)
        vacuuming.connect(_rebuild, dispatch_uid=self.label)

    def verifying(self, memory: Memory) -> LedgerCheck:
        from inspector.rooms.search.checking import IndexCheck

        return IndexCheck(memory)


def _keep_up(using: str, **_: object) -> None:
    if has_tables(using):
        search.index_of(connections[using]).keep_up()


def _rebuild(**_: object) -> None:
    search.index().rebuild()
