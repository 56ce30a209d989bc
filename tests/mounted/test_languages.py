"""The pages and the API in a project whose addresses begin with the language of the reader."""

from __future__ import annotations

import re

import pytest
from django.conf import settings as site
from django.core.handlers.asgi import ASGIHandler
from django.test import Client

import inspector
from inspector.checks import check_project
from inspector.live import with_live_streams
from inspector.rooms.live.stream import is_stream, requested_memory
from tests.mounted.test_mounted import MIDDLEWARE, PAGES, post_in_chunks, without

pytestmark = pytest.mark.django_db
LOCALE = "django.middleware.locale.LocaleMiddleware"


@pytest.fixture(autouse=True, params=["en-us", "de"])
def project(settings, request):
    """English at /en/ and German at /de/; `en-us` is what startproject writes."""
    settings.ROOT_URLCONF = "tests.mounted.in_languages"
    settings.MIDDLEWARE = [*MIDDLEWARE[:2], LOCALE, *MIDDLEWARE[2:], *inspector.MIDDLEWARE]
    settings.REST_FRAMEWORK = {}
    settings.INSPECTOR = {}
    settings.LANGUAGE_CODE = request.param
    settings.LANGUAGES = [("en", "English"), ("de", "Deutsch")]
    settings.USE_THOUSAND_SEPARATOR = True
    return settings


def text_of(html: str, language: str) -> str:
    """A page without random parts, and without its language."""
    html = re.sub(r'value="\w{64}"|<time.*?</time>', "", html)
    return html.replace(f"/{language}/ops/", "/ops/")


@pytest.mark.parametrize("path", PAGES)
def test_pages_stay_in_the_addresses_of_a_language(operator_client, long_conversation, path):
    pages = {}
    for language in ("en", "de"):
        page = operator_client.get(f"/{language}{path}")
        assert page.status_code == 200
        led = set(re.findall(r'(?:href|src|action|hx-\w+|data-[\w-]*url)="(/[^"]*)"', page.text))
        ours = (f"/{language}/ops/chat/", site.STATIC_URL)
        assert not [each for each in led if not each.startswith(ours)]
        pages[language] = text_of(page.text, language)
    assert pages["de"] == pages["en"]


@pytest.mark.parametrize("language", ["en", "de"])
def test_errors_are_in_english(operator_client, api, language):
    root = f"/{language}/ops/chat/"
    answer = Client().get(f"{root}lab/")
    assert answer["Location"] == f"{root}sign-in/?next={root}lab/"
    answer = operator_client.get(f"{root}nothing/")
    assert answer.status_code == 404
    assert "Page not found · Memory inspector" in " ".join(answer.text.split())
    assert f'href="{root}"' in answer.text
    root = f"{root}api/v1/"
    made = api.post(f"{root}memories/", {"id": "a", "policy": None}, format="json")
    assert made["Location"] == f"http://testserver{root}memories/a/"
    refused = api.post(f"{root}memories/", {}, format="json")
    assert refused.json()["detail"] == "This field is required."
    document = api.get(f"{root}schema/?format=json").json()
    assert [each["url"] for each in document["servers"]] == [f"/{language}/ops/chat"]
    assert all(path.startswith("/api/v1/") for path in document["paths"])


@pytest.mark.parametrize("language", ["en", "de"])
def test_streams_and_bodies_are_known_beside_django(language):
    root = f"/{language}/ops/chat/"
    scope = {"type": "http", "path": f"{root}c/order-7741/live/", "root_path": ""}
    assert is_stream(scope)
    assert requested_memory(scope) == "order-7741"
    streams = with_live_streams(ASGIHandler())
    assert post_in_chunks(f"{root}theme/", b"a" * 2**17, streams) == (413, False)


def test_a_check_says_where_the_middleware_must_stand(project):
    assert check_project() == []
    others = without(project.MIDDLEWARE, *inspector.MIDDLEWARE)
    project.MIDDLEWARE = [*inspector.MIDDLEWARE, *others]
    (found,) = check_project()
    assert "after 'django.middleware.locale.LocaleMiddleware'" in found.msg


def test_pages_of_the_project_keep_their_language(operator_client):
    assert operator_client.get("/de/").headers["Content-Language"] == "de"
    assert operator_client.get("/de/ops/chat/lab/").headers["Content-Language"] == "en"
