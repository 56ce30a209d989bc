from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from django.core import checks
from django.core.signals import request_finished, request_started

from chatmemory.flag import Flag
from inspector.rooms.doctor import flagged
from inspector.shell import room

if TYPE_CHECKING:
    from chatmemory.keeper import Keeper
    from chatmemory.reading.rows import MemoryRow
    from inspector.shell.state import ConversationState


class Doctor(room.SiteRoom):
    name = "inspector.rooms.doctor"
    verbose_name = "Doctor"
    urls = "inspector.rooms.doctor.urls"
    api_urls = "inspector.rooms.doctor.api"
    menu = (
        room.MenuItem(
            *("Doctor", "doctor", 35, ("doctor-rules", "doctor-providers", "doctor-error")),
            icon="doctor",
            is_seldom=True,
        ),
    )
    styles = ("rooms/doctor/doctor.css",)
    flags: Sequence[Flag] = flagged.FLAGS

    def ready(self) -> None:
        from inspector.rooms.doctor.choosing import forget, remember

        checks.register(_check_providers, checks.Tags.models)
        request_started.connect(remember, dispatch_uid="inspector.rooms.doctor")
        request_finished.connect(forget, dispatch_uid="inspector.rooms.doctor")

    def in_use(self, memory_id: str) -> Mapping[str, Sequence[str]] | None:
        from inspector.rooms.doctor.choosing import choices

        in_use = choices()
        use = in_use.of(memory_id) if memory_id else in_use.everywhere
        return use.models if in_use.is_made else None

    def keepers(self) -> Iterable[Keeper]:
        from inspector.rooms.doctor.diagnosing import DiagnosisKeeper

        return (DiagnosisKeeper(),)

    def tools(self) -> Iterable[Callable[..., object]]:
        from inspector.rooms.doctor.tools import doctor

        return (doctor,)

    def parts(self, view: ConversationState) -> Iterable[room.Part]:
        from inspector.rooms.doctor import card

        return card.parts(view)

    def questions(self) -> Iterable[room.Fragment]:
        from inspector.rooms.doctor import card

        return card.questions()

    def badges(self, rows: Sequence[MemoryRow]) -> Mapping[str, Iterable[room.Badge]]:
        from inspector.rooms.doctor import card

        return card.badges(rows)


def _check_providers(**_: object) -> list[checks.CheckMessage]:
    """Report a provider in CHATMEMORY["PROVIDERS"] that does not exist."""
    from chatmemory.conf import configuration
    from chatmemory.exceptions import InvalidValue
    from inspector.rooms.doctor.choosing import choices

    if configuration().PROVIDERS is None:
        return []
    try:
        choices()
    except InvalidValue as error:
        return [checks.Error(f'CHATMEMORY["PROVIDERS"]: {error}', id="chatmemory.E011")]
    return []
