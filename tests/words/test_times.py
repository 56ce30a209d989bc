"""Pages write a time in one way: by `written` of inspector/shell/times.py."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

import pytest
from django.utils import timezone

from inspector.shell.times import written
from tests.words.test_replaced import ROOT

_IN_PYTHON = re.compile(r"\b(?:strftime|date_format|dateformat)\b|[^?(]:%-?[a-zA-Z]")
_IN_TEMPLATES = re.compile(r"\|(?:date|time|naturaltime|naturalday)\b(?::\"([^\"]*)\")?")
FOR_MACHINES = ("c", r"Y-m-d\TH:i:s")  # the attribute of <time>, and the value of a field
# A log, an id, a key of a cache, the value of a filter in an address: to be sorted, not to be read
SORTED = {
    "inspector/shell/times.py",
    "inspector/shell/logs.py",
    "inspector/shell/chosen.py",
    "inspector/overview/causes.py",
    "inspector/rooms/calls/agents.py",
    "inspector/rooms/calls/belonging.py",
    "inspector/rooms/hours/filters.py",
    "inspector/rooms/hours/strip.py",
}


def test_no_other_place_makes_words_of_a_time():
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sorted((ROOT / "inspector").rglob("*.py"))
        if path.relative_to(ROOT).as_posix() not in SORTED and "migrations" not in path.parts
        for line in path.read_text("utf-8").splitlines()
        if _IN_PYTHON.search(line)
    ]
    assert found == []


def test_templates_write_a_time_by_the_same_function():
    found = [
        f"{path.relative_to(ROOT)}: {hit[0]}"
        for path in sorted((ROOT / "templates").rglob("*.html"))
        for hit in _IN_TEMPLATES.finditer(path.read_text("utf-8"))
        if hit[1] not in FOR_MACHINES
    ]
    assert found == []


@pytest.mark.parametrize(
    ("forms", "words"),
    [
        (["day", "minute"], "3 Feb, 07:06"),
        (["weekday"], "Tue 3 Feb"),
        (["date", "second"], "3 Feb 2026, 07:06:09"),
        (["long date"], "3 February 2026"),
    ],
)
def test_a_time_is_written_as_people_write_it(forms, words):
    at = datetime(2026, 2, 3, 6, 6, 9, tzinfo=UTC)
    with timezone.override("Europe/Berlin"):
        assert written(at, *forms) == words


def test_a_date_has_no_zone():
    assert written(date(2026, 2, 3), "day") == "3 Feb"
