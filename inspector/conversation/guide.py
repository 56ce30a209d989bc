"""A tour for new users: three stops in an example conversation. A band above the timeline explains
the current stop.

The page stays usable during the tour. The band is shown while the URL has `?stop=`. When the reader
ends the tour, a cookie hides the band in this browser for a year.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.http import HttpRequest

from chatmemory.models import Message
from inspector.conversation.keeping import SECTION
from inspector.conversation.links import conversation_url

EXAMPLE = "order-7741"
COOKIE = "chatmemory_tour"
ENDED = "ended"
TEXT = 70  # characters of a message


@dataclass(frozen=True)
class Stop:
    """A stop of the tour.

    - `number` is the position of the stop in the tour, counted from 1. `name` is its title.
    - `text` explains the stop on the conversation page. `pane` is the pane to look at: "history",
      "memory" or "why".
    - `at` and `msg` are the step and the selected message in the stop's URL. `msg` is None if no
      message is selected.
    - `short` is the text of the stop on the overview. `seqs` are the numbers of the two messages
      that the overview shows with this text.
    - `gone` is the number of the message in `seqs` that the model no longer sees. It is None if the
      stop shows no such message.
    """

    number: int
    pane: str
    name: str
    short: str
    text: str
    at: int
    msg: int | None
    seqs: tuple[int, int]
    gone: int | None = None

    @property
    def address(self) -> str:
        unfolded = SECTION if self.pane == "why" else None
        url = conversation_url(EXAMPLE, at=self.at, msg=self.msg, open=unfolded)
        return f"{url}&stop={self.number}"


STOPS = (
    Stop(
        *(1, "history", "What was said", "History keeps every message."),
        "The customer gives the order number A-1182 in #25. History keeps every message.",
        *(42, 25, (24, 25)),
    ),
    Stop(
        *(2, "memory", "What the model saw", "Memory was full at step 43. #25 left."),
        "Memory was full when #43 arrived. #25 left: history keeps it, the model does not see it.",
        *(43, None, (25, 43)),
        gone=25,
    ),
    Stop(
        *(3, "why", "Why it asked again", "It could not see #25 any more."),
        "In #46 the model asks for the order number again. Why? shows when #25 left, and which "
        "limit would have kept it.",
        *(46, 25, (46, 47)),
    ),
)


@dataclass(frozen=True)
class Guide:
    """The current stop of the tour, with the previous and the next stop."""

    stop: Stop

    @property
    def stops(self) -> tuple[Stop, ...]:
        return STOPS

    @property
    def before(self) -> Stop | None:
        return STOPS[self.stop.number - 2] if self.stop.number > 1 else None

    @property
    def after(self) -> Stop | None:
        return STOPS[self.stop.number] if self.stop.number < len(STOPS) else None


def guide_of(request: HttpRequest, memory_id: str) -> Guide | None:
    """Return the guide with the stop that the URL names.

    None if the URL names no stop, if the conversation is not the tour's example conversation, or if
    the reader has ended the tour.
    """
    if memory_id != EXAMPLE or is_ended(request):
        return None
    named = {f"{stop.number}": stop for stop in STOPS}
    stop = named.get(request.GET.get("stop", ""))
    return Guide(stop) if stop else None


def is_ended(request: HttpRequest) -> bool:
    return request.COOKIES.get(COOKIE) == ENDED


@dataclass(frozen=True)
class FirstMessage:
    """A message that the overview shows with a stop of the tour, while only example conversations
    are stored. `is_gone` means that the model no longer sees the message.
    """

    seq: int
    glyph: str
    text: str
    is_gone: bool


def first_stops() -> list[tuple[Stop, list[FirstMessage]]]:
    """Return all stops of the tour, each with the messages that the overview shows. Return [] if
    any of these messages is not stored.
    """
    seqs = sorted({seq for stop in STOPS for seq in stop.seqs})
    rows = Message.objects.filter(memory_id=EXAMPLE, seq__in=seqs)
    texts: Mapping[int, tuple[str, str]] = {
        seq: ("user" if type == "USER" else "ai", " ".join(text.split()))
        for seq, type, text in rows.values_list("seq", "type", "text")
    }
    if len(texts) < len(seqs):
        return []
    return [
        (
            stop,
            [
                FirstMessage(seq, texts[seq][0], _cut(texts[seq][1]), seq == stop.gone)
                for seq in stop.seqs
            ],
        )
        for stop in STOPS
    ]


def _cut(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[: TEXT - 1].rstrip()}…"
