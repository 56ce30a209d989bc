"""Lessons for everybody, signed in or not. They read files, never a conversation."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from chatmemory.access.roles import WRITE
from inspector.display import cookie
from inspector.rooms.lessons.catalogue import Catalogue, Staged, catalogue
from inspector.rooms.lessons.page import LessonPage, screens
from inspector.rooms.lessons.words import Answer, number_in

# A cookie that ends with the browser's session keeps the progress: the number of the last answered
# step of each lesson, such as `memory-vs-history:3 token-window:1`.
COOKIE = cookie("lessons")
LESSONS_MAX = 100
_STEP = re.compile(r"([\w-]{1,80}):(\d{1,2})")


@require_safe
@login_not_required
def lessons(request: HttpRequest) -> HttpResponse:
    """Show all lessons, and which of them are done. Operators see which files are left out."""
    known = catalogue()
    context = {**_path(request, known), "left_out": _left_out(request, known)}
    return render(request, "rooms/lessons/lessons.html", context)


@require_safe
@login_not_required
def lesson(request: HttpRequest, slug: str) -> HttpResponse:
    """Show `step` of a lesson. An answer is in the address, so it can be shared and reloaded."""
    known = catalogue()
    staged = _staged(request, known, slug)
    number = _number(request, "step", len(staged.moments))
    answer = Answer.of(request.GET, staged.moments[number - 1].step)
    page = LessonPage(staged, number, answer)
    begun = _progress_of(request, known)
    if not page.is_open:
        begun[slug] = max(number, begun.get(slug, 0))
    context = {"page": page, **_path(request, known, begun), **_neighbours(known, slug)}
    response = render(request, "rooms/lessons/lesson.html", context)
    if not page.is_open:
        _remember(response, begun, request.is_secure())
    return response


@require_safe
@login_not_required
def present(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a lesson on a projector, one screen after the other."""
    staged = _staged(request, catalogue(), slug)
    shown = screens(staged)
    number = _number(request, "screen", len(shown))
    context = {
        "lesson": staged.lesson,
        "screen": shown[number - 1],
        "number": number,
        "total": len(shown),
        "back": number - 1,
        "forward": number + 1 if number < len(shown) else 0,
    }
    return render(request, "rooms/lessons/present.html", context)


def _staged(request: HttpRequest, known: Catalogue, slug: str) -> Staged:
    if slug not in known.lessons:
        left_out = "".join(f" Left out: {each}." for each in _left_out(request, known))
        raise Http404(f"There is no such lesson.{left_out}")
    return known.lessons[slug]


def _left_out(request: HttpRequest, known: Catalogue) -> tuple[str, ...]:
    """Return the faults of files, which name a folder of the server, for operators only."""
    return known.problems if request.user.has_perm(WRITE) else ()


def _number(request: HttpRequest, name: str, most: int) -> int:
    """Return a number from 1 to `most` of the address; 1 without a valid one."""
    return max(1, number_in(request.GET, name, most) or 1)


def _path(
    request: HttpRequest, known: Catalogue, begun: dict[str, int] | None = None
) -> dict[str, object]:
    begun = _progress_of(request, known) if begun is None else begun
    return {
        "lessons": [staged.lesson for staged in known.lessons.values()],
        "done": frozenset(
            slug for slug, n in begun.items() if n == len(known.lessons[slug].moments)
        ),
    }


def _neighbours(known: Catalogue, slug: str) -> dict[str, object]:
    """Return the place of a lesson among all, and the lesson after it."""
    slugs = list(known.lessons)
    place = slugs.index(slug)
    after = known.lessons[slugs[place + 1]].lesson if place + 1 < len(slugs) else None
    return {"place": place + 1, "after": after}


def _progress_of(request: HttpRequest, catalogue: Catalogue) -> dict[str, int]:
    """Return the last answered step of each lesson that was begun and still exists."""
    found = _STEP.findall(request.COOKIES.get(COOKIE, ""))
    begun = {slug: int(step) for slug, step in found if slug in catalogue.lessons}
    return {slug: min(step, len(catalogue.lessons[slug].moments)) for slug, step in begun.items()}


def _remember(response: HttpResponse, progress: Mapping[str, int], is_secure: bool) -> None:
    """Keep the progress until the browser is closed."""
    steps = list(progress.items())[-LESSONS_MAX:]
    value = " ".join(f"{slug}:{step}" for slug, step in steps)
    response.set_cookie(COOKIE, value, samesite="Lax", secure=is_secure, httponly=True)
