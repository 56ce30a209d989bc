from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC

from django.core.management.base import CommandParser

from chatmemory.conf import PAGE_MAX
from chatmemory.explain import wording
from chatmemory.explain.wording import window_size_words
from chatmemory.management.base import DatabaseCommand
from chatmemory.messages.ids import check_text
from chatmemory.messages.texts import one_line
from chatmemory.printing import OptionValue, add_json_argument
from chatmemory.reading import overview
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.overview import memory_page
from chatmemory.reading.rows import MemoryRow

SIZE = 40
HEADING = ("id", "said", "in memory", "changed (UTC)")


class Command(DatabaseCommand):
    help = "List conversations. Conversations that changed last come first."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "words",
            nargs="?",
            default="",
            metavar="WORDS",
            help="only conversations with this text in an id, a label or a message",
        )
        parser.add_argument(
            "--prefix", default="", help="only conversations whose id begins with this text"
        )
        parser.add_argument(
            "--label", metavar="NAME[:VALUE]", default="", help="only conversations with this label"
        )
        parser.add_argument(
            "--last",
            type=int,
            default=SIZE,
            choices=range(1, PAGE_MAX + 1),
            metavar="NUMBER",
            help=f"the number of conversations to list, 1 to {PAGE_MAX}; default: {SIZE}",
        )
        add_json_argument(parser, "conversation")

    def handle(self, *args: object, **options: OptionValue) -> None:
        for name in ("words", "label", "prefix"):
            check_text(options[name], name)
        which = MemoryFilter(
            search=options["words"].strip(), label=options["label"], id_prefix=options["prefix"]
        )
        page, count = memory_page(which, size=options["last"]), overview.count(which)
        printer = self.printer(options)
        rows = [_cells(memory) for memory in page.rows]
        widths = [max(map(len, column)) for column in zip(HEADING, *rows, strict=True)]
        if rows and not printer.as_json:
            printer.line(_aligned(HEADING, widths))
        for memory, cells in zip(page.rows, rows, strict=True):
            printer.row(_values(memory) if printer.as_json else {}, _aligned(cells, widths))
        summary = wording.counted(count, "conversation")
        more = f", of which {len(rows):,} are shown" if len(rows) < count else ""
        printer.total({"conversations": count}, f"{summary}{more}")


def _values(memory: MemoryRow) -> Mapping[str, object]:
    from chatmemory.api.responses import MemorySerializer  # takes a third of a list for people

    return MemorySerializer(memory).data


def _cells(memory: MemoryRow) -> tuple[str, ...]:
    size = window_size_words(memory.policy, memory.window)
    changed = f"{memory.updated_at.astimezone(UTC):%Y-%m-%d %H:%M}"
    return one_line(memory.id), f"{memory.said_count:,}", size, changed


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    columns = zip(cells, widths, strict=True)
    return "  ".join(cell.ljust(width) for cell, width in columns).rstrip()
