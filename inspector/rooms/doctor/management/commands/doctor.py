from __future__ import annotations

from collections.abc import Iterator

from chatmemory.exceptions import ChatMemoryError
from chatmemory.management.base import ReportCommand
from chatmemory.printing import Options, Printer
from chatmemory.reports import doctor
from chatmemory.reports.doctor import Complaint
from inspector.rooms.doctor import words
from inspector.rooms.doctor.choosing import choices
from inspector.rooms.doctor.writes import diagnoses


class Command(ReportCommand):
    help = doctor.HELP
    about_files = doctor

    def of_stored(self, options: Options, printer: Printer) -> int:
        if options["error"] or options["laws"]:
            return doctor.report(options, printer)
        provider = options["provider"] or ""
        if not provider and not choices().is_made:
            self.stderr.write(
                "No providers are chosen for this site, so problems for all providers are listed"
            )
        return doctor.print_complaints(self.complaints(provider, options["model"]), printer)

    def complaints(self, provider: str, model: str | None) -> Iterator[Complaint]:
        """Update all diagnoses, and yield the problems of stored conversations. Conversations that
        cannot be read are named on standard error.

        Only problems for the given `provider` count; if it is "", problems for any provider in use.
        `model` is a model of this provider; None means its models in use.
        """
        named = f"{provider}:{model}" if provider and model else provider
        for memory_id, diagnosis in diagnoses(self._unreadable, named):
            for each in diagnosis.listed:
                sentences = f"{words.problem_title(each.rule)}. "
                sentences += words.how_it_began(each, diagnosis.step)
                for name in (*each.refused_by, *each.mishandled_by):
                    yield Complaint(memory_id, name, each.rule, each.severity_for(name), sentences)

    def _unreadable(self, memory_id: str, error: ChatMemoryError) -> None:
        self.stderr.write(f"{memory_id}: {error}")
