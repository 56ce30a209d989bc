"""Each route has a class, which limits its bodies. Docs and the proxy say the same numbers."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from django.conf import settings as site
from django.urls import resolve, reverse

from chatmemory import queries
from chatmemory.api.bodies import size_in_words
from chatmemory.conf import Configuration as Ours
from chatmemory.models import Memory
from inspector.conf import InspectorConfiguration as Pages
from inspector.middleware.bodies import limit_of
from inspector.urls import urlpatterns

ROOT = Path(__file__).parents[2]
URL_ENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
WITHOUT_ACCOUNT = {"healthz", "metrics", "readyz", "theme", "display", "sign-in", "sign-in-by-link"}
WITHOUT_ACCOUNT |= {"lessons", "lesson", "present", "playground"}
WITH_MESSAGES = {"simulate", "verdict", "add"}
WITH_A_FILE = {"import", "lab-of-file", "compare-file"}
VALUES = {"memory_id": "m", "seq": 1, "slug": "x", "token": "x", "key": 1}


def setting_of(path: str, content_type: str, method: str = "POST") -> str:
    return limit_of(method, path, resolve(path), content_type).setting


@pytest.mark.parametrize("name", [each.name for each in urlpatterns])
def test_the_class_of_every_page(name):
    (pattern,) = (each.pattern for each in urlpatterns if each.name == name)
    path = reverse(f"inspector:{name}", kwargs={each: VALUES[each] for each in pattern.converters})
    small = "OPEN_FORM_BYTES" if name in WITHOUT_ACCOUNT else "FORM_BYTES"
    large = "MESSAGES_FORM_BYTES" if name in WITH_MESSAGES else small
    large = "UPLOAD_BYTES" if name in WITH_A_FILE else large
    assert setting_of(path, URL_ENCODED) == f'INSPECTOR["{small}"]'
    assert setting_of(path, MULTIPART) == f'INSPECTOR["{large}"]'


def test_the_classes_of_the_api():
    path = "/api/v1/store/m/"
    assert setting_of(path, "application/json", "PUT") == 'CHATMEMORY["PUT_BYTES"]'
    assert setting_of(path, "application/json") == 'CHATMEMORY["POST_BYTES"]'
    assert setting_of(path, MULTIPART, "PATCH") == 'CHATMEMORY["POST_BYTES"]'
    nowhere = limit_of("POST", "/api/nowhere/", None, URL_ENCODED)
    assert nowhere.setting == 'CHATMEMORY["POST_BYTES"]'


@pytest.mark.parametrize(
    ("path", "kind", "size"),
    [
        ("/theme/", URL_ENCODED, 64 * 2**10),
        ("/policies/", URL_ENCODED, 256 * 2**10),
        ("/c/order-7741/add/", URL_ENCODED, 256 * 2**10),
        ("/c/order-7741/add/", f"{MULTIPART}; boundary=x", 2 * 2**20),
        ("/import/", f"{MULTIPART}; boundary=x", 16 * 2**20 + 256 * 2**10),
    ],
)
def test_the_middleware_refuses_by_the_declared_length(
    operator_client, memory_id, path, kind, size
):
    """Under WSGI too, and in a project of others. What is closed cannot have been read."""
    unread = io.BytesIO()
    unread.close()
    asked = {"CONTENT_TYPE": kind, "CONTENT_LENGTH": str(size + 1), "wsgi.input": unread}
    refused = operator_client.generic("POST", path, **asked)
    assert (refused.status_code, refused["Content-Type"]) == (413, "text/plain; charset=utf-8")
    assert re.search(r'the limit of INSPECTOR\["[A-Z_]+"\]\.\n', refused.content.decode())
    with pytest.raises(ValueError, match="closed file"):
        operator_client.generic("POST", path, **asked | {"CONTENT_LENGTH": str(size)})
    assert [memory.last_step for memory in Memory.objects.all()] == [0]


def test_a_setting_is_heeded(operator_client, memory_id, settings):
    settings.INSPECTOR = {"MESSAGES_FORM_BYTES": 999, "WHOLE_SITE": True}
    fields = {"role": "user", "text": "x" * 999}
    refused = operator_client.post(f"/c/{memory_id}/add/", fields)
    assert refused.status_code == 413
    assert "larger than 999 bytes, the limit of INSPECTOR" in refused.content.decode()
    assert queries.memory(memory_id).last_step == 0
    fields["text"] = "x"
    assert operator_client.post(f"/c/{memory_id}/add/", fields).status_code == 302


def test_the_composer_sends_multipart(operator_client, memory_id):
    html = operator_client.get(f"/c/{memory_id}/").content.decode()
    form = html[html.index('<form class="composer"') :].partition(">")[0]
    assert f'enctype="{MULTIPART}"' in form
    assert f'hx-encoding="{MULTIPART}"' in form


# The numbers of docs and proxy


def text_of(path: str) -> str:
    return (ROOT / path).read_text()


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


@pytest.mark.parametrize("setting", [*SIZES, *NUMBERS])
def test_operations_and_mounting_say_the_defaults(setting):
    words = size_in_words(SIZES[setting]) if setting in SIZES else NUMBERS[setting]
    bounds = text_of("docs/operations.md").partition("\n### Bounds\n")[2].partition("\n### ")[0]
    (row,) = (row for row in bounds.splitlines() if row.startswith("|") and setting in row)
    assert words in row
    (row,) = re.findall(
        rf"^\| `{re.escape(setting)}`.*$", text_of("docs/mounting.md"), re.MULTILINE
    )
    assert setting in NUMBERS or f"({words})" in row


def test_other_pages_say_the_defaults():
    api = text_of("docs/api.md")
    post, put = (size_in_words(SIZES[f'CHATMEMORY["{name}_BYTES"]']) for name in ("POST", "PUT"))
    assert f"| Body too large | 413 | more than {post}, or {put} of a PUT" in api
    assert f"messages, up to {Ours.ADDED_MESSAGES:,}, is several steps" in api
    assert f"A list has up to {Ours.LISTED_MESSAGES:,} messages." in api
    pages = " ".join(text_of("docs/inspector.md").split())
    upload, form = (
        size_in_words(SIZES[f'INSPECTOR["{name}"]'])
        for name in ("UPLOAD_BYTES", "MESSAGES_FORM_BYTES")
    )
    assert f"for files over {upload}" in pages
    assert f"may have {form} with the rest of its form" in pages
    assert f"messages and {form}, of a file of up to {upload}" in pages


def test_the_proxy_refuses_what_the_server_would():
    units = {"k": 2**10, "m": 2**20}
    found = re.findall(
        r"client_max_body_size (\d+)([km]);  # ([A-Z_]+)(?: and ([A-Z_]+))?",
        text_of("deploy/nginx.conf"),
    )
    assert len(found) == text_of("deploy/nginx.conf").count("client_max_body_size") == len(BODIES)
    by_name = {setting.split('"')[1]: size for setting, size in BODIES.items()}
    for number, unit, *names in found:
        assert int(number) * units[unit] == sum(by_name[name] for name in names if name)
    assert {names[0] for _, _, *names in found} == by_name.keys()


def test_django_holds_as_much_in_memory_as_the_largest_body_but_for_files():
    assert site.DATA_UPLOAD_MAX_MEMORY_SIZE == Ours.PUT_BYTES
    assert f"raise it to `{Ours.PUT_BYTES}`" in text_of("docs/mounting.md")
