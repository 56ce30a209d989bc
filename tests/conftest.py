from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import override_settings
from rest_framework.test import APIClient

from chatmemory.access.tokens import create_token
from chatmemory.core.policies import MessageWindow
from chatmemory.services import create

from .connecting import connected
from .serving import migrated, serving

SLOW_FOLDERS = {"browser", "conformance", "fuzz", "live", "load"}
DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session", autouse=True)
def _quick_settings():
    """Passwords are hashed fast, and a new test client does not list all static files.

    Server processes have the settings of the site. They and the live server do serve static files.
    """
    with override_settings(
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        SERVESTATIC_USE_FINDERS=False,
        SERVESTATIC_USE_STATIC_ROOT=False,
    ):
        yield


@pytest.fixture(autouse=True)
def _fresh_cache():
    """Reset the counters before each test."""
    cache.clear()


@pytest.fixture
def data_file():
    """A file of real conversations; skip the test if it does not exist."""

    def find(name: str) -> Path:
        if not (DATA / name).exists():
            pytest.skip(f"the real conversations of {name} are not beside this checkout")
        return DATA / name

    return find


@pytest.fixture
def served(request):
    """A real server process; shared, unless the test has the mark `own_server`."""
    is_alone = request.node.get_closest_marker("own_server") is not None
    return request.getfixturevalue("own_server" if is_alone else "shared_server")


@pytest.fixture(scope="session")
def shared_server(template, tmp_path_factory):
    """A server for all tests that use their own conversations and do not stop it."""
    with serving(tmp_path_factory.mktemp("shared"), template) as server:
        server.session()  # while the printed link is valid
        yield server


@pytest.fixture
def own_server(request, template, tmp_path_factory):
    """A server for this test alone, with the environment of the mark."""
    mark = request.node.get_closest_marker("own_server")
    with serving(tmp_path_factory.mktemp("own"), template, **mark.kwargs) as server:
        yield server


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A migrated database, created once per test process."""
    with migrated(tmp_path_factory.mktemp("template")) as made:
        yield made


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


@pytest.fixture
def committing(transactional_db, tmp_path) -> Iterator[None]:
    """A database in which several connections commit; on SQLite a file, as a site has it."""
    if connection.vendor != "sqlite":
        yield
        return
    file = str(tmp_path / "apart.sqlite3")
    copy = sqlite3.connect(file)
    connection.ensure_connection()
    connection.connection.backup(copy)
    copy.close()
    with connected(file):
        yield


def pytest_addoption(parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests marked long")


def pytest_collection_modifyitems(config, items) -> None:
    """Mark the tests that use the database; the others need not run on every database.

    Leave out those marked long, unless they are asked for. Run the slow ones first: a slow test
    that comes last keeps one process busy while the others have no work left.
    """
    if not config.getoption("--long"):
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
    for item in items:
        fixtures = {"db", "committing", "transactional_db", "served", "template"} & set(
            item.fixturenames
        )
        if fixtures or item.get_closest_marker("django_db"):
            item.add_marker("database")
    items.sort(key=_speed)


def _speed(item) -> int:
    """Return 0 for tests that start servers, 1 for those of slow folders, 2 for all others."""
    if {"template", "own_server", "own_deployed", "deployed", "routed"} & set(item.fixturenames):
        return 0
    if item.get_closest_marker("own_server"):
        return 0
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    return 1 if folder in SLOW_FOLDERS else 2


def pytest_terminal_summary(terminalreporter) -> None:
    """Print the number of conformance cases that all processes replayed."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", ()):
        for name, value in report.user_properties:
            if name.startswith("conformance: "):
                counts[name] += value
    for name, value in sorted(counts.items()):
        terminalreporter.write_line(f"{name}: {value:,}")
