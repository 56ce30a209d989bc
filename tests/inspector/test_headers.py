"""Security headers on every route; a new route has to be added to the table."""

from __future__ import annotations

import re

import pytest

from chatmemory import UserMessage, services
from chatmemory.core.policies import MessageWindow
from inspector.urls import urlpatterns

PAGES = {
    "overview": "/",
    "overview-now": "/now/",
    "live-overview": "/live/",
    "bulk": None,
    "conversation": "/c/m/?at=1&msg=1&find=hi",
    "live": "/c/m/live/",
    "pin": None,
    "redact": None,
    "simulate": None,
    "add": None,
    "branch": None,
    "verdict": None,
    "compare": "/c/m/compare/?phrase=hi",
    "adopt": None,
    "settings": "/c/m/settings/",
    "change": None,
    "export": "/c/m/export/",
    "lab": "/lab/",
    "lab-of-file": "/lab/file/",
    "compare-file": "/lab/compare/",
    "adopt-for-many": None,
    "import": "/import/",
    "demo": None,
    "lessons": "/learn/",
    "lesson": "/learn/tool-calls/?step=2&leaves=3&check=1",
    "present": "/learn/tool-calls/present/?screen=4",
    "playground": "/learn/playground/?chat=damaged",
    "policies": "/policies/",
    "remove-policy": None,
    "tokens": "/tokens/",
    "revoke-token": None,
    "sign-in": "/sign-in/",
    "sign-in-by-link": "/sign-in/broken/",
    "sign-out": None,
    "theme": None,
    "display": None,
    "healthz": "/healthz",
    "readyz": "/readyz",
    "metrics": "/metrics",
}
OTHERS = ["/c/nobody/", "/nothing/", "/api/docs/", "/api/schema/", "/api/v1/memories/"]
POSTS = {
    "/c/m/simulate/": {"role": "user", "text": "what if"},
    "/bulk/": {"action": "delete", "id": "m"},
    "/import/": {},
    "/lab/adopt/": {"limit": "5"},
    "/lab/compare/": {"messages": '[{"type":"AI","text":"hi"}]'},
    "/c/m/verdict/": {"role": "user", "text": "what if"},
    "/c/m/add/": {"role": "robot"},
}
POLICY = {
    "default-src 'self'",
    "img-src 'self' data:",
    "object-src 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "form-action 'self'",
}


@pytest.fixture(autouse=True)
def _conversation(db):
    services.create("m", MessageWindow(2))
    services.add("m", [UserMessage("hi")])


@pytest.fixture
def answers(operator_client):
    got = {path: operator_client.get(path) for path in [*filter(None, PAGES.values()), *OTHERS]}
    return got | {path: operator_client.post(path, body) for path, body in POSTS.items()}


def test_every_route_is_in_the_table():
    assert {pattern.name for pattern in urlpatterns} == PAGES.keys()


def test_every_response_has_the_security_headers(answers):
    for path, answer in answers.items():
        directives = set(answer["Content-Security-Policy"].split("; "))
        assert directives == POLICY, path
        assert answer["X-Frame-Options"] == "DENY"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Referrer-Policy"] == "same-origin"
        assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
        assert "camera=()" in answer["Permissions-Policy"]


def test_no_page_has_inline_scripts_styles_or_handlers(answers):
    pages = {path: a for path, a in answers.items() if a["Content-Type"].startswith("text/html")}
    assert len(pages) > 10
    for path, page in pages.items():
        html = page.content.decode()
        assert not re.search(r"<script(?![^>]*\bsrc=)", html), path
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=", html), path
