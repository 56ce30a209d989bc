from __future__ import annotations

import json

from django.core.management.base import CommandParser

from chatmemory.management.base import DatabaseCommand
from chatmemory.messages.texts import printable
from chatmemory.printing import OptionValue
from chatmemory.reading import conversations
from inspector.rooms.calls.agents import line_of
from inspector.rooms.calls.api import CallSerializer, whole
from inspector.rooms.calls.reads import CallNotFound, newest_calls, newest_of_all, one_call

LAST = 40


class Command(DatabaseCommand):
    help = "List the recorded model calls, or show the request of one call as it was sent."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "conversation",
            nargs="?",
            help="the ID of the conversation whose calls are listed; default: all conversations",
        )
        parser.add_argument(
            "number", nargs="?", type=int, help="the number of the call whose request is shown"
        )
        parser.add_argument(
            "--last",
            type=int,
            default=LAST,
            help="how many of the newest calls to list; default: 40",
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: object, **options: OptionValue) -> None:
        memory_id, number = options["conversation"], options["number"]
        if number is not None:
            self._show(memory_id, number, options["json"])
            return
        if memory_id:
            conversations.memory(memory_id)  # raises MemoryNotFound
        last = max(1, min(options["last"], 10_000))
        rows = newest_calls(memory_id, last) if memory_id else newest_of_all(last)
        for call in rows:
            if options["json"]:
                row = {"id": call.memory_id, **CallSerializer(call).data}
                self.stdout.write(json.dumps(row, default=str))
            else:
                place = "" if memory_id else f"{call.memory_id}: "
                self.stdout.write(printable(f"{place}{line_of(call)}"))
        if options["json"]:
            self.stdout.write(json.dumps({"total": {"calls": len(rows)}}))
        elif not rows:
            self.stdout.write("No model call is recorded. docs/calls.md says how to record calls")

    def _show(self, memory_id: str, number: int, as_json: bool) -> None:
        try:
            found = one_call(memory_id, number)
        except CallNotFound as error:
            self.stderr.write(printable(str(error)))
            raise SystemExit(1) from error
        if as_json:
            self.stdout.write(json.dumps(whole(found), default=str))
            return
        self.stdout.write(printable(line_of(found.row)))
        self.stdout.write(json.dumps(found.request, indent=2))
