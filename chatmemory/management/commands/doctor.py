from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.core.management.base import CommandParser

from chatmemory import queries
from chatmemory.core.lint import PROVIDERS
from chatmemory.linting import Diagnosis, lint, tell_diagnoses
from chatmemory.management.base import FileCommand, add_file_arguments


class Command(FileCommand):
    help = (
        "Tell which windows providers would refuse, and why: those of the stored conversations, or "
        "of transcript files, each of whose conversations is taken as one window. Exits with 1 if "
        "any would be refused, else with 3 if something of a file could not be read."
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
        found = self.of_files(options, providers) if options["files"] else of_stored(providers)
        self.end(tell_diagnoses(found, self.stdout.write, as_json=options["json"]) > 0)

    def of_files(self, options: Mapping[str, Any], providers: Sequence[str]) -> Iterator[Diagnosis]:
        for each in self.transcripts(options):
            for provider in providers:
                found = lint(each.messages, provider=provider)
                yield each.name or str(each.number), provider, found


def of_stored(providers: Iterable[str]) -> Iterator[Diagnosis]:
    """Yield what each provider says of the stored conversations that are ill."""
    for provider in providers:
        for memory_id, found in queries.stored_findings(provider):
            yield memory_id, provider, found
