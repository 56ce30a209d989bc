"""A teacher's own lessons: a file in a folder, and the findings of a check in a bad one."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.test import Client

from inspector.rooms.lessons.catalogue import catalogue
from inspector.rooms.lessons.lesson import CLAIMS, OF_ASK, PAGES, QUESTION, STEP
from inspector.rooms.lessons.words import FACTS

DOCS = (Path(__file__).parents[3] / "docs/lessons.md").read_text("utf-8")
(EXAMPLE,) = re.findall(r"```toml\n(.*?)```", DOCS, re.DOTALL)
GOOD = f'{EXAMPLE}\n[[practice]]\ntext = "Play"\npage = "playground"\n'
LEAD = "Ada waits for a parcel, and asks a bot about it."

# What is wrong: what is replaced, by what; the line, the field, and a part of the reason.
BAD = {
    "no TOML": ('lead = "Ada', "lead = Ada", 2, "", "not valid TOML"),
    "missing": (f'lead = "{LEAD}"\n', "", 1, "lead", "is missing"),
    "blank": (LEAD, "  ", 2, "lead", "is empty"),
    "another type": (f'"{LEAD}"', "7", 2, "lead", "must be a text"),
    "unknown field": ("lead =", 'led = "x"\nlead =', 2, "led", "this field does not exist here"),
    "a script without roles": (
        "user: My parcel",
        "My parcel",
        4,
        "script",
        "the first line must begin with",
    ),
    "too long": (
        "user: My",
        "user: a\n" * 61 + "user: My",
        4,
        "script",
        "1 to 60 messages",
    ),
    "unknown policy": ("message_window", "day_window", 10, "policy", "policy kind must be"),
    "a limit of nothing": ("max_messages = 2", "max_messages = 0", 10, "policy", "greater than"),
    "more than was said": ("said = 2", "said = 9", 15, "step 1, said", "the script has 3"),
    "nothing arrives": ("said = 2", "said = 3", 17, "step 1, ask", "the script has 3"),
    "unknown question": ('"leaves"', '"guess"', 17, "step 1, ask", "must be leaves, choose"),
    "unknown fact": (
        "{leaving} was",
        "{left_by} was",
        20,
        "step 1, why",
        "placeholder {left_by} is unknown",
    ),
    "a message too late": ("#1?", "#4?", 35, "step 3, question", "message #4 has not been said"),
    "no ask": ('ask = "leaves"\n', "", 17, "step 1, question", "needs the field ask"),
    "another question's": (
        "keep = 1",
        "keep = 1\nchoice = []",
        38,
        "step 3, choice",
        "does not exist here",
    ),
    "keeps nobody": ("keep = 1", "keep = 0", 37, "step 3, keep", "a whole number from 1"),
    "too many limits": (
        "[2, 3, 4]",
        "[2, 3, 4, 5, 6, 7, 8, 9, 10]",
        38,
        "step 3, limits",
        "at most 8 entries, but has 9",
    ),
    "no claim": (
        'remembers = "P-77"',
        "",
        27,
        "step 2, choice 1, text",
        "must have exactly one of the fields",
    ),
    "two are right": (
        'remembers = "P-77"',
        "held = 2",
        26,
        "step 2, choice",
        "but 2 choices are right",
    ),
    "another claim": (
        "remembers =",
        "knows =",
        28,
        "step 2, choice 1, knows",
        "this field does not exist here",
    ),
    "no limit keeps it": ("[2, 3, 4]", "[2]", 38, "step 3, limits", "no limit in this list keeps"),
    "limits of words": ("[2, 3, 4]", '["2"]', 38, "step 3, limits", "whole numbers"),
    "no summary yet": (
        'ask = "leaves"\n',
        'ask = "leaves"\nappend_terms = 9\n',
        18,
        "step 1, append_terms",
        "needs a step before this step that makes a summary",
    ),
    "a summary of nothing": (
        'ask = "leaves"\n',
        'ask = "leaves"\nsummary = "."\nkeep_last = 2\n',
        18,
        "step 1, summary",
        "must replace at least two messages",
    ),
    "a limit that an option contradicts": (
        "max_messages = 2\n\n[[step]]\n",
        "max_messages = 2\nlow_water = 0.5\n\n[[step]]\nlimit = 1\n",
        16,
        "step 1, limit",
        "do not go together",
    ),
    "limits that an option contradicts": (
        "max_messages = 2",
        "max_messages = 4\nlow_water = 0.3",
        39,
        "step 3, limits",
        "do not go together",
    ),
    "a vast number": ("said = 2", f"said = {'9' * 5000}", 1, "", "not valid TOML"),
    "unknown page": ('"playground"', '"moon"', 42, "practice 1, page", "must be conversation"),
}


@pytest.fixture
def folder(tmp_path, settings):
    settings.INSPECTOR = {"LESSONS": str(tmp_path), "WHOLE_SITE": True}
    return tmp_path


def check_messages() -> list[str]:
    return [str(each) for each in run_checks(tags=["lessons"])]


def test_the_docs_name_every_field_fact_and_claim():
    for name in (*STEP, *QUESTION, *sum(OF_ASK.values(), ()), *CLAIMS, *PAGES):
        assert f"`{name}`" in DOCS or f"`{name} =" in DOCS or name == "choice"
    for fact in FACTS:
        assert f"`{{{fact}}}`" in DOCS


def test_a_file_is_a_lesson_at_once_and_read_again_when_it_changes(folder):
    assert Client().get("/learn/our-shop/").status_code == 404
    file = folder / "9-our-shop.toml"
    file.write_text(GOOD.replace(LEAD, "<b onclick=x>&amp;"))
    assert check_messages() == []
    assert list(catalogue().lessons)[-1] == "our-shop"
    page = Client().get("/learn/our-shop/?leaves=1&check=1").content.decode()
    assert "Lesson 11 of 11" in page
    assert "Right." in page
    assert "&lt;b onclick=x&gt;&amp;amp;" in page, "what a teacher writes is text"
    assert "Right." in Client().get("/learn/our-shop/?step=3&answer=3").content.decode()
    file.write_text(GOOD.replace("for the parcel again?", "for it again?"))
    os.utime(file, ns=(1, 1))
    assert "Why does it ask for it again?" in Client().get("/learn/").content.decode()


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_file_is_refused_with_its_line_and_field(folder, fault):
    old, new, line, field, why = BAD[fault]
    assert old in GOOD
    file = folder / "bad.toml"
    file.write_text(GOOD.replace(old, new, 1))
    (message,) = check_messages()
    assert f"{file}, line {line}: {field}{': ' if field else ''}" in message
    assert why in message
    assert Client().get("/learn/bad/").status_code == 404
    assert len(catalogue().lessons) == 10


def test_operators_see_the_mistakes_of_a_file_that_became_bad(folder, operator_client):
    (folder / "our-shop.toml").write_text(GOOD.replace('"leaves"', '"guess"'))
    fault = f"Lesson left out: {folder}/our-shop.toml, line 17: step 1, ask: must be leaves, choose"
    for path in ("/learn/", "/learn/our-shop/", "/learn/our-shop/present/"):
        assert fault in operator_client.get(path).text, path
        assert "our-shop.toml" not in Client().get(path).text, path


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("tool-calls.toml", GOOD.encode(), "the name 'tool-calls' is already taken"),
        ("playground.toml", GOOD.encode(), "the name 'playground' is already taken"),
        ("über uns.toml", GOOD.encode(), "only letters, digits, - and _"),
        (
            "latin.toml",
            GOOD.replace("Ada", "Adä").encode("cp1252"),
            "line 2: this line is not valid UTF-8",
        ),
        ("long.toml", b"#" * 100_001, "at most 100,000"),
        ("deep.toml", f"x = {'[' * 40_000}{']' * 40_000}".encode(), "not valid TOML"),
    ],
)
def test_a_file_that_cannot_be_a_lesson_is_refused(folder, name, content, why):
    (folder / name).write_bytes(content)
    (message,) = check_messages()
    assert why in message


def test_a_folder_that_does_not_exist_is_refused(settings, tmp_path):
    settings.INSPECTOR = {"LESSONS": str(tmp_path / "nowhere"), "WHOLE_SITE": True}
    (message,) = check_messages()
    assert "which is not a folder" in message
    assert Client().get("/learn/").status_code == 200
