from __future__ import annotations

from typing import Any

from django.db.models import Model


def is_of_chatmemory(app_label: str) -> bool:
    """Whether an app is chatmemory, or one of its rooms."""
    return app_label == "chatmemory" or app_label.startswith("chatmemory_")


class ConversationsRouter:
    """Sends the tables of chatmemory to one database, its reads to another, and all else to the
    default database.
    """

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        return "replica" if is_of_chatmemory(model._meta.app_label) else None

    def db_for_write(self, model: type[Model], **hints: Any) -> str | None:
        return "conversations" if is_of_chatmemory(model._meta.app_label) else None

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return db == ("conversations" if is_of_chatmemory(app_label) else "default")


class TokensRouter:
    """Parts API tokens from the other tables."""

    def db_for_write(self, model: type[Model], **hints: Any) -> str | None:
        return "accounts" if model.__name__ == "ApiToken" else None


class KernelRouter:
    """Routes the tables of chatmemory to a database of their own, without those of its rooms."""

    def db_for_write(self, model: type[Model], **hints: Any) -> str | None:
        return "conversations" if model._meta.app_label == "chatmemory" else None

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return db == ("conversations" if app_label == "chatmemory" else "default")
