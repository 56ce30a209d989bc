from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from django.core.management.base import CommandParser

from chatmemory import explain, services
from chatmemory.conf import fact_words
from chatmemory.core.exceptions import MemoryNotFound
from chatmemory.core.recall.incidents import (
    Incident,
    IncidentKind,
    incident_to_dict,
    incidents_under,
)
from chatmemory.core.written_policies import policy_from_text
from chatmemory.management.base import FileCommand, add_file_arguments, wrong_arguments
from chatmemory.models import Memory

KINDS = tuple(kind.value for kind in IncidentKind)


class Command(FileCommand):
    help = (
        "Tell which facts left memory and came up again: in files, if their conversations had a "
        "policy, where nothing is stored; or in the stored conversations. Exits with 3 if "
        "something of a file could not be read."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_file_arguments(parser, "*")
        parser.add_argument("--policy", help="of the files, such as token_window:2000")
        parser.add_argument(
            "--stored", action="store_true", help="the incidents of all stored conversations"
        )
        parser.add_argument(
            "--json", action="store_true", help="print a line of JSON for each conversation"
        )
        parser.add_argument(
            "--fail-on",
            metavar="KIND,KIND",
            type=_kinds,
            default=(),
            help=f"exit with 1 if there is an incident of these kinds: {', '.join(KINDS)}",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["stored"] == bool(options["files"]):
            raise wrong_arguments("name files with a --policy, or use --stored")
        if options["stored"] == bool(options["policy"]):
            raise wrong_arguments("--policy is that of files: give it with them, and only then")
        total: Counter[str] = Counter(dict.fromkeys([*KINDS, "conversations"], 0))
        for name, found in self.stored() if options["stored"] else self.of_files(options):
            if found:
                total.update(each.kind for each in found)
                total["conversations"] += 1
                self.tell(name, found, options["json"])
        self.sum_up(total, options["json"])
        self.end(any(total[kind] for kind in options["fail_on"]))

    def of_files(self, options: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Incident]]]:
        policy = policy_from_text(options["policy"])
        for each in self.transcripts(options):
            found = incidents_under(policy, each.messages, fact_words())
            yield each.name or str(each.number), found

    def stored(self) -> Iterator[tuple[str, Sequence[Incident]]]:
        """Yield those of each conversation; what is found is kept."""
        for memory_id in Memory.objects.order_by("id").values_list("id", flat=True).iterator():
            with suppress(MemoryNotFound):
                yield memory_id, services.current_incidents(memory_id).incidents

    def tell(self, name: str, found: Sequence[Incident], as_json: bool) -> None:
        if as_json:
            rows = [incident_to_dict(each) for each in found]
            self.stdout.write(json.dumps({"conversation": name, "incidents": rows}))
        else:
            self.stdout.writelines(f"{name}: {explain.incident_words(each)}\n" for each in found)

    def sum_up(self, total: Counter[str], as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps({"total": total}))
        else:
            counts = ", ".join(f"{total[kind]:,} {kind}" for kind in KINDS)
            self.stdout.write(f"{counts}; conversations with any: {total['conversations']:,}")


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(text.split(","))
    for kind in kinds:
        if kind not in KINDS:
            raise wrong_arguments(f"--fail-on: {kind!r} is none of {', '.join(KINDS)}")
    return kinds
