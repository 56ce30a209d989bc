from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chatmemory.management.base import ReportCommand, wrong_arguments
from chatmemory.messages.ids import check_text
from chatmemory.printing import Printer
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reports import recall
from inspector.rooms.lab.stored import histories_today, recall_of_stored


class Command(ReportCommand):
    help = recall.HELP
    about_files = recall

    def of_stored(self, options: Mapping[str, Any], printer: Printer) -> int:
        chosen = recall.RecallOptions.of(options)
        if options["format"] != "auto":
            raise wrong_arguments("--format is for files: name some, or leave it out")
        check_text(options["prefix"], "the beginning of an id")
        which = MemoryFilter(label=options["label"], id_prefix=options["prefix"])
        if not which.rows().exists():
            raise wrong_arguments(_nothing(options["label"], options["prefix"]))
        policies, advice = chosen.policies, None
        if chosen.frontier:
            chooser = chosen.chooser(histories_today(which, chosen.frontier.estimator))
            policies, advice = recall.best_policies(chooser, chosen.today), chooser.advice()
        found = recall_of_stored(which, policies, rules=chosen.rules)
        recall.print_recalls(found, chosen, printer, advice)
        return 0


def _nothing(label: str, prefix: str) -> str:
    """Return the error for a choice that matches no stored conversation."""
    named = [f"the label {label!r}"] if label else []
    named += [f"an id that begins with {prefix!r}"] if prefix else []
    return f"no conversation has {' and '.join(named)}" if named else "there are no conversations"
