from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from chatmemory import explain, services
from chatmemory.core.exceptions import ChatMemoryError
from chatmemory.management.base import ReportCommand
from chatmemory.reports import doctor
from chatmemory.reports.doctor import Complaint
from chatmemory.reports.printing import Printer


class Command(ReportCommand):
    help = doctor.HELP
    about_files = doctor

    def of_stored(self, options: Mapping[str, Any], printer: Printer) -> int:
        return doctor.print_complaints(self.complaints(doctor.providers_of(options)), printer)

    def complaints(self, providers: Iterable[str]) -> Iterator[Complaint]:
        """Yield what providers say of the stored conversations, after a look at those that have
        changed. One that cannot be read is told on the error output.
        """
        for memory_id, diagnosis in services.diagnoses(self._unreadable):
            for each in diagnosis.listed:
                words = f"{explain.problem_title(each.rule)}. "
                words += explain.how_it_began(each, diagnosis.step)
                for provider in providers:
                    if severity := each.severity_for(provider):
                        yield Complaint(memory_id, provider, each.rule, severity, words)

    def _unreadable(self, memory_id: str, error: ChatMemoryError) -> None:
        self.stderr.write(f"{memory_id}: {error}")
