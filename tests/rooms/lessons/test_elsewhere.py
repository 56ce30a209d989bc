"""Lessons in frames of other sites, and in files without a site."""

from __future__ import annotations

import re

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.test import Client

from inspector.conf import inspector_configuration
from inspector.rooms.lessons.catalogue import catalogue
from inspector.rooms.lessons.file import lesson_file

SCHOOL = "https://school.example"
FRAME = {"Sec-Fetch-Dest": "iframe"}
LESSON = "/learn/message-window/"


@pytest.fixture
def embedded(settings):
    settings.INSPECTOR = {**settings.INSPECTOR, "EMBED": [SCHOOL]}


def framed_by(response) -> tuple[str, str | None]:
    """Who may frame a page: by its policy, and by the older header."""
    (named,) = re.findall(r"frame-ancestors ([^;]+)", response["Content-Security-Policy"])
    return named, response.headers.get("X-Frame-Options")


@pytest.mark.parametrize("path", ["/learn/", LESSON, f"{LESSON}?step=2"])
def test_a_site_that_is_named_may_show_lessons_in_its_pages(embedded, path):
    response = Client().get(path, headers=FRAME)
    assert framed_by(response) == (SCHOOL, None)
    assert "Sec-Fetch-Dest" in response["Vary"]
    assert not response.cookies


@pytest.mark.parametrize("path", [LESSON, "/learn/?embed"])
def test_no_site_is_named_by_default(path):
    assert framed_by(Client().get(path, headers=FRAME)) == ("'none'", "DENY")


@pytest.mark.parametrize(
    "path", ["/learn/playground/?embed", "/sign-in/?embed", f"{LESSON}present/"]
)
def test_other_pages_are_never_framed(embedded, path):
    assert framed_by(Client().get(path, headers=FRAME)) == ("'none'", "DENY")


def test_a_frame_has_no_menu_and_leads_to_lessons_only(embedded):
    for path in ("/learn/?embed", f"{LESSON}?embed", f"{LESSON}?step=1&leaves=1&check=1&embed"):
        page = Client().get(path).text
        led = set(re.findall(r'<(?:a|form)[^>]* (?:href|action)="([^"#]+)', page))
        assert led
        assert all(re.match(r"/learn/([\w-]+/)?($|\?)", each) for each in led), led
        assert all("embed=" in each for each in led if not each.endswith("/")), led
        assert "playground" not in page
        assert "csrf" not in page


def test_the_address_has_the_progress(embedded):
    answered = Client().get(f"{LESSON}?step=1&leaves=1&check=1&embed=tool-calls:2")
    assert "embed=tool-calls%3A2+message-window%3A1" in answered.text
    assert not answered.cookies
    whole = " ".join(f"{slug}:12" for slug in catalogue().lessons)
    assert Client().get("/learn/", {"embed": whole}).text.count('class="is-done"') == 10


def test_a_page_of_the_site_is_as_it_was(embedded):
    page = Client().get(f"{LESSON}?step=1&leaves=1&check=1")
    assert framed_by(page) == ("'none'", "DENY")
    assert page.cookies
    assert f'href="{LESSON}present/"' in page.text


@pytest.mark.parametrize("named", ["https://school.example", ["school.example"], ["https://a/b"]])
def test_a_site_is_named_by_its_origin(settings, named):
    settings.INSPECTOR = {"EMBED": named}
    with pytest.raises(ImproperlyConfigured, match=r"EMBED.*list of origins"):
        inspector_configuration()


@pytest.mark.parametrize("slug", catalogue().lessons)
def test_a_file_has_a_page_for_each_step_and_answer(slug):
    staged = catalogue().lessons[slug]
    text = lesson_file(staged)
    pages = set(re.findall(r'<template id="(step-[\w-]+)"', text))
    for moment in staged.moments:
        assert f"step-{moment.number}" in pages
        values = moment.question.limits or range(1, len(moment.question.choices) + 1)
        assert {f"step-{moment.number}-{value}" for value in values} <= pages
    led = set(re.findall(r'href="(?:#(step-[\w-]+))"', text))
    assert led <= pages
    assert not re.findall(r'(?:href|src|action)="[^#"]', text)
    assert set(re.findall(r"https?://[^\s\"<]*", text)) <= {"http://www.w3.org/2000/svg"}


def test_the_command_writes_a_lesson_of_ones_own_and_overwrites_nothing(tmp_path, capsys):
    own = tmp_path / "1-parcel.toml"
    own.write_text(
        'title = "Parcel"\nlead = "l"\nremember = "r"\nscript = "user: P-77"\n'
        '[policy]\nkind = "message_window"\nmax_messages = 2\n[[step]]\ntext = "t"\nsaid = 1\n'
    )
    file = tmp_path / "parcel.html"
    call_command("lesson", str(own), "--html", "--output", str(file))
    assert "<title>Parcel</title>" in file.read_text("utf-8")
    with pytest.raises(CommandError, match="File exists"):
        call_command("lesson", "tool-calls", "--html", "--output", str(file))
    own.write_text("title = 1")
    with pytest.raises(CommandError, match=r"parcel[.]toml, line 1: step: is missing"):
        call_command("lesson", str(own), "--html")
    with pytest.raises(CommandError, match=r"no lesson has the name 'nothing'.*tool-calls"):
        call_command("lesson", "nothing", "--html")
