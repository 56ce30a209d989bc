"""The pages of lessons. Visitors need no account, because lessons come from files and show no
stored conversation.
"""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from chatmemory.roles import WRITE
from inspector.conf import inspector_configuration
from inspector.display import cookie
from inspector.middleware.own_pages import allow_frames
from inspector.rooms.lessons import links
from inspector.rooms.lessons.catalogue import Catalogue, Staged, catalogue
from inspector.rooms.lessons.page import LessonPage, screens
from inspector.rooms.lessons.words import Answer, number_in

# A cookie that ends with the browser's session keeps the progress.
COOKIE = cookie("lessons")


@require_safe
@login_not_required
def lessons(request: HttpRequest) -> HttpResponse:
    """Show all lessons, and which of them the visitor has completed. Operators also see which
    lesson files are not valid.
    """
    known = catalogue()
    begun = _progress_of(request, known)
    context = {**_path(known, begun), "left_out": _left_out(request, known)}
    return _page(request, "rooms/lessons/lessons.html", context, "", begun)


@require_safe
@login_not_required
def lesson(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a step of a lesson. The visitor's answer is a parameter of the URL, so that the page can
    be shared and reloaded.
    """
    known = catalogue()
    staged = _staged(request, known, slug)
    number = _number(request, "step", len(staged.moments))
    answer = Answer.of(request.GET, staged.moments[number - 1].question)
    page = LessonPage(staged, number, answer)
    begun = _progress_of(request, known)
    if not page.is_open:
        begun[slug] = max(number, begun.get(slug, 0))
    context = {"page": page, **_path(known, begun), **_neighbours(known, slug)}
    response = _page(request, "rooms/lessons/lesson.html", context, slug, begun)
    if not page.is_open and not links.is_framed(request):
        _remember(response, begun, request.is_secure())
    return response


def _page(
    request: HttpRequest,
    template: str,
    context: dict[str, object],
    slug: str,
    begun: dict[str, int],
) -> HttpResponse:
    """Render a page of the lesson `slug`, for this site or for a frame on another site. For the
    list of all lessons, `slug` is "".
    """
    is_framed = links.is_framed(request)
    led = links.in_frame(slug, begun) if is_framed else links.on_site(slug)
    response = render(request, template, {**context, "links": led})
    if origins := inspector_configuration().EMBED:
        patch_vary_headers(response, ["Sec-Fetch-Dest"])
        if is_framed:
            allow_frames(response, origins)
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
        left_out = "".join(f" Lesson left out: {each}." for each in _left_out(request, known))
        raise Http404(f"No lesson has this name.{left_out}")
    return known.lessons[slug]


def _left_out(request: HttpRequest, known: Catalogue) -> tuple[str, ...]:
    """Return the faults of invalid files, which name a folder of the server. Empty unless an
    operator asks.
    """
    return known.problems if request.user.has_perm(WRITE) else ()


def _number(request: HttpRequest, name: str, most: int) -> int:
    """Return the number from 1 to `most` that a URL parameter has; 1 if the parameter is not
    valid.
    """
    return max(1, number_in(request.GET, name, most) or 1)


def _path(known: Catalogue, begun: dict[str, int]) -> dict[str, object]:
    return {
        "lessons": [staged.lesson for staged in known.lessons.values()],
        "done": frozenset(
            slug for slug, n in begun.items() if n == len(known.lessons[slug].moments)
        ),
    }


def _neighbours(known: Catalogue, slug: str) -> dict[str, object]:
    """Return the position of a lesson in the list, and the next lesson."""
    slugs = list(known.lessons)
    place = slugs.index(slug)
    after = known.lessons[slugs[place + 1]].lesson if place + 1 < len(slugs) else None
    return {"place": place + 1, "after": after}


def _progress_of(request: HttpRequest, catalogue: Catalogue) -> dict[str, int]:
    """Return the last answered step of each lesson that the learner has begun. Deleted lessons are
    left out.
    """
    told = request.GET.get(links.EMBED, "") if links.is_framed(request) else None
    known = request.COOKIES.get(COOKIE, "") if told is None else told
    begun = {slug: step for slug, step in links.read(known) if slug in catalogue.lessons}
    return {slug: min(step, len(catalogue.lessons[slug].moments)) for slug, step in begun.items()}


def _remember(response: HttpResponse, progress: links.Progress, is_secure: bool) -> None:
    """Store the progress in a cookie that lasts until the browser is closed."""
    value = links.written(progress)
    response.set_cookie(COOKIE, value, samesite="Lax", secure=is_secure, httponly=True)
