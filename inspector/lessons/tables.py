"""TOML tables whose errors name the line and the field.

Python's tomllib tells the line of text that is no TOML, but not where a value stands: `Lines` finds
that in the text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from typing import Any

Path = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"\s*([\w-]+)\s*=")
_FENCES = ('"""', "'''")


class Invalid(Exception):
    """A value of a file that cannot be used. `path` leads to it."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(why)
        self.path = path
        self.why = why

    @property
    def field(self) -> str:
        """The path in words: `step 2, why`."""
        parts: list[str] = []
        for part in self.path:
            if isinstance(part, int):
                parts[-1] += f" {part + 1}"
            else:
                parts.append(part)
        return ", ".join(parts)


class Table:
    """A table of a file, or the file as a whole. Each method raises Invalid."""

    def __init__(self, values: Mapping[str, Any], path: Path = ()) -> None:
        self._values = values
        self.path = path

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def only(self, names: Collection[str]) -> None:
        """Refuse fields with other names."""
        for name in self._values:
            if name not in names:
                raise self.invalid(name, f"there is no such field here: use {_listed(names)}")

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text as it stands; without a default it must be there, and not be blank."""
        value = self._get(name, str, "a text", default)
        if default is None and not value.strip():
            raise self.invalid(name, "is empty")
        return str(value)

    def line(self, name: str, default: str | None = None) -> str:
        """Return a text on one line, such as a paragraph of several."""
        return " ".join(self.text(name, default).split())

    def one_of(self, name: str, names: Collection[str]) -> str:
        value = self.text(name)
        if value not in names:
            raise self.invalid(name, f"must be {_listed(names)}, but is {value!r}")
        return value

    def number(self, name: str, default: int | None = None, least: int = 1) -> int:
        value = self._get(name, int, "a whole number", default)
        if isinstance(value, bool) or (name in self._values and value < least):
            raise self.invalid(name, f"must be a whole number from {least}, but is {value!r}")
        return int(value)

    def optional_number(self, name: str, least: int = 1) -> int | None:
        return self.number(name, least=least) if name in self._values else None

    def numbers(self, name: str, most: int) -> tuple[int, ...]:
        values = self._few(name, "a list of whole numbers", most)
        if not all(type(value) is int and value > 0 for value in values) or not values:
            raise self.invalid(name, "must be a list of whole numbers from 1")
        return tuple(values)

    def texts(self, name: str) -> tuple[str, ...]:
        values = self._get(name, list, "a list of texts")
        if not all(isinstance(value, str) for value in values):
            raise self.invalid(name, "must be a list of texts")
        return tuple(values)

    def values(self, name: str) -> dict[str, Any]:
        return dict(self._get(name, dict, f"a table, [{name}]"))

    def tables(self, name: str, most: int) -> list[Table]:
        values = self._few(name, f"tables, [[{name}]]", most)
        if not values or not all(isinstance(value, dict) for value in values):
            raise self.invalid(name, f"must be tables, [[{name}]]")
        return [Table(value, (*self.path, name, i)) for i, value in enumerate(values)]

    def invalid(self, name: str, why: str) -> Invalid:
        return Invalid((*self.path, name), why)

    def _few(self, name: str, words: str, most: int) -> list[Any]:
        values: list[Any] = self._get(name, list, words)
        if len(values) > most:
            raise self.invalid(name, f"there are {len(values)}; {most} are the most")
        return values

    def _get(self, name: str, type_: type, words: str, default: Any = None) -> Any:
        value = self._values.get(name, default)
        if value is None:
            raise self.invalid(name, "is missing")
        if not isinstance(value, type_):
            raise self.invalid(name, f"must be {words}, but is {value!r}")
        return value


def _listed(names: Collection[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


class Lines:
    """The lines on which the tables and fields of a TOML text stand."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {}
        self._table: Path = ()
        fence = ""
        for number, line in enumerate(text.splitlines(), 1):
            if not fence:
                self._read(line, number)
            fence = _fence_after(line, fence)

    def of(self, path: Path) -> int:
        """Return the line of a field or of what is in it, else of the table it should be in."""
        while path:
            within = [line for each, line in self._lines.items() if each[: len(path)] == path]
            if within:
                return min(within)
            path = path[:-1]
        return 1

    def _read(self, line: str, number: int) -> None:
        if header := _HEADER.fullmatch(line):
            self._table = self._path(header[2].split("."), is_list=header[1] == "[[")
            self._lines.setdefault(self._table, number)
        elif key := _KEY.match(line):
            self._lines.setdefault((*self._table, key[1]), number)

    def _path(self, names: list[str], is_list: bool) -> Path:
        """Return the path of a header; the names before the last one mean their latest table."""
        path: Path = ()
        for name in names[:-1]:
            path = (*path, name)
            latest = self._count(path) - 1
            path = path if latest < 0 else (*path, latest)
        path = (*path, names[-1])
        return (*path, self._count(path)) if is_list else path

    def _count(self, path: Path) -> int:
        return sum(
            known[:-1] == path and isinstance(known[-1], int) for known in self._lines if known
        )


def _fence_after(line: str, fence: str) -> str:
    """Return the quotes of the text of several lines that is open behind a line, or ""."""
    rest = line
    while True:
        found = [each for each in ((fence,) if fence else _FENCES) if each in rest]
        if not found:
            return fence
        first = min(found, key=rest.index)
        rest = rest.partition(first)[2]
        fence = "" if fence else first


def line_of(error: tomllib.TOMLDecodeError) -> int:
    """Return the line of which Python's parser complains."""
    found = re.search(r"at line (\d+)", str(error))
    return int(found[1]) if found else 1
