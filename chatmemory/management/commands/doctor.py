from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from chatmemory import queries
from chatmemory.management.base import ReportCommand
from chatmemory.reports import doctor
from chatmemory.reports.doctor import Diagnosis
from chatmemory.reports.printing import Printer


class Command(ReportCommand):
    help = doctor.HELP
    about_files = doctor

    def of_stored(self, options: Mapping[str, Any], printer: Printer) -> int:
        return doctor.print_diagnoses(_of_stored(doctor.providers_of(options)), printer)


def _of_stored(providers: Iterable[str]) -> Iterator[Diagnosis]:
    """Yield what each provider says of the stored conversations that are ill."""
    for provider in providers:
        for memory_id, found in queries.stored_findings(provider):
            yield memory_id, provider, found
