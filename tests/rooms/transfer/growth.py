"""Services that take time in line with the size of a window."""

from __future__ import annotations

from chatmemory.formats import Reading, Transcript
from inspector.rooms.transfer.imports import import_all

ROWS = {
    "import_all": lambda it: list(
        import_all(Reading("json", (Transcript("new", tuple(it.messages)),), ()))
    ),
}
