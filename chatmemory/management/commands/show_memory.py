from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from django.core.management.base import CommandParser
from rich.console import Console
from rich.table import Table
from rich.text import Text

from chatmemory.conf import PAGE_MAX
from chatmemory.explain import captions, wording
from chatmemory.explain.causes import short_reason
from chatmemory.explain.interruptions import state_of
from chatmemory.explain.wording import window_size_words
from chatmemory.management.base import DatabaseCommand
from chatmemory.messages.message import MessageType
from chatmemory.messages.texts import one_line, readable_text
from chatmemory.printing import OptionValue, add_json_argument
from chatmemory.reading import history as history_reads
from chatmemory.reading import steps, windows
from chatmemory.reading.history import Part
from chatmemory.reading.rows import MessageDetail
from chatmemory.reading.summaries import Coverage, coverage_by_summary
from chatmemory.reading.windows import MessageView, WindowView
from chatmemory.snapshots import one_snapshot

SIZE = 40
SHOWN = 2_000  # characters of a text that are read; a row shows as many as fit
NARROWEST = 60  # columns
TO_A_FILE = 120


class ShownRow(NamedTuple):
    """A line of output for one message. `memory` is a note for the column "Memory", such as "12
    tokens" or why the message left.

    `seq` is the number of the message, `text` its text, and `is_in` says whether memory has the
    message.
    """

    seq: int
    role: str
    text: str
    memory: str
    is_in: bool


class Command(DatabaseCommand):
    help = (
        "Show a conversation in the terminal: its history beside the memory that the model sees, "
        "now or after a step."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", metavar="ID")
        parser.add_argument("--at", type=int, metavar="STEP", help="default: the last step")
        parser.add_argument(
            "--last",
            type=int,
            default=SIZE,
            choices=range(1, PAGE_MAX + 1),
            metavar="NUMBER",
            help="the number of latest messages of the history to show, 1 to "
            f"{PAGE_MAX}; default: {SIZE}",
        )
        add_json_argument(parser, "message of the history")

    @one_snapshot()
    def handle(self, *args: object, **options: OptionValue) -> None:
        memory_id, at = options["id"], options["at"]
        window = windows.window(memory_id, at)
        page = history_reads.history(memory_id, Part(size=options["last"]), at)
        if options["json"]:
            from chatmemory.api.responses import HistoryMessageSerializer, window_head

            printer = self.printer(options)
            for row in HistoryMessageSerializer(page.rows, many=True).data:
                printer.row(row)
            head = window_head(memory_id, window).data
            printer.total({"id": memory_id, **head, "earlier": page.earlier})
            return
        change = steps.step(memory_id, window.step).change if window.step else None
        summary = captions.caption(change).summary if change else ""
        beside_page = set(window.seqs) - {row.seq for row in page.rows}
        summaries = coverage_by_summary(memory_id, beside_page)
        shown = list(_rows(window, page.rows, summaries))
        more = window.totals.count - sum(row.is_in for row in shown)
        is_terminal = options["force_color"] or self.stdout.isatty()
        console = Console(force_terminal=is_terminal, no_color=options["no_color"])
        if not console.is_terminal:
            console.width = TO_A_FILE
        with console.capture() as printed:
            console.print(Text(f"{one_line(memory_id)}, step {window.step:,}. {summary}", "bold"))
            if page.earlier:
                earlier = wording.counted(page.earlier, "earlier message")
                console.print(f"{earlier} not shown{f', {more:,} in memory' if more else ''}")
            console.print(_table(shown, max(NARROWEST, console.width)))
            size = window_size_words(window.policy, window.totals)
            in_history = wording.counted(page.earlier + len(page.rows), "message")
            console.print(Text(f"In memory: {size}. In history: {in_history}.", "bold"))
        self.stdout.write(printed.get(), ending="")


def _rows(
    window: WindowView,
    history: Sequence[MessageDetail],
    summaries: dict[int, Coverage],
) -> Iterator[ShownRow]:
    """Yield a row for each message of the history. A message that is only in memory, such as a
    summary, comes before the history message that it precedes in memory.
    """
    history_seqs = {row.seq for row in history}
    first = min(history_seqs, default=0)
    waiting: dict[int, list[MessageView]] = {}
    pending: list[MessageView] = []
    for row in window.rows:
        if row.seq in history_seqs:
            waiting[row.seq], pending = pending, []
        elif row.pinned or row.type is MessageType.SYSTEM or row.seq > first:
            pending.append(row)
    in_memory = {row.seq: row for row in window.rows}
    for each in history:
        yield from (_beside(row, summaries) for row in waiting.get(each.seq, ()))
        role = wording.role(each.type, each.has_calls)
        inside = in_memory.get(each.seq)
        text = _in_memory(inside) if inside else _left(each, window)
        yield ShownRow(each.seq, role, each.readable, text, inside is not None)
    yield from (_beside(row, summaries) for row in pending)


def _beside(row: MessageView, summaries: dict[int, Coverage]) -> ShownRow:
    text = readable_text(row.message)
    if row.seq in summaries:
        covered = wording.counted(summaries[row.seq].number, "message")
        size = f"{wording.counted(row.tokens, 'token')}, summary of {covered}"
        return ShownRow(row.seq, "Summary", text, size, is_in=True)
    role = wording.role(row.type, row.has_calls)
    return ShownRow(row.seq, role, text, _in_memory(row), is_in=True)


def _in_memory(row: MessageView) -> str:
    return f"{wording.counted(row.tokens, 'token')}{', pinned' if row.pinned else ''}"


def _left(message: MessageDetail, window: WindowView) -> str:
    if call := window.interrupted_call_of(message.seq):
        return f"hidden, {state_of(call)}"
    if message.seq in window.hidden:
        return "hidden, over the limit"
    stay = message.departure(window.step)
    if stay is None or stay.left_step is None or stay.reason is None:
        return "never in memory"
    why = short_reason(stay.reason, stay.misfit, stay.is_left_out)
    return f"left at step {stay.left_step:,}: {why}"


def _table(rows: Sequence[ShownRow], width: int) -> Table:
    table = Table(box=None, width=width, pad_edge=False, header_style="dim")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("History", ratio=3, no_wrap=True, overflow="ellipsis")
    table.add_column("Memory", ratio=2, no_wrap=True, overflow="ellipsis")
    for row in rows:
        mark = "●" if row.is_in else "○"
        cells = (f"#{row.seq}", row.role, one_line(row.text[:SHOWN]), f"{mark} {row.memory}")
        table.add_row(*map(Text, cells), style="" if row.is_in else "dim")
    return table
