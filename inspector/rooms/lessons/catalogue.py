"""The installed lessons: those of the package, then those in the folder that a setting names.

Files are read again when they change, so that a new file in the folder is a lesson at once. A
system check reports the faults of files.
"""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from django.core.checks import CheckMessage, Error, register

from chatmemory.patterns import declared_pattern
from inspector.conf import inspector_configuration
from inspector.rooms.lessons.lesson import InvalidLesson, Lesson, lesson_line, read_lesson
from inspector.rooms.lessons.stage import LessonMoment, moments
from inspector.rooms.lessons.words import check_moment_texts

OWN = Path(__file__).parent / "files"
RESERVED = ("playground",)
_NUMBER = declared_pattern(r"\d{1,9}")
_SLUG = declared_pattern(r"[a-zA-Z0-9_-]{1,80}")


class Staged(NamedTuple):
    """A lesson that was played. `moments` has a moment for each step, with memory at the time of
    the question and after the answer.
    """

    lesson: Lesson
    moments: tuple[LessonMoment, ...]


class Catalogue(NamedTuple):
    """The valid lessons by slug, in the order in which they are listed, and the faults of invalid
    files (`problems`).
    """

    lessons: dict[str, Staged]
    problems: tuple[str, ...]


def catalogue() -> Catalogue:
    """Return all lessons. An invalid file is left out; `problems` says why."""
    lessons: dict[str, Staged] = {}
    problems: list[str] = []
    for file in _files():
        found = _found(file)
        if isinstance(found, str):
            problems.append(found)
        elif why := _unusable_name(found.lesson.slug, lessons):
            problems.append(f"{file}, line 1: {why}: rename the file")
        else:
            lessons[found.lesson.slug] = found
    return Catalogue(lessons, tuple(problems))


def _unusable_name(slug: str, taken: Container[str]) -> str:
    if not _SLUG.fullmatch(slug):
        return "the name of the file can contain only letters, digits, - and _"
    is_taken = slug in taken or slug in RESERVED
    return f"the name {slug!r} is already taken by a lesson or a page" if is_taken else ""


def _folder() -> Path | None:
    """Return the folder for the site's own lessons, or None if the settings name no folder."""
    named = inspector_configuration().LESSONS
    return Path(named) if named else None


def _files() -> list[Path]:
    """Return the files of all lessons. In each folder, they are sorted by the numbers in their
    names, 9 before 10.
    """
    folders = filter(None, (OWN, _folder()))
    return [file for folder in folders for file in sorted(folder.glob("*.toml"), key=_place)]


def _place(file: Path) -> tuple[int, str]:
    number = _NUMBER.match(file.name)
    return (int(number[0]) if number else 0, file.name)


def lesson_named(name: str) -> Staged:
    """Return an installed lesson by its slug, or the lesson of a TOML file by its path.

    Raises LookupError with the reason if there is no such lesson, or if the file has a fault.
    """
    if name.endswith(".toml"):
        found = _found(Path(name))
        if isinstance(found, str):
            raise LookupError(found)
        return found
    known = catalogue().lessons
    if name not in known:
        raise LookupError(
            f"no lesson has the name {name!r}: name a .toml file, or one of {', '.join(known)}"
        )
    return known[name]


def _found(file: Path) -> Staged | str:
    """Return the lesson of a file, or a text with the fault and its line."""
    try:
        return _since(file, file.stat().st_mtime_ns)
    except OSError as error:
        return f"{file}, line 1: cannot be read: {error.strerror}"


@lru_cache(maxsize=200)
def _since(file: Path, changed: int) -> Staged | str:
    """Read the lesson of a file. `changed` is the time of its last change, so that a changed file
    is read again.
    """
    content = file.read_bytes()
    try:
        lesson = read_lesson(content, str(file))
        played = moments(lesson)
        for moment in played:
            check_moment_texts(moment)
    except InvalidLesson as error:
        line = error.line or lesson_line(error.path, content.decode())
        field = f"{error.field}: " if error.field else ""
        return f"{file}, line {line}: {field}{error.why}"
    return Staged(lesson, played)


@register("lessons")
def check_lessons(**_: object) -> list[CheckMessage]:
    """System check: report a lessons folder that does not exist, and each file that is no valid
    lesson.
    """
    own = _folder()
    if own is None:
        return []  # tests check the lessons of the package
    if not own.is_dir():
        return [
            Error(
                f"INSPECTOR['LESSONS'] names {own}, which is not a folder.",
                hint="Create the folder, or remove the setting.",
                id="inspector.E007",
            )
        ]
    return [
        Error(
            problem, hint="docs/lessons.md describes the fields of a lesson.", id="inspector.E008"
        )
        for problem in catalogue().problems
    ]
