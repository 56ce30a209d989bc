"""Lessons for everybody, signed in or not. They read files, never a conversation."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from inspector.lessons import progress
from inspector.lessons.answers import Answer, number_in
from inspector.lessons.catalogue import Catalogue, Staged, catalogue
from inspector.lessons.page import LessonPage, screens


@require_safe
@login_not_required
def lessons(request: HttpRequest) -> HttpResponse:
    """Show all lessons, and which of them are done."""
    known = catalogue()
    return render(request, "inspector/lessons/lessons.html", _path(request, known))


@require_safe
@login_not_required
def lesson(request: HttpRequest, slug: str) -> HttpResponse:
    """Show `step` of a lesson. An answer is in the address, so it can be shared and reloaded."""
    known = catalogue()
    staged = _staged(known, slug)
    number = _number(request, "step", len(staged.moments))
    question = staged.moments[number - 1].step.question
    answer = Answer.of(request.GET, question) if question else None
    page = LessonPage(staged, number, answer)
    begun = progress.progress_of(request, known)
    if not page.is_open:
        begun[slug] = max(number, begun.get(slug, 0))
    context = {"page": page, **_path(request, known, begun), **_neighbours(known, slug)}
    response = render(request, "inspector/lessons/lesson.html", context)
    if not page.is_open:
        progress.remember(response, begun, request.is_secure())
    return response


@require_safe
@login_not_required
def present(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a lesson on a projector, one screen after the other."""
    staged = _staged(catalogue(), slug)
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
    return render(request, "inspector/lessons/present.html", context)


def _staged(known: Catalogue, slug: str) -> Staged:
    if slug not in known.lessons:
        raise Http404("there is no such lesson")
    return known.lessons[slug]


def _number(request: HttpRequest, name: str, most: int) -> int:
    """Return a number from 1 to `most` of the address; 1 without a valid one."""
    return max(1, number_in(request.GET, name, most) or 1)


def _path(
    request: HttpRequest, known: Catalogue, begun: dict[str, int] | None = None
) -> dict[str, object]:
    begun = progress.progress_of(request, known) if begun is None else begun
    return {
        "lessons": [staged.lesson for staged in known.lessons.values()],
        "done": progress.finished(begun, known),
    }


def _neighbours(known: Catalogue, slug: str) -> dict[str, object]:
    """Return the place of a lesson among all, and the lesson after it."""
    slugs = list(known.lessons)
    place = slugs.index(slug)
    after = known.lessons[slugs[place + 1]].lesson if place + 1 < len(slugs) else None
    return {"place": place + 1, "after": after}
