"""The class of a route limits its bodies: their size, their time, and how many an address sends
without an account. Docs and the proxy say the same numbers.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
from django.conf import settings as site
from django.test import Client
from django.urls import resolve, reverse
from rest_framework.settings import api_settings

import inspector
from chatmemory.api.bodies import size_in_words
from chatmemory.conf import Configuration as Ours
from chatmemory.reading import conversations
from inspector.conf import InspectorConfiguration as Pages
from inspector.middleware import bodies, refusals
from inspector.middleware.bodies import BoundedBodies, limit_of
from inspector.project.asgi import application
from inspector.urls import urlpatterns

from ..peaks import MEGABYTE, bounded_growth

ROOT = Path(__file__).parents[2]
JSON, URL_ENCODED = "application/json", "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=part"
KILOBYTE = 2**10
VAST = 100 * MEGABYTE
SECONDS = 20

# The class of a route

WITHOUT_ACCOUNT = {"healthz", "metrics", "readyz", "theme", "display", "sign-in", "sign-in-by-link"}
WITHOUT_ACCOUNT |= {"glossary", "lessons", "lesson", "present", "playground"}
WITH_MESSAGES = {"simulate", "verdict", "add"}
WITH_A_FILE = {"import"}
OTLP = {"otlp-traces", "otlp-logs", "otlp-metrics"}
VALUES = {
    "step": 1,
    "memory_id": "m",
    "seq": 1,
    "number": 1,
    "slug": "x",
    "token": "x",
    "key": 1,
    "n": 1,
    "place": 0,
}


@pytest.mark.parametrize("name", [each.name for each in urlpatterns])
def test_the_class_of_every_page(name):
    (pattern,) = (each.pattern for each in urlpatterns if each.name == name)
    path = reverse(f"inspector:{name}", kwargs={each: VALUES[each] for each in pattern.converters})
    small = "OPEN_FORM_BYTES" if name in WITHOUT_ACCOUNT else "FORM_BYTES"
    large = "MESSAGES_FORM_BYTES" if name in WITH_MESSAGES else small
    large = "UPLOAD_BYTES" if name in WITH_A_FILE else large
    small, large = ("OTLP_BYTES",) * 2 if name in OTLP else (small, large)
    for kind, setting in ((URL_ENCODED, small), ("multipart/form-data", large)):
        assert limit_of("POST", path, resolve(path), kind).setting == f'INSPECTOR["{setting}"]'


def send_form(path: str, size: int, kind: str = URL_ENCODED, address: str = "192.0.2.1", **other):
    """The answer to a form of a size, of which nothing can be read."""
    unread = io.BytesIO()
    unread.close()
    asked = {"CONTENT_TYPE": kind, "CONTENT_LENGTH": str(size), "REMOTE_ADDR": address}
    client = other.get("client") or Client(enforce_csrf_checks=True)
    return client.generic("POST", path, **asked, **{"wsgi.input": unread})


def test_the_middleware_refuses_by_the_declared_length(operator_client, memory_id, settings):
    """Under WSGI too, and in a project of others."""
    settings.INSPECTOR = {"MESSAGES_FORM_BYTES": 999, "WHOLE_SITE": True}
    path = f"/c/{memory_id}/add/"
    for kind, size in ((MULTIPART, 999), (URL_ENCODED, 256 * KILOBYTE)):
        refused = send_form(path, size + 1, kind, client=operator_client)
        assert (refused.status_code, refused["Content-Type"]) == (413, "text/plain; charset=utf-8")
        assert f"larger than {size_in_words(size)}, the limit of INSPECTOR" in refused.text
        with pytest.raises(ValueError, match="closed file"):
            send_form(path, size, kind, client=operator_client)
    assert conversations.memory(memory_id).last_step == 0
    chunked = {"headers": {"Transfer-Encoding": "chunked"}, "CONTENT_LENGTH": ""}
    answer = operator_client.patch("/api/v1/memories/any/", **chunked)
    assert (answer.status_code, answer.json()["type"]) == (411, "urn:chatmemory:length-required")


@pytest.mark.parametrize("is_chunked", [False, True], ids=["declared", "chunked"])
@pytest.mark.parametrize(
    ("method", "path", "kind", "size", "setting"),
    [
        ("PATCH", "/api/v1/memories/m/", JSON, 2 * MEGABYTE, 'CHATMEMORY["POST_BYTES"]'),
        ("PUT", "/api/v1/store/m/", JSON, 4 * MEGABYTE, 'CHATMEMORY["PUT_BYTES"]'),
        ("POST", "/api/nowhere/", MULTIPART, 2 * MEGABYTE, 'CHATMEMORY["POST_BYTES"]'),
        ("POST", "/sign-in/", URL_ENCODED, 64 * KILOBYTE, 'INSPECTOR["OPEN_FORM_BYTES"]'),
        ("POST", "/admin/login/", URL_ENCODED, 64 * KILOBYTE, 'INSPECTOR["OPEN_FORM_BYTES"]'),
        ("POST", "/nowhere/", MULTIPART, 64 * KILOBYTE, 'INSPECTOR["OPEN_FORM_BYTES"]'),
        ("POST", "/policies/", URL_ENCODED, 256 * KILOBYTE, 'INSPECTOR["FORM_BYTES"]'),
        ("POST", "/c/m/add/", MULTIPART, 2 * MEGABYTE, 'INSPECTOR["MESSAGES_FORM_BYTES"]'),
    ],
)
def test_one_byte_more_than_its_class_allows(served, method, path, kind, size, setting, is_chunked):
    def send(body: bytes) -> requests.Response:
        given = iter([body[:size], body[size:]]) if is_chunked else body
        headers, url = {"Content-Type": kind}, served.url + path
        return requests.request(method, url, data=given, headers=headers, allow_redirects=False)

    refused = send(b" " * (size + 1))
    assert refused.status_code == 413
    told = f"the body is larger than {size_in_words(size)}, the limit of {setting}"
    if "/api/" in path:
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert refused.json()["detail"] == told
    else:
        assert refused.text == f"Body too large: {told}.\n"
    assert send(b" " * size).status_code != 413


@pytest.mark.own_server
def test_a_huge_body_is_neither_read_nor_buffered(served):
    served.api.get(f"{served.url}/api/v1/memories/").raise_for_status()
    for path in ("/api/v1/memories/", "/sign-in/", "/import/"):
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {VAST}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", served.port), SECONDS) as connection:
            connection.sendall(head.encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 413 ")
        for body in (b" " * VAST, (b" " * MEGABYTE for _ in range(VAST // MEGABYTE))):
            with bounded_growth(served.process.pid, 5 * MEGABYTE):
                response = served.api.post(served.url + path, data=body, timeout=SECONDS)
            assert response.status_code == 413


def prepared_import(
    served, name: str, content: bytes, path: str = "/import/"
) -> requests.PreparedRequest:
    """The request of the page that reads a file, by a signed-in person."""
    pages = served.session()
    pages.get(f"{served.url}/import/").raise_for_status()
    form = {"format": "auto", "kind": "message_window", "limit": "9"}
    form["csrfmiddlewaretoken"] = pages.cookies["csrftoken"]
    asked = requests.Request("POST", served.url + path, data=form, files={"file": (name, content)})
    return pages.prepare_request(asked)


def shown_text(page: str) -> str:
    """A page without the sentence that its form has for a script."""
    return re.sub(r'data-too-large="[^"]*"', "", page)


def test_a_file_may_have_16_mb_beside_the_rest_of_its_form(served):
    with requests.Session() as session:
        for more, status in ((0, 422), (1, 422), (256 * KILOBYTE, 413)):
            asked = prepared_import(served, "spaces.json", b" " * (16 * MEGABYTE + more))
            answer = session.send(asked)
            assert answer.status_code == status
            sentence = "larger than 16 MB, the limit of INSPECTOR"
            assert (sentence in shown_text(answer.text)) == (more > 0)


def test_bodies_that_are_sent_in_chunks_are_read(served):
    said = b'[{"role": "user", "content": "hello"}]'
    asked = prepared_import(served, "in-chunks.json", said)
    whole = asked.body
    asked.prepare_body(iter([whole[:50], whole[50:]]), None)
    del asked.headers["Content-Length"]
    assert asked.headers["Transfer-Encoding"] == "chunked"
    with requests.Session() as session:
        session.send(asked).raise_for_status()
    assert [text for _, text in served.history("in-chunks-1")] == ["hello"]
    url = f"{served.url}/api/v1/memories/in-chunks-1/"
    for method, more, body in (
        ("PATCH", "", {"labels": {"team": "sent"}}),
        ("PUT", "messages/", {"messages": [{"type": "SYSTEM", "text": "sent"}]}),
    ):
        chunks = iter([json.dumps(body).encode()])
        headers = {"Content-Type": JSON}
        served.api.request(method, url + more, data=chunks, headers=headers).raise_for_status()
        assert '"sent"' in served.api.get(url + more).text


def test_the_composer_sends_multipart(operator_client, memory_id):
    html = operator_client.get(f"/c/{memory_id}/").text
    form = html[html.index('<form class="composer"') :].partition(">")[0]
    assert 'enctype="multipart/form-data"' in form
    assert 'hx-encoding="multipart/form-data"' in form


def test_no_path_reaches_beyond_the_static_files(served):
    for path in ("/static/../manage.py", "/static/%2e%2e/manage.py", "/static/..%2fmanage.py"):
        with socket.create_connection(("127.0.0.1", served.port), SECONDS) as connection:
            connection.sendall(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n".encode())
            status = connection.recv(100).split()[1]
        assert status != b"200", path


# The time of a body


@pytest.fixture
def trickled(monkeypatch) -> Callable[..., list[dict]]:
    """What is answered to a body of which some parts arrive at once, and the rest never."""
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0)
    monkeypatch.setattr(refusals, "LINGER_SECONDS", 0)

    def trickle(path: str, *parts: bytes, asked=application, address: str = "") -> list[dict]:
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b""}
        scope |= {"headers": [(b"host", b"127.0.0.1")], "client": (address, 5)}
        arriving, answer = list(parts), []

        async def receive():
            if not arriving:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": arriving.pop(), "more_body": True}

        async def send(message):
            answer.append(message)

        asyncio.run(asyncio.wait_for(asked(scope, receive, send), SECONDS))
        return answer

    return trickle


@pytest.mark.parametrize("path", ["/api/v1/memories/", "/import/"])
def test_a_body_that_arrives_too_slowly_is_refused(path, trickled):
    start, body, _ = trickled(path)
    assert start["status"] == 408
    assert (b"connection", b"close") in start["headers"]
    assert b"Request timeout" in body["body"]


def test_a_body_may_take_longer_the_larger_it_is(trickled, monkeypatch):
    monkeypatch.setattr(bodies, "BYTES_A_SECOND", 32 * KILOBYTE)  # 64 kB give 2 seconds
    (start, *_) = trickled("/theme/", *[b" " * KILOBYTE] * 64, b" ")
    assert start["status"] == 413


def test_a_body_that_stops_is_answered_once(trickled):
    start = {"type": "http.response.start", "status": 200, "headers": []}
    end = {"type": "http.response.body", "body": b"", "more_body": False}

    async def answers_at_once(scope, receive, send):
        await send(start)
        await receive()
        await send(end)

    async def answers_later(scope, receive, send):
        await receive()
        await send(start)
        await send(end)

    assert trickled("/", asked=BoundedBodies(answers_at_once)) == [start, end]
    refused = trickled("/", asked=BoundedBodies(answers_later))
    assert refused[0]["status"] == 408
    assert start not in refused


def test_an_answer_may_take_longer_than_its_body(monkeypatch):
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0)
    arriving, answer = [{"type": "http.disconnect"}, {"type": "http.request"}], []

    async def receive():
        for _ in range(9 * (len(arriving) == 1)):
            await asyncio.sleep(0)
        return arriving.pop()

    async def send(message):
        answer.append(message["type"])

    async def answers_at_the_end(scope, receive, send):
        await receive()
        await receive()
        await send({"type": "answered"})

    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    asyncio.run(BoundedBodies(answers_at_the_end)(scope, receive, send))
    assert answer == ["answered"]


# Who keeps posting without an account is told to wait: 429, before anything is parsed.

POSTED = ["/sign-in/", "/theme/", "/display/", "/nowhere/", "/learn/playground/", "/api/nowhere/"]


@pytest.fixture
def few(monkeypatch) -> None:
    for scope in ("form", "playground", "stranger"):
        monkeypatch.setitem(api_settings.DEFAULT_THROTTLE_RATES, scope, "3/minute")


@pytest.fixture(params=["", "/ops/chat"], ids=["its own server", "mounted"])
def prefix(request, settings, few, db) -> str:
    if request.param:
        settings.ROOT_URLCONF = "tests.mounted.urls"
        settings.MIDDLEWARE = [
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            *inspector.MIDDLEWARE,
        ]
        settings.AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
        settings.INSPECTOR = {}
    return request.param


def posted(path: str, address: str) -> int:
    asked = {"CONTENT_TYPE": URL_ENCODED, "REMOTE_ADDR": address}
    return Client(enforce_csrf_checks=True).generic("POST", path, b"a" * 99, **asked).status_code


def test_forms_of_an_address_are_counted_before_they_are_read(prefix):
    for n, path in enumerate(POSTED if prefix else [*POSTED, "/admin/login/"]):
        address = f"192.0.2.{n}"
        assert 429 not in [posted(prefix + path, address) for _ in range(3)]
        refused = send_form(prefix + path, 99, address=address)  # and is not read
        assert refused.status_code == 429
        assert 0 < int(refused["Retry-After"]) <= 60
        assert Client().get(f"{prefix}/sign-in/", REMOTE_ADDR=address).status_code == 200
    if prefix:  # pages of the project are not counted
        assert [posted("/", "192.0.2.1") for _ in range(5)] == [403] * 5


def test_bodies_that_are_too_large_are_counted(prefix):
    for n, path in enumerate([*POSTED, "/policies/", "/api/v1/memories/"]):
        statuses = [send_form(prefix + path, VAST, address=f"192.0.2.{n}") for _ in range(4)]
        assert [each.status_code for each in statuses] == [413, 413, 413, 429]


def test_a_server_counts_what_it_refuses_before_django(few, trickled):
    async def reading(scope, receive, send):
        while (await receive()).get("more_body"):
            pass

    asked = BoundedBodies(reading)
    for address, parts, first in (("192.0.2.1", [b" " * MEGABYTE], 413), ("192.0.2.2", [], 408)):
        answers = [trickled("/theme/", *parts, asked=asked, address=address) for _ in range(4)]
        assert [start["status"] for start, *_ in answers] == [first, first, first, 429]


# The numbers of docs and proxy

SIZES = {
    f'{name}["{field}"]': getattr(kind(), field)
    for name, kind in (("CHATMEMORY", Ours), ("INSPECTOR", Pages))
    for field in kind.__dataclass_fields__
    if field.endswith("_BYTES")
}
NUMBERS = {
    f'CHATMEMORY["{field}"]': f"{getattr(Ours(), field):,} {field.split('_')[1].lower()}"
    for field in ("WINDOW_MESSAGES", "TEXT_CHARACTERS", "ADDED_MESSAGES", "LISTED_MESSAGES")
}
OF_CONTENT = {'CHATMEMORY["WINDOW_BYTES"]', 'CHATMEMORY["MEDIA_BYTES"]'}
BODIES = {setting: size for setting, size in SIZES.items() if setting not in OF_CONTENT}


def text_of(path: str) -> str:
    return (ROOT / path).read_text()


def default(name: str) -> str:
    (size,) = (size for setting, size in SIZES.items() if f'"{name}"' in setting)
    return size_in_words(size)


@pytest.mark.parametrize("setting", [*SIZES, *NUMBERS])
def test_operations_and_mounting_say_the_defaults(setting):
    words = size_in_words(SIZES[setting]) if setting in SIZES else NUMBERS[setting]
    bounds = text_of("docs/operations.md").partition("\n### Bounds\n")[2].partition("\n### ")[0]
    (row,) = (row for row in bounds.splitlines() if row.startswith("|") and setting in row)
    assert words in row
    (row,) = re.findall(rf"(?m)^\| `{re.escape(setting)}`.*$", text_of("docs/mounting.md"))
    assert setting in NUMBERS or f"({words})" in row


def test_other_pages_say_the_defaults():
    api, pages = (" ".join(text_of(f"docs/{name}.md").split()) for name in ("api", "inspector"))
    post, put = default("POST_BYTES"), default("PUT_BYTES")
    upload, form = default("UPLOAD_BYTES"), default("MESSAGES_FORM_BYTES")
    assert f"| Body too large | 413 | more than {post}, or {put} of a PUT" in api
    assert f"messages, up to {Ours.ADDED_MESSAGES:,}, is several steps" in api
    assert f"A list has up to {Ours.LISTED_MESSAGES:,} messages." in api
    assert f"for files over {upload}" in pages
    assert f"may have {form} with the rest of its form" in pages
    assert site.DATA_UPLOAD_MAX_MEMORY_SIZE == Ours.PUT_BYTES
    assert f"raise it to `{Ours.PUT_BYTES}`" in text_of("docs/mounting.md")


def test_the_proxy_refuses_what_the_server_would():
    units = {"k": 2**10, "m": 2**20}
    conf = text_of("deploy/nginx.conf")
    found = re.findall(r"client_max_body_size (\d+)([km]);  # ([A-Z_]+)(?: and ([A-Z_]+))?", conf)
    assert len(found) == conf.count("client_max_body_size") == len(BODIES)
    by_name = {setting.split('"')[1]: size for setting, size in BODIES.items()}
    for number, unit, *names in found:
        assert int(number) * units[unit] == sum(by_name[name] for name in names if name)
    assert {names[0] for _, _, *names in found} == by_name.keys()
