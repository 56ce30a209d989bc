from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from django.core.management.base import CommandParser

from chatmemory import queries
from chatmemory.conf import fact_words
from chatmemory.core.given import check_text
from chatmemory.core.recall import Recall, histories_for
from chatmemory.core.written_policies import policies_from_text, text_of_policy
from chatmemory.management.base import FileCommand, add_file_arguments, wrong_arguments

COLUMNS = tuple(each.name for each in fields(Recall) if each.name != "policy")


class Command(FileCommand):
    help = (
        "Tell how much of what the assistant needed each policy would have held: of files, which "
        "are not stored, or of stored conversations."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_file_arguments(parser, "*")
        parser.add_argument("--label", metavar="NAME[:VALUE]", default="", help="with this label")
        parser.add_argument("--prefix", default="", help="whose id begins with this")
        parser.add_argument(
            "--policies",
            default="token_window:1000,token_window:4000,message_window:20,everything",
            help="such as token_window:3000,low_water=0.6,message_window:20,everything",
        )
        parser.add_argument("--json", action="store_true", help="print a JSON list")

    def handle(self, *args: Any, **options: Any) -> None:
        policies = policies_from_text(options["policies"])
        if options["files"]:
            if options["label"] or options["prefix"]:
                raise wrong_arguments("name files, or stored conversations by --label or --prefix")
            said, words = self.transcripts(options), fact_words()
            histories = (histories_for(each.messages, policies, words) for each in said)
            found = queries.recall_sums(histories, policies)
        elif options["format"] != "auto":
            raise wrong_arguments("--format is that of files: name some, or leave it out")
        else:
            check_text(options["prefix"], "the beginning of an id")
            which = queries.MemoryFilter(label=options["label"], id_prefix=options["prefix"])
            found = queries.recall_of_stored(which, policies)
            if not found[0].conversations:
                raise wrong_arguments(_nothing(options["label"], options["prefix"]))
        self.print_json(found) if options["json"] else self.print_table(found)

    def print_json(self, found: Sequence[Recall]) -> None:
        rows = [{"policy": text_of_policy(each.policy), **_numbers(each)} for each in found]
        self.stdout.write(json.dumps(rows, indent=2))

    def print_table(self, found: Sequence[Recall]) -> None:
        rows = [["policy", *COLUMNS]]
        rows += [
            [text_of_policy(each.policy), *(f"{number:,}" for number in _numbers(each).values())]
            for each in found
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for first, *others in rows:
            cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
            self.stdout.write("  ".join([first.ljust(widths[0]), *cells]))


def _numbers(found: Recall) -> dict[str, int]:
    return {name: getattr(found, name) for name in COLUMNS}


def _nothing(label: str, prefix: str) -> str:
    """Return what to tell where no stored conversation is chosen."""
    wanted = [f"the label {label!r}"] if label else []
    wanted += [f"an id that begins with {prefix!r}"] if prefix else []
    return f"no conversation has {' and '.join(wanted)}" if wanted else "there are no conversations"
