"""No request takes more than 100 MB of a worker, whatever its body contains.

`make attack` sends every shape to every page, `make test` only the shapes that take most.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable
from contextlib import ExitStack

import pytest
import requests

from chatmemory.messages.codec.json_text import OF_A_VALUE, load_json
from inspector.middleware.bodies import upload_bounds

from ..peaks import GROWTH_MAX, MEGABYTE, bounded_growth
from .test_bodies import prepared_import, shown_text

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
MULTIPART = {"Content-Type": "multipart/form-data; boundary=part"}
KILOBYTE = 2**10
EMOJI = "\N{SLOTH}".encode()

pytestmark = [pytest.mark.long, pytest.mark.own_server]


def heaviest(shapes: Iterable[str], heavy: set[str]) -> list:
    """Parameters of all shapes, of which `make test` sends the heavy ones."""
    assert heavy <= set(shapes)
    long = pytest.mark.long
    return [pytest.param(each, marks=() if each in heavy else long) for each in shapes]


def filled(start: bytes, piece: bytes, size: int, end: bytes = b"") -> bytes:
    """A body of a size that repeats a piece, as often as it fits."""
    return start + piece * ((size - len(start) - len(end)) // len(piece)) + end


def part(name: str, value: bytes) -> bytes:
    head = f'--part\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
    return head.encode() + value + b"\r\n"


def test_forms(served):
    served.create("m")
    pages = served.session()
    pages.get(f"{served.url}/c/m/").raise_for_status()
    token = pages.cookies["csrftoken"].encode()  # without it, the CSRF check reads no form
    first = b"csrfmiddlewaretoken=" + token + b"&text="
    vast = filled(b"theme=", b"%41", 15 * MEGABYTE)
    stranger = filled(b"theme=", b"%41", 64 * KILOBYTE)
    escaped = filled(first, b"%41", 256 * KILOBYTE)
    fields = filled(b"csrfmiddlewaretoken=" + token, b"&a=b", 256 * KILOBYTE)
    start = part("csrfmiddlewaretoken", token) + part("role", b"script") + part("text", b"")[:-2]
    end = b"\r\n--part--\r\n"
    carried = (
        filled(start, b"user: a\n", 2 * MEGABYTE, end),
        filled(start, b"a b " + EMOJI, 2 * MEGABYTE, end),
        filled(b"", part("a", b"b"), 2 * MEGABYTE, b"--part--\r\n"),
    )
    asked = [(path, vast, FORM) for path in ("/sign-in/", "/learn/playground/", "/policies/")]
    asked += [("/theme/", stranger, FORM), ("/policies/", escaped, FORM), ("/bulk/", fields, FORM)]
    asked += [("/c/m/simulate/", escaped, FORM), ("/c/m/branch/", escaped, FORM)]
    for path in ("simulate", "verdict", "add"):
        asked += [(f"/c/m/{path}/", body, MULTIPART) for body in carried]
    for path, body, headers in asked:
        with bounded_growth(served.pid, 5 * MEGABYTE if body is vast else GROWTH_MAX):
            answer = pages.post(served.url + path, data=body, headers=headers)
        assert answer.status_code in ((413,) if body is vast else (200, 400, 403, 422)), path


def test_a_form_that_is_sent_to_the_api_with_a_session_is_not_parsed(served):
    """Checking a session reads the CSRF token of the form, which none of our parsers reads."""
    pages, url = served.session(), f"{served.url}/api/v1/memories/"
    pages.get(f"{served.url}/policies/").raise_for_status()
    assert "csrftoken" in pages.cookies
    with bounded_growth(served.pid, 10 * MEGABYTE):
        answer = pages.post(url, data=filled(b"a=", b"%41", 2 * MEGABYTE), headers=FORM)
    assert answer.status_code == 415


def system(text: bytes) -> bytes:
    return b'{"type":"SYSTEM","text":"' + text + b'"}'


def several(message: bytes, size: int, most: int = 10_000) -> bytes:
    return b"[" + b",".join([message] * min(size // (len(message) + 1), most)) + b"]"


def attributes(value: bytes, size: int) -> bytes:
    """A message of as many attributes as it may have in a size."""
    count = min(size // (len(value) + 9), 49_000)
    named = b",".join(b'"%d":%b' % (n, value) for n in range(count))
    return b'[{"type":"CUSTOM","attributes":{' + named + b"}}]"


TEXT_PART = b'{"text":"a","type":"TEXT"}'
HOSTILE = {
    "objects": lambda size: several(b"{}", size, size),
    "lists": lambda size: several(b"[]", size, size),
    "texts": lambda size: several(b'"ab"', size, size),
    "as many objects as are decoded": lambda size: several(
        b'{"type":"' + b"A" * 52 + b'"}', size, size
    ),
    "one emoji": lambda size: b"[" + system(filled(EMOJI, b"a b ", size - 40)) + b"]",
    "escaped controls": lambda size: b"[" + system(filled(EMOJI, rb"\u001f", size - 40)) + b"]",
    "a long call": lambda size: filled(
        b'[{"type":"AI","toolExecutionRequests":[{"name":"f","arguments":"' + EMOJI,
        b"a b ",
        size,
        b'"}]}]',
    ),
    "an emoji in each message": lambda size: several(system(b"a b " * 100 + EMOJI), size),
    "very short messages": lambda size: several(b'{"type":   "AI"}', size),
    "one message of many parts": lambda size: (
        b'[{"type":"USER","contents":' + several(TEXT_PART, size - 40, size) + b"}]"
    ),
    "attributes": lambda size: attributes(b"1", size),
    "attributes of words": lambda size: attributes(b'"a word of an attribute"', size),
}


HEAVY_BODIES = {"one message of many parts"}


@pytest.mark.parametrize("shape", heaviest(HOSTILE, HEAVY_BODIES))
def test_the_largest_bodies_of_the_api(served, shape):
    served.create("m", limit=10_000)
    api = f"{served.url}/api/v1"
    for method, path, size in (
        ("POST", "memories/m/messages/", 2 * MEGABYTE),
        ("POST", "memories/m/simulate/", 2 * MEGABYTE),
        ("PUT", "memories/m/messages/", 4 * MEGABYTE),
        ("PUT", "store/m/", 4 * MEGABYTE),
    ):
        body = HOSTILE[shape](size - 20)
        body = body if "store" in path else b'{"messages":' + body + b"}"
        # The keepers read the window too: what the change before left to them is not measured.
        served.manage("keep", "--once")
        with bounded_growth(served.pid):
            answer = served.api.request(method, f"{api}/{path}", data=body, headers=JSON)
        assert answer.status_code in (200, 201, 204, 400, 422), (path, answer.text)


def as_many(item: bytes) -> bytes:
    """A list of as many equal messages or conversations as may be in a file."""
    level, taken = [load_json(item.decode())], 0
    while level:
        taken += sum(sys.getsizeof(each) + OF_A_VALUE for each in level)
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [value for each in inner if not isinstance(each, str | None) for value in each]
    return several(item, FILE, upload_bounds().all // taken)


CHAT = b'{"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"hi"}]}\n'
FILE = 16 * MEGABYTE - 100
CALL = (
    b"""{"role":"assistant","content":null,"tool_calls":[{"id":"%b","type":"function",
"function":{"name":"f","arguments":"{}"}}]}"""
    % EMOJI
)
LONG = b"a b " * 100_000 + EMOJI
# With one emoji in it, Python keeps four bytes for each character of a text.
FILES = {
    "conversations": lambda: CHAT * (FILE // len(CHAT)),
    "objects": lambda: b"{}\n" * (FILE // 3),
    "lists": lambda: several(b"[]", FILE, FILE),
    "as many objects as are decoded": lambda: as_many(
        HOSTILE["as many objects as are decoded"](90)[1:-1]
    ),
    "as many short messages as are decoded": lambda: as_many(b'{"type":   "AI"}'),
    "as many messages as are decoded": lambda: as_many(
        b'{"type":"AI","text":"' + b"word " * 20 + b'"}'
    ),
    "as many with an emoji": lambda: as_many(system(b"a b " * 60 + EMOJI)),
    "as many longer ones with an emoji": lambda: as_many(system(b"a b " * 300 + EMOJI)),
    "as many calls as are decoded": lambda: as_many(CALL),
    "as many conversations as are decoded": lambda: as_many(CHAT.strip()),
    "as many conversations with an emoji": lambda: as_many(
        CHAT.strip().replace(b"hello", EMOJI * 50)
    ),
    "as many attributes as are decoded": lambda: as_many(
        attributes(b'"%b"' % (b"a b " * 24 + EMOJI), 250_000)[1:-1]
    ),
    "long texts with an emoji": lambda: several(system(LONG), FILE),
    "one text": lambda: b"[" + system(filled(EMOJI, b"a b ", FILE - 40)) + b"]",
    "one conversation with a name": lambda: (
        b'{"id":"a","messages":%b}' % several(system(LONG), FILE - 100)
    ),
    "one line of two": lambda: b'{"messages":%b}\n' % several(system(LONG), FILE - 1000) + CHAT,
    "an attribute in lists": lambda: (
        b'[{"type":"CUSTOM","attributes":{"a":[%b]}}]' % several(b'"' + LONG + b'"', FILE - 100)
    ),
    "an attribute in long messages": lambda: several(
        b'{"type":"CUSTOM","attributes":{"a":[%b]}}'
        % several(b'"' + LONG + b'"', 4 * MEGABYTE // 3),
        FILE,
    ),
    "media and an emoji": lambda: several(
        b'{"type":"USER","contents":[{"type":"TEXT","text":"%b"},'
        b'{"type":"IMAGE","image":{"base64Data":"%b"}}]}' % (EMOJI, b"A" * (4 * MEGABYTE - 200)),
        FILE,
    ),
    "escapes": lambda: several(system(rb"\u0101" * 300_000 + EMOJI), FILE),
    "unfinished": lambda: several(system(LONG), FILE)[:-2],
}


HEAVY = {"as many with an emoji", "one line of two"}
# To import as many takes minutes.
SLOW = ("as many conversations", "as many messages", "as many calls")
IMPORTED = [shape for shape in heaviest(FILES, HEAVY) if not shape.values[0].startswith(SLOW)]


@pytest.mark.parametrize("shape", IMPORTED)
def test_the_largest_files(served, shape):
    with requests.Session() as session:
        session.send(prepared_import(served, "small.json", CHAT)).raise_for_status()
        asked = prepared_import(served, "large.json", FILES[shape]())
        with bounded_growth(served.pid):
            answer = session.send(asked)
    assert answer.status_code in (200, 422)
    if shape.startswith("as many"):
        assert "bytes of memory" not in answer.text
    assert "larger than 16 MB" not in shown_text(answer.text)


FIELDS = ["objects", "lists", "texts", "one emoji", "as many objects as are decoded"]


@pytest.mark.parametrize("shape", heaviest([*FIELDS, "very short messages"], {"one emoji"}))
def test_fields_beside_a_file(served, shape):
    """Django reads fields of up to 4 MB in all."""
    pages = served.session()
    pages.get(f"{served.url}/import/").raise_for_status()
    start = part("csrfmiddlewaretoken", pages.cookies["csrftoken"].encode())
    start += part("kind", b"message_window") + part("limit", b"9")
    for size in (2 * MEGABYTE, 4 * MEGABYTE - 10 * KILOBYTE):
        content = HOSTILE[shape](size)
        body = start + part("messages", content) + b"--part--\r\n"
        with bounded_growth(served.pid):
            answer = pages.post(f"{served.url}/import/", data=body, headers=MULTIPART)
        assert answer.status_code in (200, 400, 422)


def test_bodies_that_are_cut_off_leave_nothing_behind(served):
    """Their clients send all but the last byte, slowly enough to be there at once, and go."""
    length, address = 64 * KILOBYTE, ("127.0.0.1", served.port)
    served.api.get(f"{served.url}/api/v1/memories/").raise_for_status()
    for path in ("/sign-in/", "/theme/", "/import/", "/api/v1/memories/"):
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n"
        with bounded_growth(served.pid, 20 * MEGABYTE):
            with ExitStack() as opened:
                for _ in range(30):
                    sending = opened.enter_context(socket.create_connection(address, 20))
                    sending.sendall(f"{head}Content-Type: {FORM['Content-Type']}\r\n\r\n".encode())
                    sending.sendall(b"a" * (length - 1))
            assert served.api.get(f"{served.url}/readyz").status_code == 200


@pytest.mark.parametrize(
    "start",
    [
        pytest.param("", marks=pytest.mark.long, id="ascii"),
        pytest.param(EMOJI.decode(), id="an emoji in each"),
    ],
)
def test_the_largest_window_is_rendered_within_the_bound(served, start):
    served.create("m", limit=10_000)
    for n in range(31):
        served.say("m", f"{start}{n} " + "word " * 99_999)
    # What is derived is kept beforehand: the new process has nothing to read beside the requests.
    served.stop()
    served.manage("keep", "--once")
    served.start()
    served.create("small", "hello")
    served.api.get(f"{served.url}/api/v1/memories/small/messages/").raise_for_status()
    for path in ("memories/m/messages/", "memories/m/messages/?as=openai_chat", "store/m/"):
        for packed in ("gzip", "identity"):
            with bounded_growth(served.pid):
                answer = served.api.get(
                    f"{served.url}/api/v1/{path}", headers={"Accept-Encoding": packed}
                )
                assert len(answer.content) > 15_000_000
