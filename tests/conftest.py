from __future__ import annotations

import functools
import gc
import lzma
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test import Client, TransactionTestCase
from django.test.utils import override_settings
from hypothesis import settings as hypothesis_settings
from rest_framework.test import APIClient

from chatmemory import ChatMessage, MessageWindow, SystemMessage, TokenWindow, UserMessage
from chatmemory.access.rates import process_rates, shared_rates
from chatmemory.access.tokens import create_token
from chatmemory.formats import FORMATS
from chatmemory.ledger.slices import import_labelled
from chatmemory.messages.estimators import ESTIMATORS
from chatmemory.search import DIGEST_LABEL
from chatmemory.services import add, create
from inspector import demo
from inspector.conversation import guide

from . import processes
from .a_program import LettersEstimator
from .airline import AirlineRuns
from .connecting import connected, connected_to
from .failing_reader import FAILING
from .images import Images, delete_rows
from .needs import (
    asks_for_what_is_missing,
    is_whole,
    missing_rooms,
    needs_what_is_missing,
    refusing_unknown_addresses,
)
from .properties import examples
from .serving import Template, database, in_memory, prepare, serving
from .shop import OBJECT
from .unpacking import unpack
from .wheels import installed_once

pytest.register_assert_rewrite("tests.rooms")
hypothesis_settings.register_profile("properties", examples())
hypothesis_settings.load_profile("properties")

SLOW_FOLDERS = {
    *("conformance", "deploy", "fuzz", "golden", "growth", "lab", "live", "load", "plans"),
    "transfer",
}
DATA = Path(__file__).parent / "data"
ALL_SESSIONS = Path(__file__).parents[2] / "shared/data/claude_code_sessions.tar.xz"


@pytest.fixture(scope="session", autouse=True)
def _quick_settings():
    """Passwords are hashed fast, and a test client serves no static files.

    The middleware for static files would list them for each client, and pass each request through a
    loop and a thread. Server processes have the settings of the site; the live server serves the
    files.
    """
    with override_settings(
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        MIDDLEWARE=[name for name in settings.MIDDLEWARE if not name.endswith(".StaticFiles")],
    ):
        yield


@pytest.fixture(scope="session", autouse=True)
def _addresses_of_the_tree():
    """In a tree without some rooms, a test client tells addresses of missing rooms."""
    with pytest.MonkeyPatch.context() as patch:
        if not is_whole():
            patch.setattr(Client, "request", refusing_unknown_addresses(Client.request))
        yield


@pytest.fixture(scope="session")
def images() -> Iterator[Images]:
    images = Images()
    yield images
    images.close()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker, images) -> Iterator[None]:
    """After a test that commits, SQLite gets its migrated pages back; PostgreSQL deletes the rows.

    Django's flush would empty each table and write all permissions again. If no chosen test of this
    process needs a database, there is none.
    """
    if connection.vendor == "postgresql":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TransactionTestCase, "_fixture_teardown", lambda test: delete_rows())
            yield
        return
    if connection.vendor != "sqlite" or not connection.is_in_memory_db():
        yield
        return
    with django_db_blocker.unblock():
        images.take("migrated")
    with pytest.MonkeyPatch.context() as patch:
        restore = lambda test: images.restore("migrated")  # noqa: E731
        patch.setattr(TransactionTestCase, "_fixture_teardown", restore)
        yield


@pytest.fixture(scope="module")
def demo_conversations_of_the_module(django_db_setup, django_db_blocker, images) -> Iterator[None]:
    """The example conversations, with which each test of a module begins that uses this.

    They are made once by each test process. A test's changes are rolled back.
    """
    with django_db_blocker.unblock(), images.lasting("demo of a module", demo.load):
        yield


@pytest.fixture(autouse=True)
def _fresh_cache(monkeypatch):
    """Reset the counts of requests before each test; meanwhile no minute ends."""
    monkeypatch.setattr("chatmemory.access.rates.time", lambda: 1_000_000_000.0)
    cache.clear()
    shared_rates().forget()
    process_rates().forget()


@pytest.fixture(scope="session")
def data_file(tmp_path_factory) -> Callable[[str], Path]:
    """Unpacks a file of tests/data once per process, and returns its path."""
    folder = tmp_path_factory.mktemp("data")

    @functools.cache
    def unpack(name: str) -> Path:
        (folder / name).write_bytes(lzma.decompress((DATA / f"{name}.xz").read_bytes()))
        return folder / name

    return unpack


@pytest.fixture(scope="session")
def airline_runs(data_file) -> AirlineRuns:
    return AirlineRuns(data_file("tau_bench_airline.openai_chat.json"))


@pytest.fixture(scope="session")
def claude_sessions(tmp_path_factory) -> list[Path]:
    """The files of three real sessions of Claude Code.

    One was compacted twice, one lacks most of the replaced messages, and one lost the most terms.
    """
    return sessions_in(DATA / "claude_code_sessions.tar.xz", tmp_path_factory.mktemp("sessions"))


@pytest.fixture(scope="session")
def all_claude_sessions(tmp_path_factory) -> list[Path]:
    """The files of all thirteen sessions; skip the test where they are not beside the checkout."""
    if not ALL_SESSIONS.exists():
        pytest.skip(f"there is no {ALL_SESSIONS}")
    return sessions_in(ALL_SESSIONS, tmp_path_factory.mktemp("all-sessions"))


def sessions_in(archive: Path, folder: Path) -> list[Path]:
    """Unpack the session files of an archive into a folder."""
    unpack(archive, folder)
    return sorted(folder.rglob("*.jsonl"))


@pytest.fixture
def object_format() -> Iterator[str]:
    """A format that is an object, `{"lines": […], "about": …}`."""
    FORMATS.register(OBJECT.name, OBJECT)
    yield OBJECT.name
    FORMATS.unregister(OBJECT.name)


@pytest.fixture
def failing() -> Iterator[None]:
    """A format whose reader fails for `{"lines": [{"said": "oops"}]}`."""
    FORMATS.register(FAILING.name, FAILING)
    yield
    FORMATS.unregister(FAILING.name)


@pytest.fixture
def served(request):
    """A real server process; shared, unless the test has the mark `own_server`."""
    is_alone = request.node.get_closest_marker("own_server") is not None
    return request.getfixturevalue("own_server" if is_alone else "shared_server")


@pytest.fixture(scope="session")
def shared_server(template):
    """A server for all tests that use their own conversations and do not stop it."""
    with (
        TemporaryDirectory(prefix="shared-", dir=in_memory()) as folder,
        serving(Path(folder), template) as server,
    ):
        server.session()  # as long as the printed link is valid
        yield server


@pytest.fixture
def own_server(request, template, tmp_path_factory):
    """A server for this test alone, with the environment of the mark."""
    mark = request.node.get_closest_marker("own_server")
    with serving(tmp_path_factory.mktemp("own"), template, **mark.kwargs) as server:
        yield server


@pytest.fixture(scope="session")
def warm_processes() -> None:
    processes.warm_up()


@pytest.fixture(scope="session")
def template(
    warm_processes, django_db_setup, django_db_blocker, images, tmp_path_factory
) -> Iterator[Template]:
    """A migrated database, created once per test process; each server gets a copy."""
    folder = tmp_path_factory.mktemp("template")
    if "migrated" not in images.kept:
        with database(folder) as url:
            yield prepare(url, folder)
        return
    file = str(folder / "served.sqlite3")
    images.write("migrated", file)
    with django_db_blocker.unblock(), connected(file):
        token = create_token("tests", role="admin")
    yield Template(f"sqlite:///{file}", token)


@pytest.fixture
def migrated_url(django_db_setup, django_db_blocker, images, tmp_path) -> str:
    """The URL of another database: SQLite in a file, migrated, without rows."""
    file = str(tmp_path / "migrated.sqlite3")
    url = f"sqlite:///{file}"
    if "migrated" in images.kept:
        images.write("migrated", file)
        return url
    with django_db_blocker.unblock(), connected_to(url):
        call_command("migrate", verbosity=0)
    return url


@pytest.fixture(scope="session")
def installed(tmp_path_factory) -> Path:
    """The wheel as pip installs it, with the bytecode that Python leaves there."""
    folder = tmp_path_factory.getbasetemp()
    is_shared = "PYTEST_XDIST_WORKER" in os.environ  # each process has a folder in that of all
    return installed_once((folder.parent if is_shared else folder) / "installed")


@pytest.fixture
def operator(django_user_model):
    return django_user_model.objects.create_superuser("operator")


@pytest.fixture
def operator_client(operator) -> Client:
    """A client with a session. A sign-in would take longer than most requests."""
    session = SessionStore()
    session[SESSION_KEY] = str(operator.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = operator.get_session_auth_hash()
    session.create()
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key
    client.cookies[guide.COOKIE] = guide.ENDED  # the tour of the examples
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
def conversation(db) -> str:
    """A conversation of thirty steps under a token window. Most of its messages have left."""
    create("m", TokenWindow(100))
    add("m", [SystemMessage("Be brief."), *(UserMessage(f"message {n}") for n in range(29))])
    return "m"


@pytest.fixture
def committing(transactional_db, tmp_path) -> Iterator[None]:
    """A database in which several connections commit; on SQLite a file, as on a site."""
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


def pytest_ignore_collect(collection_path) -> bool | None:
    """Leave out files that import rooms which are not in the tree."""
    if is_whole() or collection_path.suffix != ".py":
        return None
    return True if missing_rooms(collection_path) else None


def pytest_collection_modifyitems(config, items) -> None:
    """Mark the tests that use the database; the others need not run on every database.

    Leave out tests marked long, unless they are selected, and tests of rooms that are not in the
    tree. Run slow tests first: a slow test that comes last keeps one process busy while the others
    have no work left.
    """
    left_out = {item for item in items if needs_what_is_missing(item)}
    if not config.getoption("--long"):
        left_out |= {item for item in items if item.get_closest_marker("long")}
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]
    for item in items:
        fixtures = {"db", "committing", "transactional_db", "served", "template"} & set(
            item.fixturenames
        )
        if fixtures or item.get_closest_marker("django_db"):
            item.add_marker("database")
    items.sort(key=_speed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call) -> Iterator[object]:
    """Skip a test that asks for a part of a room that is not in the tree."""
    report = yield
    if report.failed and not is_whole() and asks_for_what_is_missing(call.excinfo):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, f"no such room in this tree: {call.excinfo.value}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Look for garbage among what tests make, not among the modules and thousands of tests.

    Modules and tests never become garbage, and Python would scan them again and again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


def _speed(item) -> int:
    """Return 0 for tests in a browser, 1 for those that start servers, 2 for slow folders, else 3.

    A process that has no tests left takes the last ones of another, and need start neither then.
    """
    folders = item.path.relative_to(Path(__file__).parent).parts
    if "browser" in folders:
        return 0
    starting = {"template", "served", "own_server", "own_deployed", "deployed", "routed"}
    if starting & set(item.fixturenames):
        return 1
    return 3 if SLOW_FOLDERS.isdisjoint(folders) else 2


def pytest_terminal_summary(terminalreporter) -> None:
    """Print the numbers of cases that all processes tried: of conformance, and of attacks."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", ()):
        for name, value in report.user_properties:
            if name.startswith(("conformance: ", "attack: ")):
                counts[name] += value
    for name, value in sorted(counts.items()):
        terminalreporter.write_line(f"{name}: {value:,}")


@pytest.fixture
def imported(db) -> str:
    """The id of a conversation that has the label of an import."""
    list(
        import_labelled("imported", [UserMessage("hi")], MessageWindow(20), {DIGEST_LABEL: "1"}, "")
    )
    return "imported"


@pytest.fixture
def counted_in_transactions() -> Iterator[list[bool]]:
    """Whether a transaction was open, each time that the estimator "watched" counted a message."""
    open_ones: list[bool] = []

    class Watched(LettersEstimator):
        def estimate_token_count_in_message(self, message: ChatMessage) -> int:
            open_ones.append(connection.in_atomic_block)
            return super().estimate_token_count_in_message(message)

    ESTIMATORS.register("watched", lambda name: Watched())
    yield open_ones
    ESTIMATORS.unregister("watched")
