from __future__ import annotations

from chatmemory.management.base import ReportCommand, wrong_arguments
from chatmemory.messages.ids import check_text
from chatmemory.printing import Options, Printer
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reports import strategies
from inspector.rooms.lab.stored import conversations_stored


class Command(ReportCommand):
    help = strategies.HELP
    about_files = strategies

    def of_stored(self, options: Options, printer: Printer) -> int:
        chosen = strategies.StrategyOptions.of(options)
        if options["format"] != "auto":
            raise wrong_arguments("--format is only for files: name files, or leave out --format")
        check_text(options["prefix"], "the beginning of an id")
        which = MemoryFilter(label=options["label"], id_prefix=options["prefix"])
        if not which.rows().exists():
            raise wrong_arguments(
                "no stored conversation has this label and prefix: choose a different --label or "
                "--prefix, or name files"
            )
        found = strategies.sums_of(conversations_stored(which), chosen)
        strategies.print_strategies(found, chosen, printer)
        return 0
