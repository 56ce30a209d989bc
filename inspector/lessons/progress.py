"""How far somebody is, in a cookie that ends with the browser's session: no account, no row.

It holds the number of the last answered step for each lesson: `memory-vs-history:3 token-window:1`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse

from inspector.display import cookie
from inspector.lessons.catalogue import Catalogue

COOKIE = cookie("lessons")
LESSONS_MAX = 100
_STEP = re.compile(r"([\w-]{1,80}):(\d{1,2})")


def progress_of(request: HttpRequest, catalogue: Catalogue) -> dict[str, int]:
    """Return the last answered step of each lesson that was begun and still exists."""
    found = _STEP.findall(request.COOKIES.get(COOKIE, ""))
    begun = {slug: int(step) for slug, step in found if slug in catalogue.lessons}
    return {slug: min(step, len(catalogue.lessons[slug].moments)) for slug, step in begun.items()}


def finished(progress: Mapping[str, int], catalogue: Catalogue) -> frozenset[str]:
    """Return the lessons of which the last step is answered."""
    lessons = catalogue.lessons
    return frozenset(slug for slug, n in progress.items() if n == len(lessons[slug].moments))


def remember(response: HttpResponse, progress: Mapping[str, int], is_secure: bool) -> None:
    """Keep the progress until the browser is closed."""
    steps = list(progress.items())[-LESSONS_MAX:]
    value = " ".join(f"{slug}:{step}" for slug, step in steps)
    response.set_cookie(COOKIE, value, samesite="Lax", secure=is_secure, httponly=True)
