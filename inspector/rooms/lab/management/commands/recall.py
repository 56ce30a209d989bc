from __future__ import annotations

from chatmemory.advice import advise
from chatmemory.management.base import ReportCommand, wrong_arguments
from chatmemory.messages.ids import check_text
from chatmemory.printing import Options, Printer
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reports import recall
from inspector.rooms.lab.stored import measured_stored, recall_of_stored


class Command(ReportCommand):
    help = recall.HELP
    about_files = recall

    def of_stored(self, options: Options, printer: Printer) -> int:
        chosen = recall.RecallOptions.of(options)
        if options["format"] != "auto":
            raise wrong_arguments("--format is only for files: name files, or leave out --format")
        check_text(options["prefix"], "the beginning of an id")
        which = MemoryFilter(label=options["label"], id_prefix=options["prefix"])
        if not which.rows().exists():
            raise wrong_arguments(_nothing(options["label"], options["prefix"]))
        policies = chosen.policies
        if chosen.frontier:
            measured = measured_stored(which, chosen.rules)
            policies = recall.best_policies(advise(measured, chosen.goals, chosen.prices))
        found = recall_of_stored(which, policies, rules=chosen.rules)
        advice = found.advice(*chosen.asked)
        recall.print_recalls(found, chosen, advice, printer)
        return 0


def _nothing(label: str, prefix: str) -> str:
    """Return the error for a choice that matches no stored conversation."""
    named = [f"the label {label!r}"] if label else []
    named += [f"an id that begins with {prefix!r}"] if prefix else []
    return (
        (f"no stored conversation has {' and '.join(named)}: choose a different label or prefix")
        if named
        else ("no conversations are stored: import some, or name files")
    )
