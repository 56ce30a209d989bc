"""Mutes causes on the overview, for everybody. The overview shows a muted cause again when its
number of conversations has grown by half.
"""

from __future__ import annotations

from django.utils import timezone

from chatmemory import database
from chatmemory.flags import flag_named
from chatmemory.ledger.transaction import audit
from chatmemory.models import Memory
from inspector.overview.selection import OverviewQuery
from inspector.rooms.settings.models import MutedCause
from inspector.shell import rooms
from inspector.shell.room import Muted, RoomCause


def muted() -> dict[str, Muted]:
    """Return the muted causes by name. Each name is the name of a flag, or of a cause that a room
    adds to the overview.
    """
    return {
        each.flag: Muted(each.count, each.muted_by, each.muted_at)
        for each in MutedCause.objects.order_by("flag")
    }


def mute(name: str, actor: str = "") -> None:
    """Mute a cause. `name` is the name of a flag, or of a cause that a room adds to the overview.
    Raises InvalidValue for an unknown name.

    The overview shows the cause again when its number of conversations has grown by half.
    """
    of_room = _cause_of_room(name)
    known = name if of_room else flag_named(name).name
    with database.atomic():
        count = of_room.count if of_room else Memory.objects.filter(flag_named(name).where).count()
        MutedCause(flag=known, count=count, muted_by=actor, muted_at=timezone.now()).save()
        audit(f"mute {known} at {count}", action="mute", actor=actor, flag=known)


def _cause_of_room(name: str) -> RoomCause | None:
    found = rooms.over_time(OverviewQuery())
    return next((each for each in found.causes if each.name == name), None) if found else None


def dismiss(name: str, actor: str = "") -> None:
    """Hide a cause that no conversation has any more. The cause is shown again when a conversation
    has it. Raises InvalidValue if `name` is not the name of a flag.
    """
    flag = flag_named(name)
    with database.atomic():
        MutedCause(flag=flag.name, count=0, muted_by=actor, muted_at=timezone.now()).save()
        audit(f"dismiss {flag.name}", action="dismiss", actor=actor, flag=flag.name)


def unmute(name: str, actor: str = "") -> None:
    """Show a muted cause again. Nothing happens if the cause is not muted. Raises InvalidValue for
    an unknown name.
    """
    with database.atomic():
        is_muted = MutedCause.objects.filter(flag=name).exists()
        known = name if is_muted or _cause_of_room(name) else flag_named(name).name
        if MutedCause.objects.filter(flag=known).delete()[0]:
            audit(f"unmute {known}", action="unmute", actor=actor, flag=known)
