"""How much of what was needed in files each policy would have held."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.recall import Recall, histories_for, recall_sums
from chatmemory.core.recall.facts import NO_WORDS, Words
from chatmemory.core.written_policies import policies_from_text, text_of_policy
from chatmemory.reports.files import add_file_arguments, transcripts
from chatmemory.reports.printing import Printer, add_json_argument

HELP = (
    "Tell how much of what the assistant needed each policy would have held: of files, which "
    "are not stored, or of stored conversations."
)
COLUMNS = tuple(each.name for each in fields(Recall) if each.name != "policy")


def add_arguments(parser: ArgumentParser) -> None:
    add_file_arguments(parser, "*")
    parser.add_argument("--label", metavar="NAME[:VALUE]", default="", help="with this label")
    parser.add_argument("--prefix", default="", help="whose id begins with this")
    parser.add_argument(
        "--policies",
        default="token_window:1000,token_window:4000,message_window:20,everything",
        help="such as token_window:3000,low_water=0.6,message_window:20,everything",
    )
    add_json_argument(parser, "policy")


def report(options: Mapping[str, Any], printer: Printer, words: Words = NO_WORDS) -> int:
    policies = policies_from_text(options["policies"])
    if options["label"] or options["prefix"]:
        raise InvalidValue("name files, or stored conversations by --label or --prefix")
    said = transcripts(options["files"], options["format"], printer)
    histories = (histories_for(each.messages, policies, words) for each in said)
    print_recalls(recall_sums(histories, policies), printer)
    return 0


def print_recalls(found: Sequence[Recall], printer: Printer) -> None:
    """Print a row for each policy."""
    shown = [
        (text_of_policy(each.policy), [f"{number:,}" for number in _numbers(each).values()])
        for each in found
    ]
    rows = [["policy", *COLUMNS], *([name, *numbers] for name, numbers in shown)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    heading, *lines = (_aligned(row, widths) for row in rows)
    if not printer.as_json:
        printer.line(heading)
    for each, line in zip(found, lines, strict=True):
        printer.row({"policy": text_of_policy(each.policy), **_numbers(each)}, line)
    printer.total({"conversations": found[0].conversations if found else 0})


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = row
    cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
    return "  ".join([first.ljust(widths[0]), *cells])


def _numbers(found: Recall) -> dict[str, int]:
    return {name: getattr(found, name) for name in COLUMNS}
