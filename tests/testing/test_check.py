"""`chatmemory check`: its output, its exit codes, and JUnit XML."""

from __future__ import annotations

import json
import sys
from xml.etree import ElementTree

import pytest

from inspector import command

from .regressions import write


@pytest.fixture
def check(monkeypatch, capsys, tmp_path):
    """Types the command in a folder with runs; returns its exit code, output and errors."""
    write(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)

    def check(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["chatmemory", "check", *arguments])
        with pytest.raises(SystemExit) as ended:
            command.main()
        return ended.value.code, *capsys.readouterr()

    return check


def test_failures_are_printed_in_sentences_and_as_junit(check, tmp_path):
    code, told, _ = check("runs", "--policy", "message_window:3", "--junit", "found.xml")
    assert code == 1
    assert (
        "order: A-1182 had to be repeated by the user in #5; said in #1, left memory at step 4"
        in told
    )
    assert told.endswith("5 conversations; 1 of 5 checks failed\n")
    (suite,) = ElementTree.parse(tmp_path / "found.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("5", "1")
    failed = {case.get("classname"): case[0].text for case in suite if len(case)}
    assert failed.keys() == {"order"}
    assert "repeated: #5 “A-1182, as I said.”" in failed["order"]
    assert check("runs", "--policy", "message_window:9")[0] == 0


def test_each_check_can_be_asked_for(check):
    asked = ["--fail-on", "none", "--provider", "openai", "--cost", "0.9", "--summary", "0.5"]
    code, told, _ = check("runs", "--policy", "everything", *asked, "--level", "told", "--json")
    *rows, total = map(json.loads, told.splitlines())
    assert code == 1
    assert [(each["conversation"], each["check"]) for each in rows] == [
        ("dangling", "accepted by providers"),
        ("all conversations", "cost"),
        ("all conversations", "summaries"),
    ]
    assert total == {"total": {"conversations": 5, "checks": 7, "failed": 3}}


def test_figures_are_compared_with_a_baseline(check, tmp_path):
    asked = ["runs", "--fail-on", "none", "--baseline", "baseline.json"]
    code, _, errors = check(*asked, "--policy", "message_window:9")
    assert (code, errors) == (0, "added to the baseline baseline.json: runs message_window:9\n")
    entries = json.loads((tmp_path / "baseline.json").read_text())
    entries["runs message_window:3"] = entries["runs message_window:9"]
    (tmp_path / "baseline.json").write_text(json.dumps(entries))
    code, told, errors = check(*asked, "--policy", "message_window:3")
    assert (code, errors) == (1, "")
    assert "runs message_window:3: worse than the baseline\n  facts held: " in told
    assert "  incidents in which a user had to say something again: 0 → 1\n" in told
    assert "  better: tokens of all prompts: " in told
    assert check(*asked, "--policy", "message_window:9")[0] == 0


def test_mistakes_end_with_2_and_what_is_unread_with_3(check, tmp_path):
    (tmp_path / "runs/broken.json").write_text("{")
    code, _, errors = check("runs", "--policy", "everything")
    assert (code, errors.count("left out ")) == (3, 1)
    for arguments, sentence in (
        (["runs"], "name a --policy"),
        (["none", "--policy", "everything"], "No such file"),
        (["runs", "--policy", "x:1"], "x:1"),
        (["runs", "--policy", "everything", "--fail-on", "x"], "--fail-on: 'x' is none of"),
        (
            ["runs", "--policy", "everything", "--baseline", "runs/order.json"],
            "is not a baseline file",
        ),
        (["runs", "--policy", "everything", "--junit", "a/b.xml"], "a/b.xml: No such file"),
    ):
        code, _, errors = check(*arguments)
        assert (code, sentence in errors) == (2, True), errors
