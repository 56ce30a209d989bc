"""The lessons that there are: those of this package, then those in the folder of the settings.

Files are read again when they change, so a lesson that is dropped into the folder is there at once.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from inspector.conf import configuration
from inspector.lessons import facts
from inspector.lessons.lesson import Lesson
from inspector.lessons.reading import Problem, UnusableLesson, read_lesson, unusable
from inspector.lessons.stage import Moment, moments
from inspector.lessons.tables import Invalid

OWN = Path(__file__).parent / "files"
BYTES_MAX = 100_000
RESERVED = ("playground",)
_SLUG = re.compile(r"[a-zA-Z0-9_-]{1,80}")


@dataclass(frozen=True)
class Staged:
    """A lesson with the moments of its steps."""

    lesson: Lesson
    moments: tuple[Moment, ...]


@dataclass(frozen=True)
class Catalogue:
    """The lessons by slug, in order, and what is wrong with the files that are left out."""

    lessons: dict[str, Staged]
    problems: tuple[Problem, ...]


def folder() -> Path | None:
    """Return the folder of a teacher's own lessons; None if the settings name none."""
    named = configuration().LESSONS
    return Path(named) if named else None


def catalogue() -> Catalogue:
    """Return all lessons. A file that cannot be used is left out, and a check names it."""
    lessons: dict[str, Staged] = {}
    problems: list[Problem] = []
    for file in _files():
        found = _found(file)
        if isinstance(found, Problem):
            problems.append(found)
        elif why := _unusable_name(found.lesson.slug, lessons):
            problems.append(Problem(str(file), 1, "", f"{why}: rename the file"))
        else:
            lessons[found.lesson.slug] = found
    return Catalogue(lessons, tuple(problems))


def _unusable_name(slug: str, taken: Container[str]) -> str:
    if not _SLUG.fullmatch(slug):
        return "its name is no part of an address (letters, digits, - and _)"
    is_taken = slug in taken or slug in RESERVED
    return f"there is something else with the name {slug}" if is_taken else ""


def _files() -> Iterator[Path]:
    yield from sorted(OWN.glob("*.toml"))
    if (own := folder()) is not None:
        yield from sorted(own.glob("*.toml"))


def _found(file: Path) -> Staged | Problem:
    try:
        return _since(file, file.stat().st_mtime_ns)
    except OSError as error:
        return Problem(str(file), 1, "", f"cannot be read: {error.strerror}")


@lru_cache(maxsize=200)
def _since(file: Path, changed: int) -> Staged | Problem:
    """Return the lesson of a file as it is since it was changed, or what is wrong with it."""
    try:
        return stage(file.read_bytes(), str(file))
    except UnusableLesson as error:
        return error.problem


def stage(content: bytes, source: str) -> Staged:
    """Return the lesson of a file's content with its moments. Raises UnusableLesson."""
    if len(content) > BYTES_MAX:
        raise UnusableLesson(Problem(source, 1, "", f"is larger than {BYTES_MAX:,} bytes"))
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UnusableLesson(Problem(source, line, "", "is not UTF-8")) from error
    lesson = read_lesson(text, source)
    try:
        played = moments(lesson)
        for moment in played:
            facts.check(moment)
    except Invalid as error:
        raise unusable(error, text, source) from error
    return Staged(lesson, played)
