"""Measure the server time of pages: of long conversations, of steps and of a large fleet.

.venv/bin/python -m benchmarks.server
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from benchmarks.database import migrated
from benchmarks.measuring import QUICK, Figure, compared, in_turns, show

LONG = 20_000 if QUICK else 100_000
TAPE = 10_000
FEW = 100
MANY = 5_000 if QUICK else 100_000
ROUNDS = 40


def client() -> Any:
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.test import Client

    settings.ROOT_URLCONF = "benchmarks.urls"
    signed_in = Client(headers={"host": "localhost", "hx-request": "true"})
    signed_in.force_login(get_user_model().objects.create_superuser("bench"))
    return signed_in


def figures(folder: str) -> Iterator[Figure]:
    from tests.long_conversations import fleet, long_conversation

    reader = client()

    def get(url: str) -> Callable[[], object]:
        def answer() -> None:
            assert reader.get(url).status_code == 200, url

        return answer

    for memory_id, messages in (("long", LONG), ("short", 100), ("tape", TAPE)):
        long_conversation(memory_id, messages)
    pages = {
        f"at {LONG:,} messages": get("/c/long/"),
        "at 100": get("/c/short/"),
    }
    yield compared("conversation page", 1.3, in_turns(pages, ROUNDS))

    steps = count(TAPE // 2)
    views = {
        "the fragment": lambda: get(f"/c/tape/?at={next(steps)}")(),
        "an empty view": get("/empty/"),
    }
    yield compared(f"a step of time travel at {TAPE:,} messages", 8, in_turns(views, ROUNDS))

    fleet(FEW)
    small = in_turns({f"with {FEW}": get("/")}, ROUNDS)
    fleet(MANY, start=FEW)
    large = in_turns({f"with {MANY:,} conversations": get("/")}, ROUNDS)
    yield compared("overview", 2, large | small)


if __name__ == "__main__":
    with migrated() as folder:
        show(figures(folder))
