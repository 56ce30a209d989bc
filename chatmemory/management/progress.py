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
    """Show a progress bar, with the time left, while the `with` block runs. The block gets a
    function that advances the bar by a number of conversations.

    The bar is shown only on a terminal, or anywhere if `is_forced`. With `is_quiet`, it is not
    shown. `done` is the word after the numbers, such as "examined" in "5 of 20 examined".
    """
    text = f"{{task.completed:,}} of {{task.total:,}} {done}".strip()
    columns = TextColumn(text), BarColumn(), TimeRemainingColumn()
    console = Console(stderr=True, force_terminal=is_forced or None)
    hidden = is_quiet or not console.is_terminal
    with Progress(*columns, console=console, refresh_per_second=2, disable=hidden) as bar:
        task = bar.add_task("", total=total)
        yield lambda number: bar.advance(task, number)
