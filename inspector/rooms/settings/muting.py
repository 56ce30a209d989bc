"""Mutes causes on the overview, for everybody, until their number of conversations has grown by
half.
"""

from __future__ import annotations

from django.utils import timezone

from chatmemory import database
from chatmemory.flags import flag_named
from chatmemory.ledger.transaction import audit
from chatmemory.models import Memory
from inspector.rooms.settings.models import MutedCause
from inspector.shell.room import Muted


def muted() -> dict[str, Muted]:
    """Return the muted causes. A key is the name of the cause's flag."""
    return {
        each.flag: Muted(each.count, each.muted_by, each.muted_at)
        for each in MutedCause.objects.order_by("flag")
    }


def mute(name: str, actor: str = "") -> None:
    """Mute a cause at its current number of conversations. Raises InvalidValue for an
    unknown flag.
    """
    flag = flag_named(name)
    with database.atomic():
        count = Memory.objects.filter(flag.where).count()
        MutedCause(flag=flag.name, count=count, muted_by=actor, muted_at=timezone.now()).save()
        audit(f"mute {flag.name} at {count}", action="mute", actor=actor, flag=flag.name)


def dismiss(name: str, actor: str = "") -> None:
    """Hide a cause that no conversation has any more. The next conversation with this cause shows
    the line again. Raises InvalidValue for an unknown flag.
    """
    flag = flag_named(name)
    with database.atomic():
        MutedCause(flag=flag.name, count=0, muted_by=actor, muted_at=timezone.now()).save()
        audit(f"dismiss {flag.name}", action="dismiss", actor=actor, flag=flag.name)


def unmute(name: str, actor: str = "") -> None:
    """Show a muted cause again. A second call changes nothing. Raises InvalidValue for an unknown
    flag.
    """
    flag = flag_named(name)
    with database.atomic():
        if MutedCause.objects.filter(flag=flag.name).delete()[0]:
            audit(f"unmute {flag.name}", action="unmute", actor=actor, flag=flag.name)
