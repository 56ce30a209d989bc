from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.core.management.base import CommandParser

from chatmemory import explain, services
from chatmemory.core.exceptions import ChatMemoryError
from chatmemory.core.lint import PROVIDERS
from chatmemory.linting import Complaint, lint, tell_complaints
from chatmemory.management.base import FileCommand, add_file_arguments


class Command(FileCommand):
    help = (
        "Tell which windows providers would refuse, and why: those of the stored conversations, or "
        "of transcript files, each of whose conversations is taken as one window. Exits with 1 if "
        "any would be refused."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_file_arguments(parser, "*")
        parser.add_argument(
            "--provider",
            choices=list(PROVIDERS),
            help="only what this provider would say; default: each of them",
        )
        parser.add_argument(
            "--json", action="store_true", help="print a line of JSON for each finding"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        providers = [options["provider"]] if options["provider"] else list(PROVIDERS)
        found = self.of_files(options, providers) if options["files"] else self.of_stored(providers)
        if tell_complaints(found, self.stdout.write, as_json=options["json"]):
            raise SystemExit(1)

    def of_files(self, options: Mapping[str, Any], providers: Sequence[str]) -> Iterator[Complaint]:
        for each in self.transcripts(options):
            name = each.name or str(each.number)
            for provider in providers:
                for found in lint(each.messages, provider=provider):
                    about = found.rule, found.severity, found.message
                    yield Complaint(name, provider, *about)

    def of_stored(self, providers: Iterable[str]) -> Iterator[Complaint]:
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
