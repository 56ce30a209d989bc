from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from rich.console import Console
from rich.progress import track

from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.policies import Policy
from chatmemory.core.written_policies import policy_from_text
from chatmemory.explain import counted
from chatmemory.management.base import DatabaseCommand, add_file_arguments, read_file
from chatmemory.services.imports import Report, import_all

SHOWN = 20


class Command(DatabaseCommand):
    help = "Import transcript files, one step per message. A second run skips imported ones."

    def add_arguments(self, parser: CommandParser) -> None:
        add_file_arguments(parser, "+")
        parser.add_argument(
            "--policy",
            help="such as token_window:1000; default: the default policy of the id, or 20 messages",
        )
        parser.add_argument("--prefix", help="prefix of the new ids; default: FILE's name and -")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            policy = policy_from_text(options["policy"]) if options["policy"] else None
        except InvalidValue as error:
            raise CommandError(str(error)) from error
        reports = []
        for file in options["files"]:
            prefix = options["prefix"]
            prefix = f"{file.name.partition('.')[0]}-" if prefix is None else prefix
            reports.append(self.import_file(file, options["format"], policy, prefix))
        if refused := sum(len(report.refused) for report in reports):
            imported = sum(len(report.stored) for report in reports)
            raise CommandError(
                f"{counted(refused, 'conversation')} {'was' if refused == 1 else 'were'} refused, "
                f"{f'{imported:,}' if imported else 'none was'} imported"
            )

    def import_file(self, file: Path, format: str, policy: Policy | None, prefix: str) -> Report:
        reading = read_file(file, format)
        report = Report(reading.format, refused=list(reading.refused))
        results = import_all(reading, policy, prefix, actor="import_transcripts")
        progress = track(
            results,
            description=file.name,
            total=len(reading.transcripts),
            console=Console(stderr=True),
        )
        for result in progress:
            report.add(result)
        self.summarise(file, report)
        return report

    def summarise(self, file: Path, report: Report) -> None:
        messages = sum(result.messages for result in report.stored)
        self.stdout.write(
            f"{file.name} ({report.format}): {counted(len(report.stored), 'conversation')} with "
            f"{counted(messages, 'message')} imported, {report.already:,} already imported, "
            f"{len(report.refused):,} refused"
        )
        for what, times in report.lost:
            self.stdout.write(f"  lost {counted(times, 'time')}: {what}")
        for refused in report.refused[:SHOWN]:
            self.stderr.write(f"  refused {refused.where}: {refused.why}")
        if len(report.refused) > SHOWN:
            self.stderr.write(f"  and {len(report.refused) - SHOWN:,} more")
