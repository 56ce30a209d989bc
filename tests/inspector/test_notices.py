"""Error pages show the cause, and nothing about the server."""

from __future__ import annotations

import re

import pytest
from django.template.loader import render_to_string

from chatmemory import MessageWindow, services
from chatmemory.explain.wording import sentence

from .markup import said

NOTICES = {
    "errors/400.html": "Bad request",
    "errors/403.html": "Not allowed",
    "errors/404.html": "Page not found",
    "errors/405.html": "There is no page at this address",
    "errors/500.html": "Something went wrong",
    "errors/refused.html": "Nothing was changed",
    "errors/csrf.html": "This form is out of date",
    "accounts/link_used.html": "This link no longer works",
    "accounts/too_many_sign_ins.html": "Too many attempts",
}


def heading(html: str) -> str:
    return re.search(r"<h1[^>]*>\s*(.*?)\s*</h1>", html, re.DOTALL)[1]


@pytest.mark.parametrize(("template", "words"), NOTICES.items())
def test_an_error_page_has_the_cause_and_a_link(template, words):
    html = render_to_string(f"inspector/{template}")
    assert heading(html) == words
    assert re.search(r"<title>\s*\S.*· Memory inspector\s*</title>", html, re.DOTALL)
    assert 'class="btn"' in html


def test_an_unknown_url_reveals_nothing_about_the_server(client):
    html = client.get("/nothing/").content.decode()
    assert "There is no page at this address." in html
    assert "URLPattern" not in html


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ("max_messages must be a number", "max_messages must be a number."),
        ("messages[0] is null", "messages[0] is null."),
        ("the limit is 'small'!", "The limit is “small”!"),
    ],
)
def test_a_problem_is_a_sentence_that_leaves_names_as_they_are_written(problem, words):
    assert sentence(problem) == words


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/c/nobody/", "No conversation has the id “nobody”."),
        (f"/c/{'x' * 200}/", f"No conversation has the id “{'x' * 59}…”."),
        ("/c/here/?at=9", "“here” has no step 9, only step 0."),
        ("/c/here/?at=x", "“at” in the address must be a whole number."),
        ("/c/here/?msg=-1", "“msg” in the address must be a whole number."),
    ],
)
def test_a_page_that_is_not_found_says_why_in_a_sentence(operator_client, address, words):
    services.create("here", MessageWindow(3))
    assert words in said(operator_client.get(address), "main")
