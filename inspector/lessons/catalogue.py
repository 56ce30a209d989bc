"""The lessons that there are: those of this package, then those in the folder of the settings.

Files are read again when they change, so a lesson that is dropped into the folder is there at once.
A system check says what is wrong with a file, by line and field.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.core.checks import CheckMessage, Error, register

from inspector.conf import inspector_configuration
from inspector.lessons.lesson import InvalidLesson, Lesson, lesson_line, read_lesson
from inspector.lessons.stage import LessonMoment, moments
from inspector.lessons.words import check_moment_texts

OWN = Path(__file__).parent / "files"
RESERVED = ("playground",)
_SLUG = re.compile(r"[a-zA-Z0-9_-]{1,80}")


@dataclass(frozen=True)
class Staged:
    """A lesson with the moments of its steps."""

    lesson: Lesson
    moments: tuple[LessonMoment, ...]


@dataclass(frozen=True)
class LessonProblem:
    """What is wrong with a lesson file, and where."""

    source: str
    line: int
    field: str
    why: str

    def __str__(self) -> str:
        field = f"{self.field}: " if self.field else ""
        return f"{self.source}, line {self.line}: {field}{self.why}"


@dataclass(frozen=True)
class Catalogue:
    """The lessons by slug, in order, and what is wrong with the files that are left out."""

    lessons: dict[str, Staged]
    problems: tuple[LessonProblem, ...]


def catalogue() -> Catalogue:
    """Return all lessons. A file that cannot be used is left out, and a check names it."""
    lessons: dict[str, Staged] = {}
    problems: list[LessonProblem] = []
    for file in _files():
        found = _found(file)
        if isinstance(found, LessonProblem):
            problems.append(found)
        elif why := _unusable_name(found.lesson.slug, lessons):
            problems.append(LessonProblem(str(file), 1, "", f"{why}: rename the file"))
        else:
            lessons[found.lesson.slug] = found
    return Catalogue(lessons, tuple(problems))


def _unusable_name(slug: str, taken: Container[str]) -> str:
    if not _SLUG.fullmatch(slug):
        return "its name is no part of an address (letters, digits, - and _)"
    is_taken = slug in taken or slug in RESERVED
    return f"there is something else with the name {slug}" if is_taken else ""


def _folder() -> Path | None:
    """Return the folder of a teacher's own lessons; None if the settings name none."""
    named = inspector_configuration().LESSONS
    return Path(named) if named else None


def _files() -> Iterator[Path]:
    yield from sorted(OWN.glob("*.toml"))
    if (own := _folder()) is not None:
        yield from sorted(own.glob("*.toml"))


def _found(file: Path) -> Staged | LessonProblem:
    try:
        return _since(file, file.stat().st_mtime_ns)
    except OSError as error:
        return LessonProblem(str(file), 1, "", f"cannot be read: {error.strerror}")


@lru_cache(maxsize=200)
def _since(file: Path, changed: int) -> Staged | LessonProblem:
    """Return the lesson of a file as it is since it was changed, or what is wrong with it."""
    content, source = file.read_bytes(), str(file)
    try:
        lesson = read_lesson(content, source)
        played = moments(lesson)
        for moment in played:
            check_moment_texts(moment)
    except InvalidLesson as error:
        line = error.line or lesson_line(error.path, content.decode())
        return LessonProblem(source, line, error.field, error.why)
    return Staged(lesson, played)


@register("lessons")
def check_lessons(**_: Any) -> list[CheckMessage]:
    """Refuse a folder that does not exist, and each file that is no lesson."""
    own = _folder()
    if own is None:
        return []  # tests check the lessons of the package
    if not own.is_dir():
        return [
            Error(
                f"INSPECTOR['LESSONS'] names {own}, which is no folder.",
                hint="Make the folder, or take the setting away.",
                id="inspector.E007",
            )
        ]
    return [
        Error(str(problem), hint="docs/lessons.md has the fields of a lesson.", id="inspector.E008")
        for problem in catalogue().problems
    ]
