"""The progress bar of commands that go through many conversations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress(
    total: int, is_quiet: bool = False, is_forced: bool = False, done: str = ""
) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal, or anywhere if it `is_forced`, with the time left. The
    context gives a function that advances the bar by a number of conversations.

    `done` is what was done with them, such as "examined".
    """
    text = f"{{task.completed:,}} of {{task.total:,}} {done}".strip()
    columns = TextColumn(text), BarColumn(), TimeRemainingColumn()
    console = Console(stderr=True, force_terminal=is_forced or None)
    hidden = is_quiet or not console.is_terminal
    with Progress(*columns, console=console, refresh_per_second=2, disable=hidden) as bar:
        task = bar.add_task("", total=total)
        yield lambda number: bar.advance(task, number)
