"""Windows in files that a provider would refuse."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from chatmemory.core.lint import PROVIDERS
from chatmemory.core.recall.facts import NO_WORDS, Words
from chatmemory.linting import lint
from chatmemory.reports.files import add_file_arguments, transcripts
from chatmemory.reports.printing import Printer, add_json_argument

HELP = (
    "Tell which windows providers would refuse, and why: those of the stored conversations, or "
    "of transcript files, each of whose conversations is taken as one window. Exits with 1 if "
    "any would be refused, else with 3 if something of a file could not be read."
)


class Complaint(NamedTuple):
    """What a provider minds in the window of a conversation, in words, and how severe it is."""

    conversation: str
    provider: str
    rule: str
    severity: str
    message: str


def add_arguments(parser: ArgumentParser) -> None:
    add_file_arguments(parser, "*")
    parser.add_argument(
        "--provider",
        choices=list(PROVIDERS),
        help="only what this provider would say; default: each of them",
    )
    add_json_argument(parser, "finding")


def report(options: Mapping[str, Any], printer: Printer, words: Words = NO_WORDS) -> int:
    return print_complaints(_of_files(options, printer), printer) or printer.code


def providers_of(options: Mapping[str, Any]) -> Sequence[str]:
    return [options["provider"]] if options["provider"] else list(PROVIDERS)


def _of_files(options: Mapping[str, Any], printer: Printer) -> Iterator[Complaint]:
    for each in transcripts(options["files"], options["format"], printer):
        name = each.name or str(each.number)
        for provider in providers_of(options):
            for found in lint(each.messages, provider=provider):
                yield Complaint(name, provider, found.rule, found.severity, found.message)


def print_complaints(complaints: Iterable[Complaint], printer: Printer) -> int:
    """Print each complaint and the sums. Return 1 if a provider would refuse a window, else 0."""
    refused: set[str] = set()
    mishandled: set[str] = set()
    for each in complaints:
        (refused if each.severity == "refused" else mishandled).add(each.conversation)
        who = f"{each.conversation}: {PROVIDERS[each.provider]}, {each.severity}"
        printer.row(each._asdict(), f"{who}: {each.message} [{each.rule}]")
    only_mishandled = len(mishandled - refused)
    printer.total(
        {"refused": len(refused), "mishandled": only_mishandled},
        f"{len(refused):,} refused; {only_mishandled:,} only mishandled",
    )
    return 1 if refused else 0
