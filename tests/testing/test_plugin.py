"""The plugin for pytest: a regression of each kind fails, with the sentence of the inspector."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from chatmemory.exceptions import InvalidValue
from chatmemory.testing.asserting import Runs, read_runs

from .regressions import write

ROOT = Path(__file__).parents[2]


@pytest.fixture
def runs(tmp_path) -> Path:
    write(tmp_path / "runs")
    return tmp_path / "runs"


def read(file: Path, policy: str | None) -> Runs:
    return Runs(file.name, read_runs([file], policy))


REGRESSIONS = [
    pytest.param(
        *("order", "message_window:3"),
        lambda run: run.assert_holds("a-1182", at=4),
        "memory after step 4 does not hold “a-1182”: said in #1, left memory at step 4; a limit of "
        "4 would have kept it\n  said: #1 “My order is A-1182.”\n  left: step 4, when #4 arrived\n"
        "  again: #5 “A-1182, as I said.”\norder.json, under message_window:3",
        id="forgotten",
    ),
    pytest.param(
        *("order", "message_window:3"),
        lambda run: run.assert_no_incident(kind="forced"),
        "A-1182 had to be repeated by the user in #5; said in #1, left memory at step 4; "
        "a limit of 4 would have kept it\n  said: #1 “My order is A-1182.”\n"
        "  left: step 4, when #4 arrived\n"
        "  asked for: #4 “What is your order number?”\n  repeated: #5 “A-1182, as I said.”",
        id="user_repeated",
    ),
    pytest.param(
        *("calls", "message_window:4"),
        lambda run: run.assert_no_incident(["call_repeated"]),
        "find was called again in #7, with the same result: ",
        id="call_repeated",
    ),
    pytest.param(
        *("dangling", "everything"),
        lambda run: run.assert_accepted_by("openai", "anthropic"),
        "prompt of #4, and 1 more: OpenAI, refused: Tool call #2 is not answered before #3.",
        id="refused",
    ),
    pytest.param(
        *("long", "token_window:1000"),
        lambda run: run.assert_cost(at_most=0.3, input="2.50", cached="0.25"),
        "times as much as sending everything, but at most 0.30 is allowed: ",
        id="cost",
    ),
    pytest.param(
        *("session", "everything"),
        lambda run: run.assert_summary_holds(level="told", share=0.5),
        "the summaries hold 0 of 2 told exact terms that were needed again, which is 0 %; 50 % are "
        "required",
        id="summary",
    ),
]


@pytest.mark.parametrize(("name", "policy", "ask", "sentence"), REGRESSIONS)
def test_a_regression_fails_with_its_sentence(runs, name, policy, ask, sentence):
    (file,) = runs.glob(f"{name}.*")
    with pytest.raises(AssertionError) as failed:
        ask(read(file, policy))
    assert sentence in str(failed.value)


def test_a_policy_that_keeps_it_passes(runs):
    run = read(runs / "order.json", "message_window:4")
    run.assert_holds("A-1182", at=4)
    run.assert_no_incident(kind=["forced", "user_repeated"])
    run.assert_accepted_by("openai", "anthropic")
    run.assert_cost(at_most=1.0)
    read(runs / "order.json", None).assert_no_incident()
    read(runs / "session.jsonl", None).assert_summary_holds(level="told", share=0)


@pytest.mark.parametrize(
    ("turns", "limit"),
    [(30, 6), (8, 9)],
)
def test_what_would_be_cheap_enough_is_named(tmp_path, turns, limit):
    file = tmp_path / "chat.json"
    texts = [f"Number {n} " + "and more words " * 40 for n in range(2 * turns)]
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)
    ]
    file.write_text(json.dumps({"messages": messages}))
    with pytest.raises(AssertionError) as failed:
        read(file, f"message_window:{limit}").assert_cost(at_most=1.0, input="10", cached="1")
    _, told, _ = str(failed.value).split("\n")
    assert re.match(r"  Cheapest limit: \d+ messages, .*: relative cost: 1\.\d\d → 0\.\d\d$", told)


MISTAKES = [
    (lambda run: run.assert_holds("A-1182", at=99), "the steps are 1 to 6"),
    (lambda run: run.assert_holds(" "), "must not be empty"),
    (lambda run: run.assert_no_incident(kind="x"), "'x' is none of user_repeated"),
    (lambda run: run.assert_accepted_by(), "name a provider: openai"),
    (lambda run: run.assert_accepted_by("x"), "unknown provider 'x'"),
    (lambda run: run.assert_cost(1.0, provider="x"), "the provider of a prompt cache must be"),
    (lambda run: run.assert_summary_holds(), "no compaction is recorded"),
    (lambda run: run.assert_summary_holds(level="x"), "the level 'x' is none of"),
]


@pytest.mark.parametrize(("ask", "sentence"), MISTAKES, ids=lambda each: str(each)[:20])
def test_a_mistake_is_named(runs, ask, sentence):
    with pytest.raises(InvalidValue, match=sentence.replace("(", r"\(")):
        ask(read(runs / "order.json", "message_window:3"))


def test_why_a_phrase_is_not_held(runs):
    run = read(runs / "order.json", "message_window:3,oversized=reject")
    for phrase, at, why in (
        ("B-7", None, "does not hold “B-7”: no message contains these words"),
        ("late", 2, "does not hold “late”: not said yet; the first message that says it is #3"),
    ):
        with pytest.raises(AssertionError, match=why):
            run.assert_holds(phrase, at=at)


@pytest.mark.long
def test_thousand_runs_say_the_same(runs):
    def failures() -> str:
        found = []
        for param in REGRESSIONS:
            name, policy, ask, _ = param.values
            (file,) = runs.glob(f"{name}.*")
            with pytest.raises(AssertionError) as failed:
                ask(read(file, policy))
            found.append(str(failed.value))
        return "\n".join(found)

    assert len({failures() for _ in range(1_000)}) == 1


TESTS = """
import sys

def test_forgotten(chatmemory):
    assert "django" not in sys.modules
    run = chatmemory.transcript("runs/order.json", policy="message_window:3")
    run.assert_holds("A-1182", at=4)

def test_kept(chatmemory):
    chatmemory.transcript("runs/order.json", policy="message_window:4").assert_holds("A-1182")

def test_all(chatmemory):
    runs = chatmemory.transcripts("runs", policy="message_window:{limit}")
    assert len(runs) == 5

def test_missing(chatmemory):
    chatmemory.transcript("runs/none.json")
"""


def run_pytest(folder: Path, *arguments: str) -> str:
    """Return the output of pytest for the tests of a folder, run in another process."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "pytest_chatmemory", "--rootdir", ".", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
    return ran.stdout + ran.stderr


def test_tests_of_a_project(runs, tmp_path):
    """Failures show the line of the test and the sentence; a baseline is written, then compared."""
    file = tmp_path / "test_bot.py"
    file.write_text(TESTS.replace("{limit}", "4"))
    told = run_pytest(tmp_path, "--chatmemory-baseline", "baseline.json")
    assert "2 failed, 2 passed" in told
    assert 'run.assert_holds("A-1182", at=4)\nE       AssertionError: memory after step 4' in told
    assert "asserting.py" not in told
    assert "runs/none.json: No such file" in told
    assert "chatmemory: 2 new in the baseline baseline.json" in told
    entries = json.loads((tmp_path / "baseline.json").read_text())
    assert entries.keys() == {"runs message_window:4", "runs/order.json message_window:4"}
    assert entries["runs message_window:4"]["conversations"] == 5

    entries["runs message_window:4"] |= {"held": 1_000, "prompt_tokens": 1_000_000}
    (tmp_path / "baseline.json").write_text(json.dumps(entries))
    told = run_pytest(tmp_path, "--chatmemory-baseline", "baseline.json", "-k", "all")
    assert "1 failed" in told
    assert "runs message_window:4: worse than the baseline" in told
    assert "facts held: 1,000 → " in told
    assert "better: tokens of all prompts: 1,000,000 → " in told


def test_the_plugin_costs_other_projects_nothing():
    """It is imported by each run of pytest: neither chatmemory nor Django comes with it."""
    code = "import sys, pytest; before = set(sys.modules); import pytest_chatmemory; print(*set("
    code += "sys.modules) - before)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ran.stdout.split() == ["pytest_chatmemory"], ran.stderr
