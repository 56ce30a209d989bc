from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandError, CommandParser
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from chatmemory.core.policies import Policy
from chatmemory.core.written_policies import policy_from_text
from chatmemory.explain import counted
from chatmemory.formats import stream_transcripts
from chatmemory.management.base import (
    DatabaseCommand,
    add_file_arguments,
    opened,
    wrong_arguments,
)
from chatmemory.services.archives import FORMAT, import_archive, is_archive
from chatmemory.services.imports import Imported, Report, import_each

SHOWN = 20
ACTOR = "import_transcripts"


class Command(DatabaseCommand):
    help = (
        "Import transcript files, one step per message, or what export_conversations wrote, with "
        "the same steps. A second run skips imported ones, and goes on where the first was "
        "interrupted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_file_arguments(parser, "+", FORMAT)
        parser.add_argument(
            "--policy",
            help="such as token_window:1000; default: that of the id, or 20 messages. "
            "The session of an agent has none: what it saw is stored",
        )
        parser.add_argument(
            "--prefix",
            help=f"prefix of the new ids; default: FILE's name and -, none in the format {FORMAT}",
        )
        parser.add_argument(
            "--progress", action="store_true", help="show progress where stderr is no terminal, too"
        )

        parser.add_argument("--json", action="store_true", help="print a line of JSON per file")

    def handle(self, *args: Any, **options: Any) -> None:
        policy = policy_from_text(options["policy"]) if options["policy"] else None
        reports = [self.import_file(file, policy, options) for file in options["files"]]
        if refused := sum(report.refused_count for report in reports):
            imported = sum(report.stored_count for report in reports)
            told = counted(imported, "conversation") if imported else "no conversation"
            raise CommandError(f"{refused:,} refused, {told} imported")

    def import_file(self, path: Path, policy: Policy | None, options: dict[str, Any]) -> Report:
        with opened(path) as file:
            format, results = _results(file, path, policy, options)
            report = Report(format)
            with (
                self.summarised(path, report, options["json"]),
                _progress(file, options["progress"]) as tell,
            ):
                for result in results:
                    report.add(result)
                    tell(report)
        return report

    @contextmanager
    def summarised(self, path: Path, report: Report, as_json: bool) -> Iterator[None]:
        """Print what was imported, also where the block is interrupted."""
        try:
            yield
        except KeyboardInterrupt as stopped:
            told = f"{path}: interrupted: the same command goes on"
            raise CommandError(told, returncode=130) from stopped
        finally:
            if as_json:
                self.stdout.write(json.dumps(_report_as_json(path, report)))
            else:
                self.summarise(path, report)

    def summarise(self, file: Path, report: Report) -> None:
        self.stdout.write(
            f"{file.name} ({report.format}): {counted(report.stored_count, 'conversation')} with "
            f"{counted(report.messages, 'message')} imported, {report.already:,} already imported, "
            f"{report.refused_count:,} refused"
        )
        for what, times in report.lost:
            self.stdout.write(f"  lost {counted(times, 'time')}: {what}")
        for refused in report.refused[:SHOWN]:
            self.stderr.write(f"  refused {refused.where}: {refused.why}")
        if report.refused_count > SHOWN:
            self.stderr.write(f"  and {report.refused_count - SHOWN:,} more")


def _report_as_json(file: Path, report: Report) -> dict[str, Any]:
    """Return what was imported of a file; `refused` has the first of those that were refused."""
    return {
        "file": str(file),
        "format": report.format,
        "conversations": report.stored_count,
        "messages": report.messages,
        "already": report.already,
        "refused_count": report.refused_count,
        "refused": [{"where": each.where, "why": each.why} for each in report.refused[:SHOWN]],
        "lost": [{"what": what, "times": times} for what, times in report.lost],
    }


def _results(
    file: IO[bytes], path: Path, policy: Policy | None, options: dict[str, Any]
) -> tuple[str, Iterator[Imported]]:
    """Return the format of a file, and what imports its conversations. Raises CommandError."""
    prefix = options["prefix"]
    if options["format"] == FORMAT or (options["format"] == "auto" and is_archive(file)):
        if policy:
            raise wrong_arguments(f"{path}: its conversations have policies: leave out --policy")
        return FORMAT, import_archive(file, prefix or "", ACTOR)
    stream = stream_transcripts(file, options["format"])
    prefix = f"{path.name.partition('.')[0]}-" if prefix is None else prefix
    return stream.format, import_each(stream.conversations, policy, prefix, ACTOR)


@contextmanager
def _progress(file: IO[bytes], is_wanted: bool) -> Iterator[Callable[[Report], None]]:
    """Show how much of a file has been read; yield the function that shows what is imported."""
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    console = Console(stderr=True, force_terminal=is_wanted or None)
    with Progress(*columns, console=console, refresh_per_second=2) as progress:
        task = progress.add_task("", total=os.fstat(file.fileno()).st_size)

        def tell(report: Report) -> None:
            conversations = counted(report.stored_count + report.already, "conversation")
            told = f"{conversations}, {counted(report.messages, 'message')}"
            progress.update(task, completed=file.tell(), description=told)

        yield tell
