"""Windows in files that a provider would refuse."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from chatmemory.core.lint import PROVIDERS, Finding
from chatmemory.core.recall.facts import NO_WORDS, Words
from chatmemory.linting import lint
from chatmemory.reports.files import add_file_arguments, transcripts
from chatmemory.reports.printing import Printer, add_json_argument

HELP = (
    "Tell which windows providers would refuse, and why: those of the stored conversations, or "
    "of transcript files, each of whose conversations is taken as one window. Exits with 1 if "
    "any would be refused."
)
# The name of a conversation, a provider, and what it would say to its window
Diagnosis = tuple[str, str, Sequence[Finding]]


def add_arguments(parser: ArgumentParser) -> None:
    add_file_arguments(parser, "*")
    parser.add_argument(
        "--provider",
        choices=list(PROVIDERS),
        help="only what this provider would say; default: each of them",
    )
    add_json_argument(parser, "finding")


def report(options: Mapping[str, Any], printer: Printer, words: Words = NO_WORDS) -> int:
    return print_diagnoses(_of_files(options, printer), printer)


def providers_of(options: Mapping[str, Any]) -> Sequence[str]:
    return [options["provider"]] if options["provider"] else list(PROVIDERS)


def _of_files(options: Mapping[str, Any], printer: Printer) -> Iterator[Diagnosis]:
    for each in transcripts(options["files"], options["format"], printer):
        for provider in providers_of(options):
            found = lint(each.messages, provider=provider)
            yield each.name or str(each.number), provider, found


def print_diagnoses(diagnoses: Iterable[Diagnosis], printer: Printer) -> int:
    """Print each finding and the sums. Return 1 if a provider would refuse a window, else 0."""
    refused: set[str] = set()
    mishandled: set[str] = set()
    for name, provider, findings in diagnoses:
        for each in findings:
            (refused if each.severity == "refused" else mishandled).add(name)
            row = {"conversation": name, "provider": provider, "rule": each.rule}
            row |= {"severity": each.severity, "message": each.message}
            provider_name = PROVIDERS[provider]
            told = f"{name}: {provider_name}, {each.severity}: {each.message} [{each.rule}]"
            printer.row(row, told)
    only_mishandled = len(mishandled - refused)
    printer.total(
        {"refused": len(refused), "mishandled": only_mishandled},
        f"{len(refused):,} refused; {only_mishandled:,} only mishandled",
    )
    return 1 if refused else 0
