"""Prints the output of commands: lines for people, or JSON Lines."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import ArgumentParser

LEFT_OUT = 3  # the exit status of a report that could not read all of its files


OptionValue = Any  # of a command line: argparse reads it as the type that its option names
Options = Mapping[str, OptionValue]


@dataclass(frozen=True)
class Printer:
    """Prints the rows of a report and its totals, as text or as JSON.

    With `as_json`, each row is a JSON object on a line of its own. The last line is an object with
    the single member `total`. `line` prints to standard output, and `error` to standard error.
    """

    line: Callable[[str], object]
    error: Callable[[str], object]
    as_json: bool = False
    _left_out: list[str] = field(default_factory=list)

    def left_out(self, what: str) -> None:
        """Print to standard error that something was left out, and set `code` to 3. `what` says
        what could not be read, and why.
        """
        self._left_out.append(what)
        self.error(f"left out {what}")

    @property
    def code(self) -> int:
        """The exit status of a command whose report found no problem: 3 if something could not be
        read, else 0.
        """
        return LEFT_OUT if self._left_out else 0

    def row(self, values: Mapping[str, object], *words: str) -> None:
        self._print(values, words)

    def total(self, values: Mapping[str, object], *words: str) -> None:
        self._print({"total": values}, words)

    def _print(self, values: Mapping[str, object], words: tuple[str, ...]) -> None:
        for line in (json.dumps(values),) if self.as_json else words:
            self.line(line)


def add_json_argument(parser: ArgumentParser, row: str) -> None:
    """Add the option --json to a command. `row` says in the option's help what each line is about,
    such as "compaction".
    """
    parser.add_argument(
        "--json",
        action="store_true",
        help=f'print JSON Lines: an object for each {row}, then {{"total": {{…}}}}',
    )


def discard_unwritten() -> None:
    """Discard output that could not be printed, such as after the reader of a pipe has ended.
    Python would try to print it again at exit.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            with open(os.devnull, "w") as nowhere, suppress(OSError):
                os.dup2(nowhere.fileno(), stream.fileno())
