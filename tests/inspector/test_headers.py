"""What every route answers with: headers of security and caches, compression, no inline code. A new
route has to be added to the table.
"""

from __future__ import annotations

import gzip
import re

import pytest
from django.test import Client
from django.urls import reverse

from chatmemory import MessageWindow, UserMessage
from inspector import demo
from inspector.urls import urlpatterns

from ..conversations import create_and_add
from .test_bodies import VALUES

PAGES = {
    "overview": "/",
    "overview-now": "/now/",
    "over-time": "/over-time/",
    "glossary": "/glossary/",
    "live-overview": "/live/",
    "open": "/c/?id=m",
    "conversation": "/c/m/?at=1&msg=1&find=hi",
    "live": "/c/m/live/",
    "compare": "/c/m/compare/?phrase=hi",
    "settings": "/c/m/settings/",
    "export": "/c/m/export/?download=1",
    "evidence-file": "/c/m/evidence/?at=1",
    "compact": "/c/m/compact/",
    "index-term": "/c/m/index/1/1/",
    "doctor": "/doctor/",
    "doctor-rules": "/doctor/rules/",
    "doctor-error": "/doctor/error/",
    "doctor-providers": "/doctor/providers/",
    "repair": "/c/m/repair/",
    "lab": "/lab/",
    "calls-intake": "/calls/",
    "calls": "/c/m/calls/",
    "call": "/c/m/calls/1/",
    "lab-compactions": "/lab/compactions/",
    "import": "/import/",
    "import-examined": "/import/examined/?begin=m",
    "lessons": "/learn/",
    "lesson": "/learn/tool-calls/?step=2&leaves=3&check=1",
    "present": "/learn/tool-calls/present/?screen=4",
    "playground": "/learn/playground/?chat=damaged",
    "policies": "/policies/",
    "tokens": "/tokens/",
    "sign-in": "/sign-in/",
    "sign-in-by-link": "/sign-in/broken/",
    "healthz": "/healthz",
    "readyz": "/readyz",
    "metrics": "/metrics",
}
POSTS = {
    "simulate": ("/c/m/simulate/", {"role": "user", "text": "what if"}),
    "bulk": ("/bulk/", {"action": "delete", "id": "m"}),
    "adopt-for-many": ("/lab/adopt/", {"limit": "5"}),
    "lab-fix": ("/lab/fix/", {}),
    "verdict": ("/c/m/verdict/", {"role": "user", "text": "what if"}),
    "add": ("/c/m/add/", {"role": "robot"}),
    "repair-many": ("/doctor/repair/", {}),
    "raise-limits": ("/doctor/raise/", {}),
    "undo-many": ("/doctor/undo/", {"steps": "{}"}),
    "an error": ("/doctor/error/", {"error": "Overloaded"}),
    "import a file": ("/import/", {}),
    "otlp-traces": ("/otlp/v1/traces", {}),
    "otlp-logs": ("/otlp/v1/logs", {}),
    "otlp-metrics": ("/otlp/v1/metrics", {}),
}
# Forms whose answers are redirects
OTHER_FORMS = {"pin", "redact", "redact-sent", "branch", "adopt", "change", "demo", "remove-policy"}
OTHER_FORMS |= {"undo-repair", "doctor-providers-forget", "mute"}
OTHER_FORMS |= {"end-tour", "revoke-token", "sign-out", "theme", "display"}
WITHOUT_A_NAME = ["/c/nobody/", "/nothing/", "/api/docs/", "/api/schema/", "/api/v1/memories/"]
WITHOUT_A_NAME += ["/api/v1/memories/none/"]
POLICY = {
    "default-src 'self'",
    "img-src 'self' data:",
    "object-src 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "form-action 'self'",
}


def test_every_route_is_in_the_table():
    named = {pattern.name for pattern in urlpatterns}
    assert named == named & (PAGES.keys() | POSTS.keys()) | OTHER_FORMS


def test_every_answer_has_the_headers_and_no_page_has_inline_code(operator_client):
    create_and_add("m", MessageWindow(2), [UserMessage("hi")])
    answers = {path: operator_client.get(path) for path in [*PAGES.values(), *WITHOUT_A_NAME]}
    answers |= {path: operator_client.post(path, body) for path, body in POSTS.values()}
    for path, answer in answers.items():
        assert set(answer["Content-Security-Policy"].split("; ")) == POLICY, path
        assert answer["X-Frame-Options"] == "DENY"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Referrer-Policy"] == "same-origin"
        assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
        assert "camera=()" in answer["Permissions-Policy"]
        assert "no-store" in answer["Cache-Control"], path
    pages = {path: a for path, a in answers.items() if a["Content-Type"].startswith("text/html")}
    assert len(pages) > 10
    for path, page in pages.items():
        assert not re.search(r"<script(?![^>]*\bsrc=)", page.text), path
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=", page.text), path


@pytest.mark.parametrize("name", [each.name for each in urlpatterns])
def test_no_form_is_taken_without_its_token(operator_client, name):
    (pattern,) = (each.pattern for each in urlpatterns if each.name == name)
    path = reverse(f"inspector:{name}", kwargs={each: VALUES[each] for each in pattern.converters})
    elsewhere = Client(enforce_csrf_checks=True)
    elsewhere.cookies = operator_client.cookies
    assert elsewhere.post(path).status_code in (403, 405)


def test_pages_are_compressed_to_another_size_each_time(operator_client):
    """The size of a response does not confirm a guess of text beside a secret."""
    demo.load()
    packed = [operator_client.get("/", headers={"Accept-Encoding": "gzip"}) for _ in range(12)]
    plain = operator_client.get("/")
    assert "Content-Encoding" not in plain
    assert packed[0]["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed[0]["Vary"]
    assert len(packed[0].content) < len(plain.content) / 3
    assert b"order-7741" in gzip.decompress(packed[0].content)
    assert len({len(page.content) for page in packed}) > 1


def test_an_event_is_not_compressed(operator_client, memory_id):
    response = operator_client.get(f"/c/{memory_id}/live/", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in response
    assert b"event: step" in response.content
