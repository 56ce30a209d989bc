"""`chatmemory`, the command, and what its commands print. tests/test_wheel.py runs it installed."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command, get_commands

import chatmemory
from chatmemory import MessageWindow, UserMessage, services
from chatmemory.core.messages import AiMessage
from chatmemory.models import Memory, Step
from inspector import command

from .conversations import create_and_add, users
from .formats.test_sessions import Claude

OPERATIONS = Path(__file__).parents[1] / "docs/operations.md"


@pytest.fixture
def typed(monkeypatch, capsys):
    """Types a command; returns its exit code, its output and its errors."""

    def typed(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["/usr/bin/chatmemory", *arguments])
        code = 0
        try:
            command.main()
        except SystemExit as ended:
            code = ended.code
        return code, *capsys.readouterr()

    return typed


def printed(capsys, *arguments: str) -> str:
    call_command(*arguments)
    return capsys.readouterr().out


def code_of(*arguments: str) -> int:
    with pytest.raises(CommandError) as error:
        call_command(*arguments)
    return error.value.returncode


def test_each_name_is_a_command_of_manage_py(typed):
    assert {each.command for each in command.COMMANDS.values()} <= get_commands().keys()
    code, told, _ = typed()
    assert code == 0
    for name, each in command.COMMANDS.items():
        assert re.search(rf"(?m)^  {name} +{each.words}$", told)
        assert re.search(rf"(?m)^\| .*`chatmemory {name}\b", OPERATIONS.read_text("utf-8"))
    assert typed("help")[1] == typed("--help")[1] == told
    assert typed("--version") == (0, f"{chatmemory.__version__}\n", "")


def test_a_command_has_its_own_name_in_its_usage(typed):
    code, told, _ = typed("import", "--help")
    assert code == 0
    assert told.startswith("usage: chatmemory import [-h]")
    assert "--settings" not in told


def test_an_unknown_name_exits_with_2(typed):
    told = "chatmemory has no command 'nonsense': see chatmemory --help\n"
    assert typed("nonsense") == (2, "", told)
    assert typed("import")[0] == 2


def test_sessions_are_measured_without_a_database(typed, tmp_path):
    """These tests have none."""
    claude = Claude()
    claude.user("1", "Fix ENT-1182.")
    claude.compact("2", "A fix is wanted.", "1")
    claude.ai("3", "m", "ENT-1182 is fixed.")
    file = tmp_path / "session.jsonl"
    file.write_text("\n".join(map(json.dumps, claude.records)))
    code, told, _ = typed("compactions", str(file), "--json")
    assert code == 0
    assert json.loads(told.splitlines()[-1])["total"]["needed"] == 1
    assert typed("compactions", "nowhere.jsonl")[0] == 2


# Exit codes: 1 is what was found, 2 what cannot be asked.


@pytest.mark.parametrize(
    "arguments",
    [
        ["show_memory", "nobody"],
        ["verify_memories", "nobody"],
        ["verify_memories", "--heads", "nowhere"],
        ["export_conversations", "nobody"],
        ["export_conversations"],
        ["import_transcripts", "nowhere"],
        ["incidents", "--stored", "--policy", "message_window:2"],
        ["recall", "--policies", "many"],
    ],
)
def test_what_cannot_be_asked_exits_with_2(db, arguments):
    assert code_of(*arguments) == 2


def test_a_contradiction_exits_with_1_and_is_told_as_json(db, capsys):
    create_and_add("a", MessageWindow(2), users("x", "y"))
    assert json.loads(printed(capsys, "verify_memories", "--json")) == {
        "verified": 1,
        "contradictions": [],
    }
    Step.objects.filter(n=2).update(tokens_after=999)
    assert code_of("verify_memories", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    (row,) = told["contradictions"]
    assert row["conversation"] == "a"
    assert "999" in row["what"]


def test_what_is_exported_and_imported_is_told_as_json(db, capsys, tmp_path):
    create_and_add("a", MessageWindow(2), users("x", "y"))
    file = str(tmp_path / "a.jsonl")
    told = json.loads(printed(capsys, "export_conversations", "a", "--output", file, "--json"))
    assert told == {"file": file, "conversations": 1}
    Memory.objects.all().delete()
    told = json.loads(printed(capsys, "import_transcripts", file, "--json"))
    assert told == {
        "file": file,
        "format": "chatmemory",
        "conversations": 1,
        "messages": 2,
        "already": 0,
        "refused_count": 0,
        "refused": [],
        "lost": [],
    }


# History beside memory in the terminal


def rows(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.startswith((" #", "#"))]


def test_history_stands_beside_memory_at_a_step(db, capsys):
    create_and_add("a", MessageWindow(2), [*users("one", "two"), AiMessage("three")])
    told = printed(capsys, "show_memory", "a")
    assert told.splitlines()[0].startswith("a, step 3. AI message #3 arrived")
    assert rows(told) == [
        "#1 User one ○ left at step 3: capacity",
        "#2 User two ● 5 tokens",
        "#3 AI three ● 5 tokens",
    ]
    assert told.splitlines()[-1] == "In memory: 2 of 2 messages, 10 tokens. In history: 3 messages."
    then = printed(capsys, "show_memory", "a", "--at", "2")
    assert rows(then) == ["#1 User one ● 5 tokens", "#2 User two ● 5 tokens"]
    earlier = printed(capsys, "show_memory", "a", "--at", "2", "--last", "1")
    assert "1 earlier message not shown, 1 in memory" in earlier
    assert rows(earlier) == ["#2 User two ● 5 tokens"]


def test_a_summary_stands_where_it_stands_in_memory(db, capsys):
    create_and_add("a", MessageWindow(9), users("one", "two", "three"))
    services.compact("a", "so far", covering=[1, 2])
    assert rows(printed(capsys, "show_memory", "a")) == [
        "#1 User one ○ left at step 4: summarised",
        "#2 User two ○ left at step 4: summarised",
        "#4 Summary so far ● 6 tokens, stands for 2 messages",
        "#3 User three ● 5 tokens",
    ]


def test_the_same_as_json(db, capsys):
    create_and_add("a", MessageWindow(2), users("one", "two", "three"))
    told = json.loads(printed(capsys, "show_memory", "a", "--last", "1", "--json"))
    assert (told["id"], told["step"], told["seqs"], told["earlier"]) == ("a", 3, [2, 3], 2)
    assert [(row["seq"], row["text"]) for row in told["history"]] == [(3, "three")]


def test_no_text_is_a_command_for_the_terminal(db, capsys):
    create_and_add("a", MessageWindow(2), [UserMessage("\x1b[31mred\x07[bold]\n\u202ereversed")])
    (row,) = rows(printed(capsys, "show_memory", "a"))
    assert row.startswith("#1 User [31mred [bold] reversed ●")
