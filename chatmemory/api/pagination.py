from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

from chatmemory.api.problems import InvalidField
from chatmemory.models import Memory

PAGE_MAX = 200

ORDERINGS = {
    "activity": "updated_at",
    "created": "created_at",
    "id": "id",
    "said": "said_count",
    "tokens": "history_tokens",
}


class MemoryPagination(CursorPagination):
    """`?ordering=-activity` (the default), created, id, said, tokens; `?page_size=`, `?cursor=`."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = PAGE_MAX

    def get_ordering(
        self, request: Request, queryset: QuerySet[Memory], view: Any
    ) -> tuple[str, ...]:
        wanted = request.query_params.get("ordering", "-activity")
        descending, name = wanted.startswith("-"), wanted.removeprefix("-")
        if name not in ORDERINGS:
            raise InvalidField(
                "ordering", f"ordering is one of {', '.join(ORDERINGS)}, or -{name}…"
            )
        columns = [ORDERINGS[name]] + (["id"] if name != "id" else [])
        return tuple(f"-{column}" if descending else column for column in columns)


def page_size(request: Request, default: int) -> int:
    return min(number(request, "size") or default, PAGE_MAX) or default


def number(request: Request, name: str) -> int | None:
    """A query parameter that is a number from 0. Raises InvalidField."""
    text = request.query_params.get(name)
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidField(name, f"{name} must be a whole number from 0")
    return int(text)
