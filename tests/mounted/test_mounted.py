"""The pages and the API under a prefix of another project, with that project's own settings."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from io import BytesIO

import pytest
from asgiref.sync import async_to_sync
from django.conf import global_settings
from django.conf import settings as site
from django.contrib.auth.models import Group, Permission
from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.asgi import ASGIHandler
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

import inspector
from chatmemory.roles import GROUPS, Role
from chatmemory.rooms import patterns_of, rooms
from inspector.checks import check_project
from inspector.live import with_live_streams
from inspector.middleware import refusals
from inspector.rooms.live.stream import is_stream, requested_memory

from ..rooms import room_modules
from ..serving import ROOT

pytestmark = pytest.mark.django_db
CHAT = "/ops/chat/"
PAGES = [
    CHAT,
    f"{CHAT}c/order-7741/",
    f"{CHAT}c/order-7741/settings/",
    f"{CHAT}c/order-7741/export/",
    f"{CHAT}c/order-7741/compare/",
    f"{CHAT}lab/",
    f"{CHAT}import/",
    f"{CHAT}tokens/",
    f"{CHAT}api/docs/",
]
# As `django-admin startproject` writes it
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]


@pytest.fixture(autouse=True)
def project(settings):
    """A project that has nothing of ours but the middleware and the includes."""
    settings.ROOT_URLCONF = "tests.mounted.urls"
    settings.MIDDLEWARE = [*MIDDLEWARE, *inspector.MIDDLEWARE]
    settings.AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
    settings.REST_FRAMEWORK = {}
    settings.INSPECTOR = {}
    settings.LOGIN_URL = global_settings.LOGIN_URL
    settings.CSRF_FAILURE_VIEW = global_settings.CSRF_FAILURE_VIEW
    return settings


def test_a_page_of_each_room_is_found():
    """Mounted rooms have their routes below the prefix of the project."""
    known = {
        route: arguments
        for each in room_modules("routes")
        for name in ("PAGES", "API")
        for route, (arguments, _) in getattr(each, name, {}).items()
    }
    with_pages = [room for room in rooms() if hasattr(room, "urls")]
    assert len(with_pages) > 10
    for room in with_pages:
        for pattern in [*patterns_of([room.urls])][:1]:
            route = f"inspector:{pattern.name}"
            assert reverse(route, kwargs=known[route]).startswith(CHAT), room.room


def test_pages_of_the_project_are_left_alone():
    answer = Client().get("/")
    assert answer.content == b"our own page"
    assert not {"Content-Security-Policy", "X-Request-ID", "Cache-Control"} & answer.headers.keys()
    assert b"Memory inspector" not in Client().get("/nothing/").content


def test_signed_out_readers_are_sent_to_the_sign_in_page_and_back():
    for path in PAGES:
        answer = Client().get(path)
        assert answer["Location"] == f"{CHAT}sign-in/?next={path}"
        assert "default-src 'self'" in answer["Content-Security-Policy"]


def test_a_password_signs_in_and_out_again(django_user_model):
    django_user_model.objects.create_superuser("ada", password="lovelace-1842")
    client = Client()
    form = {"username": "ada", "password": "lovelace-1842"}
    assert client.post(f"{CHAT}sign-in/", form)["Location"] == CHAT
    assert client.get(CHAT).status_code == 200
    assert client.post(f"{CHAT}sign-out/")["Location"] == f"{CHAT}sign-in/"
    client.force_login(django_user_model.objects.create_user("nobody"))  # without a role
    answer = client.get(CHAT)
    assert answer.status_code == 403
    assert "Your account does not have access" in answer.text


@pytest.mark.parametrize("door", ["/door/", "/accounts/login/"])
def test_a_project_with_a_sign_in_page_keeps_it(project, door):
    if door == "/door/":
        project.LOGIN_URL = door
    else:
        project.ROOT_URLCONF = "tests.mounted.with_accounts"
    for path in (*PAGES, f"{CHAT}sign-in/"):
        assert Client().get(path)["Location"].partition("?")[0] == door
    assert Client().post(f"{CHAT}sign-in/", {"username": "a", "password": "b"})["Location"] == door


@pytest.mark.parametrize("path", PAGES)
def test_a_page_loads_nothing_and_leads_nowhere_outside(operator_client, long_conversation, path):
    page = operator_client.get(path)
    assert page.status_code == 200
    led = set(re.findall(r'(?:href|src|action|hx-\w+|data-[\w-]*url)="(/[^"]*)"', page.text))
    assert led
    assert not [each for each in led if not each.startswith((CHAT, site.STATIC_URL))]


@pytest.mark.parametrize(
    "path", ["c/nobody/", "c/order-7741/?at=99", "c/order-7741/?at=x", "nothing/", "c/~zz/"]
)
def test_unknown_addresses_below_the_pages_get_their_404(operator_client, long_conversation, path):
    answer = operator_client.get(CHAT + path)
    assert answer.status_code == 404
    assert "Page not found · Memory inspector" in " ".join(answer.text.split())
    assert answer["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("addresses", ["urls", "elsewhere"])
def test_the_api_is_the_same_under_a_prefix_and_a_namespace(project, api, addresses):
    project.ROOT_URLCONF = f"tests.mounted.{addresses}"
    made = api.post(f"{CHAT}api/v1/memories/", {"id": "a/b", "policy": None}, format="json")
    assert made["Location"].startswith(f"http://testserver{CHAT}api/v1/memories/")
    assert api.get(made["Location"]).json()["id"] == "a/b"
    unknown = api.get(f"{CHAT}api/v1/nothing/")
    assert (unknown.status_code, unknown["Content-Type"]) == (404, "application/problem+json")
    document = api.get(f"{CHAT}api/v1/schema/?format=json").json()
    assert document["info"]["title"] == "chatmemory"
    assert {each["url"] + min(document["paths"]) for each in document["servers"]} == {
        f"{CHAT}api/v1/calls/dropped/"
    }
    assert all(path.startswith("/api/v1/") for path in document["paths"])
    operations = [one for each in document["paths"].values() for one in each.values()]
    tags = {"calls", "doctor", "memories", "recall", "search_history", "store"}
    assert {tag for each in operations for tag in each["tags"]} == tags
    assert not [found for found in check_project() if found.is_serious()]


def test_metrics_and_health_need_no_account():
    assert Client().get(f"{CHAT}healthz").content == b"ok\n"
    assert Client().get(f"{CHAT}readyz").content == b"ready\n"
    Client().get(f"{CHAT}c/some-id/")
    text = Client().get(f"{CHAT}metrics").text
    assert 'route="inspector:conversation"' in text
    assert Client(REMOTE_ADDR="192.0.2.7").get(f"{CHAT}metrics").status_code == 401


def test_an_outage_is_explained_on_a_page(operator_client, memory_id):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE chatmemory_memory RENAME TO elsewhere")
        answer = operator_client.get(f"{CHAT}c/{memory_id}/")
        transaction.set_rollback(True)
    assert answer.status_code == 503
    assert "The database is not migrated" in answer.text


def test_choices_of_readers_do_not_touch_cookies_of_the_project(operator_client):
    operator_client.cookies["theme"] = "the project's"
    operator_client.post(f"{CHAT}theme/", {"theme": "dark"})
    assert operator_client.cookies["theme"].value == "the project's"
    assert 'data-theme="dark"' in operator_client.get(CHAT).text


def test_a_group_of_the_project_gets_no_access_by_its_name():
    admins = Group.objects.get(name=GROUPS[Role.ADMIN])
    assert admins.permissions.filter(codename="delete_memory").exists()
    admins.permissions.set(Permission.objects.filter(codename="add_group"))
    call_command("migrate", verbosity=0)
    ours = admins.permissions.filter(content_type__app_label="chatmemory")
    assert not ours.exists()


@pytest.mark.parametrize(
    ("path", "root", "memory_id"),
    [
        ("/ops/chat/live/", "", ""),
        ("/ops/chat/c/order-7741/live/", "", "order-7741"),
        ("/below/ops/chat/c/order-7741/live/", "/below", "order-7741"),
        ("/live/", "", None),
        ("/ops/chat/c/live/", "", None),
        ("/ops/chat/c/order-7741/", "", None),
        ("/ops/chat/c/~zz/live/", "", None),
        ("/shop/live/", "", None),
    ],
)
def test_a_stream_is_known_by_its_route(path, root, memory_id):
    scope = {"type": "http", "path": path, "root_path": root}
    assert is_stream(scope) is (memory_id is not None)
    if memory_id is not None:
        assert requested_memory(scope) == memory_id


@pytest.mark.parametrize("path", [f"{CHAT}live/", f"{CHAT}c/order-7741/live/"])
def test_without_live_streams_pages_ask_every_five_seconds(operator_client, memory_id, path):
    answer = operator_client.get(path)
    assert answer["Content-Type"] == "text/event-stream"
    assert answer.text.startswith("retry: 5000\nevent: step\n")
    assert Client().get(path)["Location"].startswith(f"{CHAT}sign-in/")


# Bodies

FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("path", "size", "setting"),
    [
        (f"{CHAT}sign-in/", 64 * 2**10, "OPEN_FORM_BYTES"),
        (f"{CHAT}nowhere/", 64 * 2**10, "OPEN_FORM_BYTES"),
        (f"{CHAT}c/order-7741/add/", 256 * 2**10, "FORM_BYTES"),
    ],
)
@pytest.mark.needs("transfer")
def test_a_form_that_is_too_large_is_not_parsed(path, size, setting):
    """The CSRF check comes before the middleware, and would read the form."""
    unread = BytesIO()
    unread.close()
    asked = {"CONTENT_TYPE": FORM, "CONTENT_LENGTH": str(size + 1), "wsgi.input": unread}
    stranger = Client(enforce_csrf_checks=True)
    assert "csrftoken" in stranger.get(f"{CHAT}sign-in/").cookies
    refused = stranger.generic("POST", path, **asked)
    assert refused.status_code == 413
    assert f'the limit of INSPECTOR["{setting}"]' in refused.content.decode()
    assert "X-Request-ID" in refused.headers


def test_bodies_of_the_project_are_left_alone(project):
    project.INSPECTOR = {"OPEN_FORM_BYTES": 9, "FORM_BYTES": 9}
    assert Client().post("/", "a" * 100, content_type=FORM).content == b"our own page"
    assert Client().post(f"{CHAT}theme/", "a" * 100, content_type=FORM).status_code == 413


def post_in_chunks(path: str, body: bytes, application) -> tuple[int, bool]:
    """The status that an ASGI application answers to a chunked form, and whether all was read."""
    headers = [(b"host", b"testserver"), (b"content-type", FORM.encode())]
    headers.append((b"transfer-encoding", b"chunked"))
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b""}
    parts = [
        {"type": "http.request", "body": body[n : n + 999], "more_body": True}
        for n in range(0, len(body), 999)
    ]
    parts += [{"type": "http.request"}, {"type": "http.disconnect"}]
    statuses, read = [], 0

    async def receive():
        nonlocal read
        read += 1
        if read == len(parts):
            await asyncio.sleep(60)
        return parts[read - 1]

    async def send(message):
        statuses.append(message.get("status"))

    async_to_sync(application)(scope | {"headers": headers}, receive, send)
    return statuses[0], read >= len(parts)


@pytest.mark.parametrize(("size", "status"), [(100, 403), (2_001, 413), (9_001, 413)])
def test_a_form_in_chunks_is_counted(project, transactional_db, size, status):
    """Without the line in asgi.py, once Django has received it, or more than its own limit."""
    project.INSPECTOR = {"OPEN_FORM_BYTES": 2_000}
    project.DATA_UPLOAD_MAX_MEMORY_SIZE = 9_000
    answer = post_in_chunks(f"{CHAT}theme/", b"a" * size, ASGIHandler())
    assert answer == (status, True)


def test_with_the_line_in_asgi_a_form_is_refused_before_django_has_it(project, monkeypatch):
    project.INSPECTOR = {"OPEN_FORM_BYTES": 2_000}
    monkeypatch.setattr(refusals, "LINGER_SECONDS", 0)
    received = []

    async def django(scope, receive, send):
        while (await receive()).get("more_body"):
            received.append(scope["path"])
        await send({"type": "http.response.start", "status": 200})

    application = with_live_streams(django)
    assert post_in_chunks(f"{CHAT}theme/", b"a" * 9_999, application) == (413, False)
    assert len(received) == 2
    assert post_in_chunks("/", b"a" * 9_999, application)[0] == 200


# System checks


def test_a_sign_in_page_of_ours_without_a_limit_is_named(project):
    (found,) = check_project()
    assert (found.id, found.is_serious()) == ("inspector.W002", False)
    project.AUTHENTICATION_BACKENDS.insert(0, "axes.backends.AxesStandaloneBackend")
    assert check_project() == []
    project.AUTHENTICATION_BACKENDS.pop(0)
    project.LOGIN_URL = "/door/"
    assert check_project() == []


@pytest.mark.parametrize(
    ("addresses", "installed", "missing"),
    [
        ("inspector.urls", [], "chatmemory"),
        ("inspector.urls", ["chatmemory"], "inspector"),
        ("chatmemory.api.urls", [], "chatmemory"),
    ],
)
def test_the_check_of_a_project_without_the_app_says_what_to_add(
    tmp_path, addresses, installed, missing
):
    apps = ["django.contrib.auth", "django.contrib.contenttypes", *installed]
    (tmp_path / "shop.py").write_text(
        f"SECRET_KEY, ROOT_URLCONF, INSTALLED_APPS = 'x', 'addresses', {apps}\n"
    )
    (tmp_path / "addresses.py").write_text(
        "from django.urls import include, path\n"
        f"urlpatterns = [path('chat/', include('{addresses}'))]\n"
    )
    command = [sys.executable, "-m", "django", "check", "--settings=shop"]
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    found = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    said = f"include(\"{addresses}\") needs '{missing}' in INSTALLED_APPS: see docs/mounting.md\n"
    assert (found.returncode, found.stdout, found.stderr) == (1, "", said)


def without(names: list[str], *gone: str) -> list[str]:
    return [name for name in names if name not in gone]


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("MIDDLEWARE", MIDDLEWARE, "import inspector, and MIDDLEWARE += inspector.MIDDLEWARE"),
        ("MIDDLEWARE", inspector.MIDDLEWARE, "AuthenticationMiddleware"),
        ("MIDDLEWARE", inspector.MIDDLEWARE, "'django.middleware.csrf.CsrfViewMiddleware'"),
        ("INSTALLED_APPS", without(site.INSTALLED_APPS, "django_htmx"), "'django_htmx'"),
        ("INSTALLED_APPS", without(site.INSTALLED_APPS, *inspector.ROOMS), "+= inspector.ROOMS"),
        ("ROOT_URLCONF", "inspector.urls", 'include("inspector.urls")'),
        ("ROOT_URLCONF", "inspector.urls", 'include("chatmemory.api.urls")'),
        ("TEMPLATES", [], "TEMPLATES has no entry with Django's own backend"),
        ("TEMPLATES", [{**site.TEMPLATES[0], "OPTIONS": {}}], "context_processors.request"),
        ("STATIC_URL", "https://cdn.example.org/static/", "STATIC_URL names another host"),
    ],
)
def test_a_check_names_what_is_missing(project, setting, value, words):
    setattr(project, setting, value)
    assert any(words in f"{found.msg} {found.hint}" for found in check_project())


def test_an_unknown_setting_is_named(project):
    project.INSPECTOR = {"METRIC_TOKEN": "x"}
    with pytest.raises(ImproperlyConfigured, match="INSPECTOR has no setting METRIC_TOKEN"):
        Client().get(CHAT)
