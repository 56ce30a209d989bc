"""Links between pages of lessons: on this site, in a frame of another site, and in a file.

In a frame, URLs carry the learner's progress, because browsers keep no cookies there. A page in a
frame has no links to the playground and to pages that need an account.
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
    """Return whether a request comes from a frame of another site, and the settings allow such
    frames.

    Browsers mark only the first page of a frame. Links within the frame have a URL parameter.
    """
    in_a_frame = EMBED in request.GET or request.headers.get("Sec-Fetch-Dest") == "iframe"
    return in_a_frame and bool(inspector_configuration().EMBED)


def written(progress: Progress) -> str:
    """Encode a learner's progress as text, such as `memory-vs-history:3 token-window:1`."""
    return " ".join(f"{slug}:{step}" for slug, step in [*progress.items()][-LESSONS_MAX:])


def read(text: str) -> Iterator[tuple[str, int]]:
    """Read the text of a learner's progress (see `written`). Yield pairs: the slug of a lesson, and
    the number of the last step that the learner has answered.
    """
    return ((slug, int(step)) for slug, step in _STEP.findall(text))


@dataclass(frozen=True)
class LessonLinks:
    """The links on a lesson's page. The URL of step 2 is `lesson`, then 2, then `more`:
    "/lessons/turns/?step=", "2" and "&embed=…".

    `frame` is the template around the page. Without `is_site`, links lead only to lessons, not to
    other pages of the site. `progress` is the learner's progress as text.
    """

    lesson: str
    more: str = ""
    frame: str = "inspector/base.html"
    is_site: bool = True
    progress: str = ""

    @property
    def query(self) -> str:
        """The query string of links to other pages of lessons, with "?"; "" without parameters."""
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
