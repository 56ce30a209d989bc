"""A room that tests make: it uses each hook, and fails where its `failing` says so."""

from __future__ import annotations

from django.db.models import Q

from chatmemory.flags import Flag
from inspector.shell import room


class ARoom(room.SiteRoom):
    name = "tests.a_room"
    verbose_name = "The room of tests"
    menu = (room.MenuItem("Tests", "overview", 5),)
    parameters = ("counted",)
    also_on = ("conversation",)
    styles = ("a_room/room.css",)
    flags = (Flag("short", "Only just begun", Q(last_step__lt=3), is_offered=True, place=90),)
    failing: set[str] = set()
    erased: list[room.kernel.Erased] = []

    def cards(self, view):
        self._fail("cards")
        counted = view.query.of_rooms.get("counted", "nothing")
        yield room.Card("a_room/_said.html", {"said": f"A card of {view.memory.id}: {counted}"})

    def sections(self, view, message):
        self._fail("sections")
        yield room.Section("a_room/_said.html", {"said": f"A section of #{message.seq}"})

    def links(self, view):
        self._fail("links")
        yield room.Link("a_room/_said.html", {"said": f"A link at {view.at}"}, place=25)

    def badges(self, rows):
        self._fail("badges")
        badge = room.Badge("a_room/_said.html", {"said": "A badge"})
        return {row.id: [badge] for row in rows if row.id == "m"}

    def erasing(self, erased):
        self._fail("erasing")
        self.erased.append(erased)

    def _fail(self, hook: str) -> None:
        if hook in self.failing:
            raise LookupError("on purpose")
