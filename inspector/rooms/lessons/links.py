"""Links between pages of lessons: on this site, in a frame on another site, and in a file.

Browsers keep no cookies for a frame, so the URLs in a frame carry the learner's progress. In a
frame, there are no links to the playground and to pages that need an account.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from chatmemory.patterns import declared_pattern
from inspector.conf import inspector_configuration

EMBED = "embed"  # the parameter that has the progress, such as memory-vs-history:3
LESSONS_MAX = 100
_STEP = declared_pattern(r"([\w-]{1,80}):(\d{1,2})")

# The number of the last answered step of each lesson that was begun
Progress = Mapping[str, int]


def is_framed(request: HttpRequest) -> bool:
    """Return whether a page is shown in a frame on another site. False if the settings do not allow
    frames.

    The first page in a frame is recognized by a header of the browser, and further pages by the URL
    parameter `embed`.
    """
    in_a_frame = EMBED in request.GET or request.headers.get("Sec-Fetch-Dest") == "iframe"
    return in_a_frame and bool(inspector_configuration().EMBED)


def written(progress: Progress) -> str:
    """Return a learner's progress as text, such as `memory-vs-history:3 token-window:1`: lessons
    with their last answered step.
    """
    return " ".join(f"{slug}:{step}" for slug, step in [*progress.items()][-LESSONS_MAX:])


def read(text: str) -> Iterator[tuple[str, int]]:
    """Read the text of a learner's progress (see `written`). Yield the slug of each lesson with its
    last answered step.
    """
    return ((slug, int(step)) for slug, step in _STEP.findall(text))


@dataclass(frozen=True)
class LessonLinks:
    """The links on a lesson's page.

    - `lesson`, `more`: the parts of a step's URL before and after its number, such as
      "/lessons/turns/?step=" and "&embed=…".
    - `frame`: the template around the page.
    - `is_site`: whether links lead to all pages of the site; if False, only to lessons.
    - `progress`: the learner's progress as text; see `written`.
    """

    lesson: str
    more: str = ""
    frame: str = "inspector/base.html"
    is_site: bool = True
    progress: str = ""

    @property
    def query(self) -> str:
        """The query string for links to other pages of lessons, such as "?embed=…", or ""."""
        return self.more and f"?{self.more[1:]}"


def on_site(slug: str) -> LessonLinks:
    return LessonLinks(f"{reverse('inspector:lesson', args=[slug])}?step=" if slug else "")


def in_frame(slug: str, progress: Progress) -> LessonLinks:
    words = written(progress)
    return LessonLinks(
        on_site(slug).lesson,
        f"&{urlencode({EMBED: words})}",
        "rooms/lessons/framed.html",
        is_site=False,
        progress=words,
    )


IN_FILE = LessonLinks("#step-", is_site=False)
