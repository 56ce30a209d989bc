from __future__ import annotations

from chatmemory import room


class PydanticAi(room.Room):
    name = "inspector.rooms.pydantic_ai"
    verbose_name = "Conversations of Pydantic AI"

    def erasing(self, erased: room.Erased) -> None:
        from inspector.rooms.pydantic_ai.erasing import erase

        erase(erased)
