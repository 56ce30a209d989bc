"""Services that take time in line with the size of a window."""

from __future__ import annotations

from chatmemory import services


def undo(it):
    change = services.repair(it.id, "anthropic")
    services.undo_repair(it.id, change.step or 0)


ROWS = {
    "newest_repair": lambda it: services.newest_repair(it.id),
    "preview_repair": lambda it: services.preview_repair(it.id, "openai"),
    "repair": lambda it: services.repair(it.id, "anthropic"),
    "repair_all": lambda it: services.repair_all([it.id], "openai"),
    "undo_repair": undo,
}
