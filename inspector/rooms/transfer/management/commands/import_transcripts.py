from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from chatmemory.exceptions import ChatMemoryError, InvalidValue
from chatmemory.explain.wording import counted
from chatmemory.formats import stream_transcripts
from chatmemory.formats.account import fault
from chatmemory.management.base import DatabaseCommand
from chatmemory.management.progress import progress
from chatmemory.messages.texts import one_line
from chatmemory.printing import Options, OptionValue, Printer, add_json_argument
from chatmemory.reports.files import TranscriptFile, add_file_arguments, opened, transcript_files
from chatmemory.services import Examination
from chatmemory.windows.policies import Policy
from chatmemory.windows.written_policies import policy_from_text
from inspector.rooms.transfer.archives import FORMAT, import_archive, is_archive
from inspector.rooms.transfer.imports import Imported, Report, import_each, lost_at

SHOWN = 20
ACTOR = "import_transcripts"


class Command(DatabaseCommand):
    help = (
        "Import transcripts, with one step for each message, or files of export_conversations, "
        "with the same steps. Then derive data such as incidents. A second run skips imported "
        "conversations, and continues an interrupted import."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_file_arguments(parser, "+", FORMAT)
        parser.add_argument(
            "--policy",
            help="the policy of the new conversations, such as token_window:1000; default: the "
            "default policy of the id, or 20 messages. A session of a coding agent gets no "
            "policy: its recorded window is stored",
        )
        parser.add_argument(
            "--prefix",
            help="the prefix of the new ids; default: FILE's name and -, with the names of the "
            f"folders if a folder is imported; no prefix for the format {FORMAT}",
        )
        parser.add_argument(
            "--progress",
            action="store_true",
            help="show the progress even if stderr is not a terminal",
        )
        parser.add_argument(
            "--store-only",
            action="store_true",
            help="only store the conversations; the site, or manage.py keep, derives their data "
            "later",
        )
        add_json_argument(parser, "conversation")

    def handle(self, *args: object, **options: OptionValue) -> None:
        policy = policy_from_text(options["policy"]) if options["policy"] else None
        files = list(transcript_files(options["files"]))
        printer, reports = self.printer(options), list[Report]()
        examination = None if options["store_only"] else Examination()
        try:
            for file in files:
                reports.append(Report(""))
                try:
                    self.import_file(file, policy, options, printer, reports[-1], examination)
                except ChatMemoryError as error:
                    if len(files) == 1 and not file.is_in_folder:
                        raise
                    self.leave_out(file, reports[-1], str(error))
                except (CommandError, DatabaseError):
                    raise
                except Exception as error:
                    why = fault(error, str(file.path))
                    self.leave_out(file, reports[-1], f"{file.path}: {why}")
                    reports[-1].refused.count = max(1, reports[-1].refused.count)
            if examination:
                _examine_rest(examination, options["progress"])
        finally:
            printer.total(_totals(reports))
        if refused := sum(report.refused.count for report in reports):
            imported = sum(report.stored.count for report in reports)
            result = counted(imported, "conversation") if imported else "no conversation"
            raise CommandError(f"{counted(refused, 'refusal')}, {result} imported")

    def import_file(
        self,
        file: TranscriptFile,
        policy: Policy | None,
        options: Options,
        printer: Printer,
        report: Report,
        examination: Examination | None,
    ) -> None:
        """Import one file, and add the results to the `report`. Raises ChatMemoryError if the file
        cannot be read.

        The `examination`, if any, computes derived data of imported conversations while others are
        imported.
        """
        with opened(file.path) as content:
            report.format, results = _results(content, file, policy, options)
            known = list[Imported]()
            with (
                self.summarised(file.path, report, known, printer),
                _progress(content, options["progress"], examination) as tell,
            ):
                for result in results:
                    report.add(result)
                    if result.is_empty:
                        continue
                    if not result.refused and len(known) < SHOWN:
                        known.append(result)
                    printer.row(_row(file.path, report.format, result))
                    if examination and not result.refused:
                        examination.add(result.memory_id, is_known=result.already)
                        examination.go_on()
                    tell(report)

    def leave_out(self, file: TranscriptFile, report: Report, error: str) -> None:
        """Print why a file cannot be imported. The command then continues with the next file.

        The file counts as refused if somebody named it on the command line, or if a part of it was
        imported. Otherwise, the file is not counted.
        """
        is_rest = bool(report.stored.count or report.known.count)
        report.refused.count += is_rest or not file.is_in_folder
        self.stderr.write(f"not imported: {'the rest of ' if is_rest else ''}{error}")

    @contextmanager
    def summarised(
        self, path: Path, report: Report, known: Sequence[Imported], printer: Printer
    ) -> Iterator[None]:
        """Print the summary of a file at the end of the `with` block, even after an error or an
        interruption. With `--json`, no summary is printed.

        `known` is the argument of `summarise`. An interruption raises CommandError.
        """
        try:
            yield
        except KeyboardInterrupt as stopped:
            note = f"{path}: interrupted: run the same command again to continue"
            raise CommandError(note, returncode=130) from stopped
        finally:
            if not printer.as_json:
                self.summarise(path, report, known)

    def summarise(self, file: Path, report: Report, known: Sequence[Imported]) -> None:
        """Print the results for a file: counts, some conversations, what cannot be stored, and some
        refusals. `known` are the first 20 conversations that were imported, or stored already.
        """
        self.stdout.write(
            f"{file.name} ({report.format}): {counted(report.stored.count, 'conversation')} with "
            f"{counted(report.messages, 'message')} imported, "
            f"{report.known.count:,} already imported, {report.refused.count:,} refused"
        )
        if report.empty:
            self.stdout.write(
                f"  {counted(report.empty, 'conversation')} without any message, not imported"
            )
        for each in known:
            what = "already imported" if each.already else counted(each.messages, "message")
            self.stdout.write(f"  {one_line(each.memory_id)}: {what}")
        if more := report.stored.count + report.known.count - len(known):
            self.stdout.write(f"  and {more:,} more conversations")
        for what, times in report.lost:
            self.stdout.write(f"  lost in the import, {counted(times, 'time')}: {what}")
        for refused in report.refused.first[:SHOWN]:
            self.stderr.write(f"  refused {refused.where}: {refused.why}")
        if report.refused.count > SHOWN:
            self.stderr.write(f"  and {report.refused.count - SHOWN:,} more refusals")


def _row(file: Path, format: str, result: Imported) -> dict[str, object]:
    """Return the JSON of a conversation. `refused` has the reason of a refusal, else ""."""
    return {
        "conversation": result.memory_id,
        "file": str(file),
        "format": format,
        "messages": result.messages,
        "already": result.already,
        "refused": result.refused,
        "lost": [lost_at(loss.what, loss.place) for loss in result.losses],
    }


def _totals(reports: Sequence[Report]) -> dict[str, int]:
    """Return the sums over all files."""
    return {
        "conversations": sum(report.stored.count for report in reports),
        "messages": sum(report.messages for report in reports),
        "already": sum(report.known.count for report in reports),
        "refused": sum(report.refused.count for report in reports),
    }


def _results(
    content: IO[bytes], file: TranscriptFile, policy: Policy | None, options: Options
) -> tuple[str, Iterator[Imported]]:
    """Return the format of a file, and an iterator that imports its conversations."""
    prefix = options["prefix"]
    if options["format"] == FORMAT or (options["format"] == "auto" and is_archive(content)):
        if policy:
            raise InvalidValue(
                f"{file.path}: the conversations in this file have their own policies: leave out "
                "--policy"
            )
        return FORMAT, import_archive(content, prefix or "", ACTOR)
    stream = stream_transcripts(content, options["format"])
    prefix = f"{file.name}-" if prefix is None else prefix
    return stream.format, import_each(stream.conversations, policy, prefix, ACTOR)


@contextmanager
def _progress(
    file: IO[bytes], is_forced: bool, examination: Examination | None
) -> Iterator[Callable[[Report], None]]:
    """Show how far storing and the examination are: at a terminal, or if `is_forced`. Yield the
    function to call after each result.
    """
    percent = TextColumn("{task.percentage:.0f} %")
    columns = TextColumn("{task.description}"), BarColumn(), percent, TimeRemainingColumn()
    console = Console(stderr=True, force_terminal=is_forced or None)
    hidden = not console.is_terminal
    with Progress(*columns, console=console, refresh_per_second=2, disable=hidden) as shown:
        stored = shown.add_task("", total=os.fstat(file.fileno()).st_size)
        examined = shown.add_task("", total=None, visible=examination is not None)

        def tell(report: Report) -> None:
            conversations = counted(report.stored.count + report.known.count, "conversation")
            summary = f"{conversations}, {counted(report.messages, 'message')}"
            shown.update(stored, completed=file.tell(), description=summary)
            if examination:
                known, whole = examination.examined, examination.total
                words = f"{known:,} of {whole:,} examined"
                shown.update(examined, completed=known, total=whole, description=words)

        yield tell


def _examine_rest(examination: Examination, is_forced: bool) -> None:
    """Compute the remaining derived data after all conversations are stored. An interruption raises
    CommandError.
    """
    try:
        with progress(examination.total, is_forced=is_forced, done="examined") as advance:
            advance(examination.examined)
            for number in examination.rest():
                advance(number)
    except KeyboardInterrupt as stopped:
        note = (
            "interrupted: all conversations are stored, but "
            f"{counted(examination.left, 'conversation')} not examined yet. The site examines the "
            "rest, or the same command run again"
        )
        raise CommandError(note, returncode=130) from stopped
