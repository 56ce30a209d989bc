"""The view of the playground."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from chatmemory import ChatMemoryError
from inspector.middleware.refusals import throttled
from inspector.rooms.lessons.catalogue import catalogue
from inspector.rooms.lessons.playground import Play, Playground

FIRST_SAMPLE = "message-window"


@require_http_methods(["GET", "HEAD", "POST"])
@login_not_required
@throttled("playground", default="600/minute")
def playground(request: HttpRequest) -> HttpResponse:
    """Show the playground in the state that the URL holds. A POST of a chat redirects to the URL
    that holds the chat.
    """
    if request.method == "POST":
        return _written(request)
    if "chat" not in request.GET:
        return redirect(_sample(request.GET.get("sample", "")))
    try:
        page = Playground(Play.read(request.GET))
        return _shown(request, page.play, page)
    except ChatMemoryError as error:
        return _shown(request, Play(""), problem=str(error), status=400)


def _written(request: HttpRequest) -> HttpResponse:
    """Redirect to the URL of the posted chat, or show the fault of the chat."""
    play = Play.written(request.POST)
    try:
        return redirect(Playground(play).play.url)
    except ChatMemoryError as error:
        return _shown(request, play, problem=str(error), status=422)


def _sample(slug: str) -> str:
    """Return the URL of the playground with the chat of a lesson. An unknown slug stands for the
    first sample.
    """
    lessons = catalogue().lessons
    lesson = (lessons.get(slug) or lessons[FIRST_SAMPLE]).lesson
    return Play(lesson.script, lesson.policy.kind, lesson.policy.limit).url


def _shown(
    request: HttpRequest,
    play: Play,
    page: Playground | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    samples = [staged.lesson for staged in catalogue().lessons.values()]
    context = {"play": play, "page": page, "problem": problem, "samples": samples}
    return render(request, "rooms/lessons/playground.html", context, status=status)
