"""The note about a repair on the conversation page, with a button that undoes the repair."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.shell.room import Part, Place
from inspector.shell.state import ConversationState


def parts(view: ConversationState) -> Iterator[Part]:
    """Yield the note about the repair that the URL names, if this repair is the newest step."""
    row = (
        view.step.detail.row
        if view.step.detail and view.is_live and not view.is_simulated
        else None
    )
    named = view.query.room_parameters.get("repaired")
    if row and row.kind == "repair" and row.note and named == str(view.step.n):
        context = {"note": row.note, "memory": view.memory}
        yield Part("rooms/repairs/_toast.html", context, Place.ABOVE_STEP)
