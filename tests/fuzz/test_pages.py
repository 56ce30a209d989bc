"""Any URL or form gets a page, a refusal or a 404, and the ledger stays valid."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import AiMessage, UserMessage, policy_kinds
from chatmemory.formats import FORMATS
from chatmemory.ledger.verification import verify
from chatmemory.managers import CLIENT
from chatmemory.messages.codec import messages_to_json
from inspector import demo
from inspector.overview.selection import OWN_ORDERINGS, PARAMETERS

from .budget import search, settings_of

KNOWN = ["order-7741", "ferry-5120", "classroom", "lisbon-guide"]

odd = st.sampled_from(["", "x", "-1", "0", "9" * 18, "9" * 40, "1e3", "٣", "1.5", " 7 "])
numbers = st.integers(0, 70).map(str) | odd
words = st.one_of(
    st.sampled_from(["A-1182", "#26", "#999", "%", "_", "\0", "'", '"', "\\", "(", "user: a"]),
    st.text(max_size=20),
)
ids = st.sampled_from([*KNOWN, "nobody"])
names = st.sampled_from([*OWN_ORDERINGS, "user_repeated", *policy_kinds(), CLIENT, "1"]) | words
formats = st.sampled_from([*FORMATS, "auto"]) | words
wholes = st.sampled_from(["history", "window"]) | words
drafts = st.one_of(
    words,
    st.lists(
        st.builds(UserMessage, st.text(max_size=9)) | st.builds(AiMessage, words), max_size=3
    ).map(messages_to_json),
)
turns = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "system", "tool"]), "content": words}),
    max_size=3,
)
files = st.one_of(turns.map(json.dumps), words).map(str.encode) | st.binary(max_size=30)


def some(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    """Values for some of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


def to(path: str, method: str, **fields: st.SearchStrategy[object]):
    return st.tuples(st.just(method), ids.map(path.format), some(**fields))


composed = {
    "role": st.sampled_from(["user", "ai", "result", "system", "script"]) | words,
    "text": words,
    "limit": numbers,
    "drafts": drafts,
    "at": numbers,
    "new_id": ids | words,
}
moment = dict.fromkeys(["at", "msg", "before", "after", "with"], numbers)
policies = words | st.sampled_from(
    ["message_window:3", "token_window:99,low_water=0.6", "everything", "token_window:1e9"]
)
priced = dict.fromkeys(["input", "cached", "output"], numbers) | {"currency": words}
chosen = {
    "kind": st.sampled_from(["message_window", "token_window"]) | words,
    "options": words | st.sampled_from(["low_water=0.5", "snap_to_user=true", "oversized=reject"]),
    "label": words,
    "q": words,
    "prefix": names | words,
    "since": words | st.just("2026-01-31"),
    "sample": numbers,
    "seed": numbers,
    "estimator": words,
    "limit": numbers,
}
listed = dict.fromkeys([*PARAMETERS, "older", "newer"], names) | {"q": words}

requests = st.one_of(
    to("/", "get", **listed),
    to("/now/", "get", **listed, seen=numbers, id=ids),
    to("/c/{}/", "get", find=words, **moment),
    to("/sign-in/", "post", username=words, password=words, next=words),
    to("/theme/", "post", theme=words | st.just("dark"), next=words),
    to("/c/{}/redact/1/", "post"),
    to(
        "/c/{}/compare/",
        "get",
        policy=st.lists(policies, max_size=5),
        at=numbers,
        phrase=words,
        **{"as": st.sampled_from(["csv", "json"]) | words},
        **priced,
    ),
    to("/c/{}/adopt/", "post", policy=policies, confirmed=words),
    to("/lab/", "get", **chosen, **priced, **{"as": st.just("csv") | words}),
    to("/lab/", "post", **chosen, **priced),
    to("/lab/adopt/", "post", **chosen, confirmed=words),
    to("/c/{}/export/", "get", format=formats, what=wholes, at=numbers, download=words),
    to("/c/{}/simulate/", "post", **composed),
    to("/c/{}/add/", "post", **composed),
    to("/c/{}/branch/", "post", **composed),
    to(
        "/bulk/",
        "post",
        action=st.sampled_from(["export", "label", "delete"]) | words,
        id=st.lists(ids | words, max_size=3),
        label_as_text=words | st.just("a:b"),
        next=words,
    ),
    to(
        "/tokens/",
        "post",
        name=words,
        role=st.sampled_from(["viewer", "operator", "admin"]) | words,
        beginning=words,
        days=numbers,
    ),
    to(
        "/import/",
        "post",
        file=files.map(lambda content: SimpleUploadedFile("a.json", content)),
        format=formats,
        kind=st.sampled_from(["message_window", "token_window"]) | words,
        limit=numbers,
        begin=words,
    ),
)


@pytest.mark.django_db
def test_every_request_to_a_page_gets_a_valid_response(operator_client):
    demo.load()

    @settings_of(150)
    @given(requests, st.booleans())
    def ask(request, by_htmx):
        method, path, fields = request
        headers = {"hx-request": "true"} if by_htmx else {}
        answer = getattr(operator_client, method)(path, fields, headers=headers)
        assert answer.status_code in (200, 302, 400, 404, 422, 429)
        b"".join(answer)

    search(ask)
    assert [memory_id for memory_id in KNOWN if verify(memory_id)] == []
