"""The system check of lessons: what is wrong with a file, by line and field."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register

from inspector.lessons.catalogue import catalogue, folder


@register("lessons")
def check_lessons(**_: Any) -> list[CheckMessage]:
    """Refuse a folder that does not exist, and each file that is no lesson."""
    own = folder()
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
