"""Measure the server time of a step of a long conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from benchmarks.database import analyse
from benchmarks.measuring import Figure, compared, in_turns

TAPE = 10_000
ROUNDS = 40


def client() -> Any:
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.test import Client

    import inspector.project.asgi  # noqa: F401  (Python's garbage collection as in a server)

    settings.ROOT_URLCONF = "benchmarks.urls"
    signed_in = Client(headers={"host": "localhost", "hx-request": "true"})
    user, _ = get_user_model().objects.get_or_create(username="bench", is_superuser=True)
    signed_in.force_login(user)
    return signed_in


def figures(folder: str) -> Iterator[Figure]:
    from tests.long_conversations import long_conversation

    reader = client()

    def get(url: str) -> Callable[[], object]:
        def answer() -> None:
            assert reader.get(url).status_code == 200, url

        return answer

    long_conversation("tape", TAPE)
    analyse()
    steps = count(TAPE // 2)
    views = {
        "the fragment": lambda: get(f"/c/tape/?at={next(steps)}")(),
        "an empty view": get("/empty/"),
    }
    yield compared(f"a step of time travel at {TAPE:,} messages", 8, in_turns(views, ROUNDS))
