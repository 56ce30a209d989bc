from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from chatmemory.exceptions import MemoryNotFound
from chatmemory.management.base import ReportCommand
from chatmemory.models import Memory
from chatmemory.printing import Options, Printer
from chatmemory.recall.incidents import Incident
from chatmemory.reports import incidents
from inspector.rooms.evidence.writes import current_incidents


class Command(ReportCommand):
    help = incidents.HELP
    about_files = incidents

    def of_stored(self, options: Options, printer: Printer) -> int:
        fail_on = incidents.check(options)
        return incidents.print_incidents(_of_stored(), printer, fail_on)


def _of_stored() -> Iterator[tuple[str, Sequence[Incident]]]:
    """Update the stored incidents, and yield each conversation's ID with its incidents."""
    for memory_id in Memory.objects.order_by("id").values_list("id", flat=True).iterator():
        with suppress(MemoryNotFound):
            yield memory_id, current_incidents(memory_id).incidents
