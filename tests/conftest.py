from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from django.core.cache import cache
from django.test import Client
from rest_framework.test import APIClient

from chatmemory.access.tokens import create_token
from chatmemory.core.policies import MessageWindow
from chatmemory.services import create

from .serving import serving

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(autouse=True)
def _fresh_cache():
    """No test sees what another one counted."""
    cache.clear()


@pytest.fixture
def data_file():
    """A file of real conversations, where the checkout has them beside it."""

    def find(name: str) -> Path:
        if not (DATA / name).exists():
            pytest.skip(f"the real conversations of {name} are not beside this checkout")
        return DATA / name

    return find


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A real server process with a database of its own."""
    with serving(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture
def operator(django_user_model):
    return django_user_model.objects.create_superuser("operator")


@pytest.fixture
def operator_client(operator) -> Client:
    client = Client()
    client.force_login(operator)
    return client


@pytest.fixture
def api(db) -> APIClient:
    """A client with an admin's bearer token."""
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token('tests', role='admin')}")
    return client


@pytest.fixture
def memory_id(db) -> str:
    """An empty conversation under a window of three messages."""
    create("order-7741", MessageWindow(3))
    return "order-7741"


def pytest_terminal_summary(terminalreporter) -> None:
    """How many cases of the law were replayed, summed over all processes."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", ()):
        for name, value in report.user_properties:
            if name.startswith("conformance: "):
                counts[name] += value
    for name, value in sorted(counts.items()):
        terminalreporter.write_line(f"{name}: {value:,}")
