"""The number of queries of a page does not depend on the number of rows."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatmemory import AiMessage, UserMessage, services
from chatmemory.core.policies import MessageWindow

PAGES = [
    "/",
    "/?q=said&sort=fill",
    "/?flagged=1",
    "/feed/",
    "/tokens/",
    "/c/m/",
    "/c/m/?at=100",
    "/c/m/?at=100&msg=3",
    "/c/m/?at=100&msg=90",
    "/c/m/?at=100&find=said",
    "/c/m/?at=100&find=nothing+like+it",
    "/c/m/?at=100&with=20",
    "/c/m/?before=50",
    "/c/m/export/",
]
FORMS = [
    ("/c/m/simulate/", {"role": "user", "text": "what if", "at": "100"}),
    ("/c/m/simulate/", {"role": "user", "text": "what if", "limit": "5"}),
    ("/bulk/", {"action": "delete", "id": [f"c{n}" for n in range(25)]}),
]
MOST = 30


def fill(conversations: range, messages: range) -> None:
    if not conversations.start:
        services.create("m", MessageWindow(20))
    services.add("m", [(UserMessage, AiMessage)[n % 2](f"said {n}") for n in messages])
    for n in conversations:
        services.create(f"c{n}", MessageWindow(2))
        services.add(f"c{n}", [UserMessage(f"said {line}") for line in range(4)])


def asked(call) -> int:
    cache.clear()
    with CaptureQueriesContext(connection) as queries:
        assert call().status_code == 200
    return len(queries)


@pytest.fixture
def growth(operator_client, db):
    """The numbers of queries for few rows and for many."""

    def measure(call) -> tuple[int, int]:
        fill(range(5), range(120))
        little = asked(call)
        fill(range(5, 50), range(120, 700))
        return little, asked(call)

    return measure


@pytest.mark.parametrize("path", PAGES)
def test_pages(operator_client, growth, path):
    little, much = growth(lambda: operator_client.get(path))
    assert much <= max(little, 4) + 1
    assert much <= MOST


@pytest.mark.parametrize(("path", "form"), FORMS)
def test_forms(operator_client, growth, path, form):
    little, much = growth(lambda: operator_client.post(path, form))
    assert much <= little + 1
    assert much <= MOST
