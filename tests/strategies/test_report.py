"""`chatmemory strategies`, with what is installed here."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

from chatmemory import MessageWindow, services
from chatmemory.formats import render_messages
from chatmemory.strategies import STRATEGIES, catalog
from inspector import command
from tests.strategies.talks import chat

OURS = "message_window,token_window,token_window_in_blocks"


@pytest.fixture
def typed(monkeypatch, capsys):
    """Runs `chatmemory strategies` with these words, and returns its exit code and its output."""

    def typed(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["chatmemory", "strategies", *arguments])
        code = 0
        try:
            command.main()
        except SystemExit as ended:
            code = ended.code
        return code, *capsys.readouterr()

    return typed


@pytest.fixture
def chats(tmp_path):
    file = tmp_path / "chats.json"
    file.write_text(
        json.dumps(render_messages(chat(30, "My order is A-1182."), "openai_chat").value)
    )
    return str(file)


def test_a_row_for_each_strategy(typed, chats):
    code, told, _ = typed(chats, "--json", "--input", "1", "--cached", "0.1", "--strategies", OURS)
    assert code == 0
    *rows, total = map(json.loads, told.splitlines())
    assert [each["strategy"] for each in rows] == OURS.split(",")
    assert {each["conversations"] for each in rows} == {1}
    assert rows[0]["relative_cost"] > 1  # it slides, and nothing is read from the cache
    assert rows[1]["relative_cost"] == 1
    assert total["total"]["messages"] == 20
    assert total["total"]["summaries"] == "nothing"


def test_what_is_not_installed_says_how_it_is(typed, chats, monkeypatch):
    (one,) = (each for each in STRATEGIES if each.name == "google_adk")
    missing = replace(one, package="no-such-framework")
    monkeypatch.setattr(catalog, "STRATEGIES", (STRATEGIES[0], missing))
    code, told, _ = typed(chats)
    assert code == 0
    assert "google_adk" in told
    assert "not installed: pip install 'no-such-framework'" in told
    assert "500 words without any fact" in told
    *rows, _ = map(json.loads, typed(chats, "--json")[1].splitlines())
    assert rows[1] == {
        "strategy": "google_adk",
        "package": "no-such-framework",
        "installed": False,
        "install": "pip install 'no-such-framework'",
    }


def last_two(messages):
    return messages[-2:]


def test_a_function_of_an_entry_point_is_a_strategy(typed, chats, monkeypatch):
    entry = EntryPoint("last_two", f"{__name__}:last_two", catalog.GROUP)
    registry = catalog.Registry(catalog.GROUP, {}, callable)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])
    monkeypatch.setattr(catalog, "functions", registry)
    code, told, _ = typed(chats, "--strategies", "last_two,message_window", "--json")
    assert code == 0
    first = json.loads(told.splitlines()[0])
    assert (first["strategy"], first["package"]) == ("last_two", None)
    assert first["prompt_tokens"] < json.loads(told.splitlines()[1])["prompt_tokens"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--strategies", "nonsense"), "no strategy is called 'nonsense'"),
        (("--tokens", "0"), "--tokens must be 1 or more"),
        (("--label", "a"), "name files, or stored conversations"),
    ],
)
def test_wrong_arguments_exit_with_2(typed, chats, arguments, why):
    code, _, error = typed(chats, *arguments)
    assert code == 2
    assert why in error


@pytest.mark.needs("lab")
def test_stored_conversations_are_measured_too(committing, typed):
    services.import_conversation("stored-1", chat(20), MessageWindow(4))
    code, told, _ = typed("--prefix", "stored", "--strategies", "message_window", "--json")
    assert code == 0
    assert json.loads(told.splitlines()[0])["conversations"] == 1
    assert typed("--prefix", "other")[0] == 2
