"""Every route, method and role: a route that is not in the table fails."""

from __future__ import annotations

import re
from http.cookies import SimpleCookie
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import transaction
from django.db.backends.postgresql.features import DatabaseFeatures
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from rest_framework.test import APIClient

from chatmemory import MessageWindow, UserMessage
from chatmemory.access.tokens import create_token
from chatmemory.roles import GROUPS, Role, actor_of

from .citus.forms import POSTS
from .conversations import create_and_add
from .rooms import room_modules

ROOT = Path(__file__).parents[1]
NOBODY, NONE = "nobody", "stranger"  # not signed in; signed in, without any role
ROLES = [NOBODY, NONE, Role.VIEWER, Role.OPERATOR, Role.ADMIN]
ONE = {"memory_id": "m"}
CHANGES = dict.fromkeys(("post", "put", "delete"), Role.OPERATOR)

# route: its arguments, and the lowest role for each method
PAGES = {
    "inspector:overview": ({}, {"get": Role.VIEWER}),
    "inspector:overview-now": ({}, {"get": Role.VIEWER}),
    "inspector:over-time": ({}, {"get": Role.VIEWER}),
    "inspector:open": ({}, {"get": Role.VIEWER}),
    "inspector:bulk": ({}, {"post": Role.VIEWER}),
    "inspector:conversation": (ONE, {"get": Role.VIEWER}),
    "inspector:pin": (ONE | {"seq": 1}, {"post": Role.OPERATOR}),
    "inspector:index-term": (
        ONE | {"seq": 1, "number": 1},
        {"get": Role.OPERATOR, "post": Role.OPERATOR},
    ),
    "inspector:compact": (ONE, {"get": Role.OPERATOR, "post": Role.OPERATOR}),
    "inspector:demo": ({}, {"post": Role.OPERATOR}),
    "inspector:sign-in": ({}, {"get": NOBODY, "post": NOBODY}),
    "inspector:sign-in-by-link": ({"token": "x"}, {}),
    "inspector:sign-out": ({}, {}),  # redirects everyone to the sign-in page
    "inspector:theme": ({}, {"post": NOBODY}),
    "inspector:end-tour": ({}, {"post": Role.VIEWER}),
    "inspector:display": ({}, {"post": NOBODY}),
    "inspector:glossary": ({}, {"get": NOBODY}),
    "inspector:healthz": ({}, {"get": NOBODY}),
    "inspector:readyz": ({}, {"get": NOBODY}),
    "chatmemory:docs": ({}, {"get": Role.VIEWER}),
}
PAGES |= {
    route: each
    for room in room_modules("routes")
    for route, each in getattr(room, "PAGES", {}).items()
}
NOT_FOUND = {"chatmemory:unknown-memory", "chatmemory:unknown-store"}  # 404 for everyone
API = {
    "chatmemory:root": ({}, {"get": Role.VIEWER}),
    "chatmemory:memories": ({}, {"get": Role.VIEWER, "post": Role.OPERATOR}),
    "chatmemory:memory": (ONE, {"get": Role.VIEWER, "patch": Role.OPERATOR, "delete": Role.ADMIN}),
    "chatmemory:messages": (ONE, {"get": Role.VIEWER, **CHANGES}),
    "chatmemory:message": (ONE | {"seq": 1}, {"get": Role.VIEWER}),
    "chatmemory:compact": (ONE, {"post": Role.OPERATOR}),
    "chatmemory:pin": (ONE | {"seq": 1}, {"post": Role.OPERATOR, "delete": Role.OPERATOR}),
    "chatmemory:history": (ONE, {"get": Role.VIEWER}),
    "chatmemory:search-history": (ONE, {"get": Role.VIEWER}),
    "chatmemory:search-own-history": ({}, {"get": Role.VIEWER}),
    "chatmemory:steps": (ONE, {"get": Role.VIEWER}),
    "chatmemory:step": (ONE | {"n": 1}, {"get": Role.VIEWER}),
    "chatmemory:recall": ({}, {"get": Role.VIEWER, "post": Role.VIEWER}),
    "chatmemory:store": (
        ONE,
        {"get": Role.VIEWER, "put": Role.OPERATOR, "delete": Role.OPERATOR},
    ),
    "chatmemory:schema": ({}, {"get": Role.VIEWER}),
}
API |= {
    route: each
    for room in room_modules("routes")
    for route, each in getattr(room, "API", {}).items()
}
BODIES = {"inspector:bulk": {"action": "export", "id": "m"}}
METHODS = ("get", "post", "put", "patch", "delete")


def cases(table):
    return [
        (route, method, arguments, least)
        for route, (arguments, methods) in table.items()
        for method, least in methods.items()
    ]


def routes(patterns, namespace="") -> set[str]:
    found: set[str] = set()
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            found.add(f"{namespace}{pattern.name}")
        elif getattr(pattern, "namespace", None) != "admin":
            inner = f"{pattern.namespace}:" if pattern.namespace else namespace
            found |= routes(pattern.url_patterns, inner)
    return found


def test_each_form_is_also_sent_to_a_cluster():
    """Without a cluster tests/citus is skipped, and would not notice a new form."""
    assert POSTS.keys() == {
        route.partition(":")[2] for route, (_, methods) in PAGES.items() if "post" in methods
    }


@pytest.fixture(scope="module")
def site(django_db_setup, django_db_blocker):
    """Conversations and a user per role, created once and deleted after the last test."""
    with django_db_blocker.unblock():
        for memory_id in ("m", "acme/1", "ACME/2", "other"):
            create_and_add(memory_id, MessageWindow(3), [UserMessage("where is my parcel?")])
        yield Site()
        call_command("flush", interactive=False, verbosity=0)


class Site:
    """Signs in people and programs of each role."""

    def __init__(self) -> None:
        self.cookies = {role: self._sign_in(role) for role in ROLES if role != NOBODY}
        self.secrets = {role: create_token(role, role) for role in Role.values}
        self.secrets["acme"] = create_token("acme", Role.ADMIN, prefix="acme/")

    def _sign_in(self, role: str) -> SimpleCookie:
        user = get_user_model().objects.create_user(f"a {role}")
        if role != NONE:
            user.groups.add(Group.objects.get(name=GROUPS[role]))
        client = Client()
        client.force_login(user)
        return client.cookies

    def person(self, role: str) -> Client:
        """Return a browser of someone with a role."""
        client = Client()
        client.cookies.update(self.cookies.get(role, {}))
        return client

    def program(self, name: str) -> APIClient:
        """Return a client with the token of a role, or without one."""
        client = APIClient()
        if name in self.secrets:
            client.credentials(HTTP_AUTHORIZATION=f"Bearer {self.secrets[name]}")
        return client


@pytest.fixture(autouse=True)
def _rolled_back(site, db):
    """Undo the changes of a test."""


@pytest.fixture
def person(site):
    return site.person


@pytest.fixture
def program(site):
    return site.program


@pytest.fixture
def acme(site) -> APIClient:
    """A client that sees conversations with a prefix only."""
    return site.program("acme")


def gets_in(response) -> bool:
    is_turned_away = response.status_code in (401, 403) or "/sign-in/" in response.get(
        "Location", ""
    )
    return not is_turned_away


def is_allowed(role: str, least: str) -> bool:
    return ROLES.index(role) >= ROLES.index(least)


def request_undone(client, method: str, url: str, *body, **more):
    """Send a request, and undo its changes."""
    with transaction.atomic():
        response = getattr(client, method)(url, *body, **more)
        transaction.set_rollback(True)
    return response


def test_every_route_is_in_the_table():
    assert routes(get_resolver().url_patterns) == {*PAGES, *API, *NOT_FOUND}


@pytest.mark.parametrize(("route", "method", "arguments", "least"), cases(PAGES))
def test_pages_check_the_role(person, route, method, arguments, least):
    url = reverse(route, kwargs=arguments)
    for role in ROLES:
        response = request_undone(person(role), method, url, BODIES.get(route))
        assert gets_in(response) is is_allowed(role, least), role


@pytest.mark.parametrize(("route", "method", "arguments", "least"), cases(API))
def test_the_api_checks_the_role(person, program, route, method, arguments, least):
    url = reverse(route, kwargs=arguments)
    for role in ROLES:
        browser = person(role)
        for client in (browser,) if role == NONE else (browser, program(role)):
            response = request_undone(client, method, url, {}, content_type="application/json")
            assert gets_in(response) is is_allowed(role, least), role
            if role == NOBODY:
                assert (response.status_code, response["WWW-Authenticate"]) == (401, "Bearer")
                assert response["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("route", [*PAGES, *API])
def test_no_other_method_does_anything(person, route):
    """HEAD and OPTIONS need the permission of GET; others are refused."""
    arguments, methods = (PAGES | API)[route]
    url = reverse(route, kwargs=arguments)
    for role in ROLES[: ROLES.index(methods["get"]) + 1] if "get" in methods else ():
        for method in ("head", "options"):
            response = request_undone(person(role), method, url)
            is_in = gets_in(response) and response.status_code != 405
            assert not is_in or is_allowed(role, methods["get"]), (role, method)
    others = set(METHODS) - methods.keys() - ({"get", "post"} if not methods else set())
    for method in others:
        response = request_undone(person(Role.VIEWER), method, url)
        assert response.status_code in (403, 405), method


@pytest.mark.parametrize(
    ("action", "least"),
    [("export", Role.VIEWER), ("label", Role.OPERATOR), ("delete", Role.ADMIN)],
)
def test_bulk_actions_need_the_permission_of_single_ones(person, action, least):
    form = {"action": action, "id": "m", "label_as_text": "a:b", "confirmed": "1"}
    for role in ROLES:
        response = request_undone(person(role), "post", "/bulk/", form)
        assert gets_in(response) is is_allowed(role, least), role


def test_the_admin_site_is_for_staff(person):
    response = person(Role.ADMIN).get("/admin/")
    assert response.status_code == 302


OF_OPERATORS = {"/c/m/add/", "/c/m/change/", "/import/", 'value="label"'}
OF_ADMINS = {*OF_OPERATORS, "/tokens/", 'value="delete"'}


@pytest.mark.parametrize(
    ("role", "offers"),
    [(Role.VIEWER, set()), (Role.OPERATOR, OF_OPERATORS), (Role.ADMIN, OF_ADMINS)],
)
def test_pages_offer_only_what_is_allowed(person, role, offers):
    client = person(role)
    pages = ("/", "/c/m/", "/c/m/settings/")
    html = "".join(client.get(page).content.decode() for page in pages)
    assert {each for each in OF_ADMINS if each in html} == offers


# Tokens for some ids only


@pytest.mark.parametrize(
    "route", [route for route, (named, _) in API.items() if "memory_id" in named]
)
def test_a_token_with_a_prefix_finds_no_other_conversations(acme, route):
    arguments, methods = API[route]
    for stranger in ("other", "ACME/2", "acme"):
        url = reverse(route, kwargs=arguments | {"memory_id": stranger})
        for method in methods:
            assert getattr(acme, method)(url, {}).status_code == 404, (method, stranger)


@pytest.mark.parametrize("query", ["", "?search=parcel", "?ordering=id", "?search=other"])
def test_lists_and_searches_respect_the_prefix(acme, query):
    found = acme.get(f"/api/v1/memories/{query}").data["results"]
    assert {row["id"] for row in found} <= {"acme/1"}


def test_a_token_with_a_prefix_finds_and_creates_its_own_conversations(acme):
    assert acme.get("/api/v1/memories/acme~2F1/").status_code == 200
    for memory_id, status in (("mine", 403), ("acme/9", 201)):
        answer = acme.post("/api/v1/memories/", {"id": memory_id, "policy": None})
        assert answer.status_code == status


@pytest.mark.parametrize("name", ["ada", 7, UUID(int=7)])
def test_the_name_of_a_user_is_recorded_as_text(rf, name):
    request = rf.get("/")
    request.user = SimpleNamespace(get_username=lambda: name)
    assert actor_of(request) == str(name)


def test_the_table_of_the_docs_has_each_role_with_what_it_may():
    text = (ROOT / "docs/operations.md").read_text("utf-8")
    heading, _, *rows = re.search(r"(^\| who may .*\n(?:\|.*\n)+)", text, re.M)[1].splitlines()
    assert re.findall(r"role `(\w+)`, group (\w+)", heading) == [*GROUPS.items()]
    shares = [[cell.strip() for cell in row.split("|")[2:-1]] for row in rows]
    assert shares == [["yes"] * 3, ["", "yes", "yes"], ["", "", "yes"]]


def test_the_least_postgresql_of_the_docs_is_djangos():
    text = (ROOT / "docs/operations.md").read_text("utf-8")
    least = DatabaseFeatures.minimum_database_version[0]
    assert f"PostgreSQL {least} or newer" in text
