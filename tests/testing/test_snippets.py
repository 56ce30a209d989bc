"""*Copy as test*: what pages offer is a test that fails with the sentence of the page."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import textwrap
from html import unescape
from pathlib import Path

import pytest
from django.core.management import call_command

from chatmemory import MessageWindow, TokenWindow, UserMessage, services
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.testing.snippets import as_test, holds
from inspector import command
from inspector.rooms.doctor.choosing import choose_providers

from .test_plugin import ROOT, run_pytest

DOCS = (ROOT / "docs/testing.md").read_text("utf-8")
PLACES = [
    ("at=47", "order_7741_keeps_a_1182"),
    ("at=45&find=A-1182", "order_7741_remembers_a_1182"),
    ("at=43&msg=25", "order_7741_costs_no_more_than_everything"),
    ("open=providers", "order_7741_is_accepted"),
]


def fenced(language: str) -> list[str]:
    """The blocks of the page in a language, including blocks in lists."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", DOCS, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(text) for _, text in found]


@pytest.fixture
def order(demo_conversations_of_the_module, db):
    choose_providers("", ["bedrock"])


def copied(client, query: str) -> dict[str, str]:
    """The tests that a page offers, by name."""
    html = client.get(f"/c/order-7741/?{query}").text
    found = re.findall(r'aria-label="Test">(.*?)</textarea>', html, re.DOTALL)
    return {re.search(r"def test_(\w+)", unescape(each))[1]: unescape(each) for each in found}


def export(folder: Path, test: str) -> None:
    """Run the command in the first line of a test, in a folder."""
    name, *arguments = shlex.split(test.splitlines()[0].removeprefix("# chatmemory "))
    arguments[-1] = str(folder / arguments[-1])
    (folder / "runs").mkdir(exist_ok=True)
    call_command(command.COMMANDS[name].command, *arguments)


@pytest.mark.needs("lab", "simulation", "doctor")
def test_each_place_offers_a_test_that_fails(order, operator_client, tmp_path):
    found = {name: copied(operator_client, query)[name] for query, name in PLACES}
    export(tmp_path, found["order_7741_is_accepted"])
    (tmp_path / "test_copied.py").write_text("\n\n".join(found.values()))
    told = run_pytest(tmp_path)
    assert "4 failed" in told
    for sentence in (
        "memory after step 46 does not hold “A-1182”: said in #25, left memory at step 43; ",
        "memory after step 45 does not hold “A-1182”: said in #25, left memory at step 43; ",
        "Bedrock Converse, refused: The first message after the system message, ",
        "prompts cost 1.43 times as much as sending everything",
    ):
        assert sentence in told


def test_where_no_test_can_be_copied(order, operator_client):
    for query in ("find=never-said", "find=A-1182&limit=902&at=45"):
        assert not [name for name in copied(operator_client, query) if "remembers" in name]
    services.create("free", None)  # the client decides, so nothing can be replayed
    DjangoChatMemoryStore().update_messages("free", [UserMessage("A-1182")])
    assert "Copy as test" not in operator_client.get("/c/free/?find=A-1182&open=providers").text


@pytest.mark.needs("phrase", "simulation", "doctor", "lab")
def test_the_page_about_tests_runs_as_it_says(
    order, operator_client, tmp_path, monkeypatch, capsys
):
    (test,) = [each for each in fenced("python") if "(chatmemory)" in each]
    assert test == copied(operator_client, "at=47")["order_7741_keeps_a_1182"]
    export(tmp_path, test)
    (tmp_path / "test_memory.py").write_text(test)
    other = re.search(r'such as `(policy="[^"]*")`', DOCS)[1]
    (tmp_path / "test_other.py").write_text(re.sub(r'policy="[^"]*"', other, test))
    told = run_pytest(tmp_path)
    assert fenced("text")[0] in told
    assert "1 failed, 1 passed" in told
    monkeypatch.chdir(tmp_path)
    checks = re.findall(r"^(?: *- run: )?(chatmemory check .*)$", DOCS, re.MULTILINE)
    assert len(checks) == 2
    for line in checks:
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as ended:
            command.main()
        assert ended.value.code == 0, capsys.readouterr()


HARD = ["a'b", 'q"\\', "ü\n#", "-x", "../../etc/passwd", "$(touch x)", "\u2028"]


@pytest.mark.parametrize("id", HARD)
def test_hard_names_stay_texts(id, tmp_path):
    """Nothing of an id or a phrase becomes code, an option, a command or another folder."""
    test = as_test(id, MessageWindow(3), f"keeps {id}", [holds(id, 3)], why=id)
    names: dict[str, object] = {}
    exec(compile(test, "test", "exec"), names)
    assert len([name for name in names if name.startswith("test_")]) == 1
    assert f"assert_holds({id!r}" in test or id in eval(re.search(r"holds\((.*), at", test)[1])
    line = test.splitlines()[0].removeprefix("# chatmemory export ")
    shown = f'for each in {line.partition(" --format")[0]}; do printf %s "$each"; done'
    ran = subprocess.run(["sh", "-c", shown], cwd=tmp_path, capture_output=True, text=True)
    assert ran.stdout == " ".join(id.split("\n")).replace("\u2028", " ")
    assert not list(tmp_path.iterdir())
    assert re.search(r'transcript\("runs/[\w-]+\.json", policy="message_window:3"\)', test)


def test_the_policy_is_written_as_it_is_read():
    policy = TokenWindow(800, low_water="0.5", snap_to_user=True)
    assert 'policy="token_window:800,low_water=0.5,snap_to_user' in as_test("a", policy, "b", [])
