"""The command `chatmemory` and the output of its commands; tests/test_wheel.py runs it installed.

Errors of the database and of the output are explained in a sentence.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pytest
from django.core.management import CommandError, call_command, get_commands
from django.db import connection

import chatmemory
from chatmemory import AiMessage, MessageWindow, UserMessage, services
from chatmemory.models import ApiToken, Memory, Step
from inspector import command

from . import processes
from .connecting import connected, connected_to
from .conversations import create_and_add, users
from .formats.test_sessions import Claude
from .serving import MANAGE, Served, free_port

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


def rows_and_total(told: str) -> tuple[list[dict[str, object]], dict[str, object]]:
    """The lines of --json, of which the last has the sums."""
    *rows, total = map(json.loads, told.splitlines())
    return rows, total.pop("total")


def code_of(*arguments: str) -> int:
    with pytest.raises(CommandError) as error:
        call_command(*arguments)
    return error.value.returncode


def test_each_name_is_a_command_of_manage_py(typed):
    assert {each.command for each in command.COMMANDS.values()} <= get_commands().keys()
    code, told, _ = typed()
    assert code == 0
    assert "  completion  " in told
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


def test_an_unknown_name_exits_with_2(db, typed):
    told = "chatmemory has no command 'nonsense': chatmemory --help lists the commands\n"
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
        ["recall", "--prefix", "\udcff"],  # a byte that is not UTF-8
    ],
)
def test_invalid_arguments_exit_with_2(db, arguments):
    assert code_of(*arguments) == 2


def test_a_contradiction_exits_with_1_and_is_printed_as_json(db, capsys):
    create_and_add("a", MessageWindow(2), users("x", "y"))
    assert rows_and_total(printed(capsys, "verify_memories", "--json")) == (
        [],
        {"verified": 1, "contradictions": 0, "made_anew": 0, "left": 0},
    )
    Step.objects.filter(n=2).update(tokens_after=999)
    assert code_of("verify_memories", "--json") == 1
    (row,), total = rows_and_total(capsys.readouterr().out)
    assert total == {"verified": 1, "contradictions": 1, "made_anew": 0, "left": 0}
    assert row["conversation"] == "a"
    assert "999" in row["what"]


def test_exports_and_imports_are_printed_as_json(db, capsys, tmp_path):
    create_and_add("a", MessageWindow(2), users("x", "y"))
    file = str(tmp_path / "a.jsonl")
    told = printed(capsys, "export_conversations", "a", "--output", file, "--json")
    assert rows_and_total(told) == ([{"conversation": "a"}], {"file": file, "conversations": 1})
    Memory.objects.all().delete()
    (row,), total = rows_and_total(printed(capsys, "import_transcripts", file, "--json"))
    assert row == {
        "conversation": "a",
        "file": file,
        "format": "chatmemory",
        "messages": 2,
        "already": False,
        "refused": "",
        "lost": [],
    }
    assert total == {"conversations": 1, "messages": 2, "already": 0, "refused": 0}


# History beside memory in the terminal


def rows(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.startswith((" #", "#"))]


def test_history_is_beside_memory_at_a_step(db, capsys):
    create_and_add("a", MessageWindow(2), [*users("one", "two"), AiMessage("three")])
    told = printed(capsys, "show_memory", "a")
    assert told.splitlines()[0].startswith("a, step 3. AI message #3 arrived")
    assert rows(told) == [
        "#1 User one ○ left at step 3: memory was full",
        "#2 User two ● 5 tokens",
        "#3 AI three ● 5 tokens",
    ]
    assert told.splitlines()[-1] == "In memory: 2 of 2 messages, 10 tokens. In history: 3 messages."
    then = printed(capsys, "show_memory", "a", "--at", "2")
    assert rows(then) == ["#1 User one ● 5 tokens", "#2 User two ● 5 tokens"]
    earlier = printed(capsys, "show_memory", "a", "--at", "2", "--last", "1")
    assert "1 earlier message not shown, 1 in memory" in earlier
    assert rows(earlier) == ["#2 User two ● 5 tokens"]


def test_a_summary_is_printed_at_its_place_in_memory(db, capsys):
    create_and_add("a", MessageWindow(9), users("one", "two", "three"))
    services.compact("a", "so far", covering=[1, 2])
    assert rows(printed(capsys, "show_memory", "a")) == [
        "#1 User one ○ left at step 4: summarised",
        "#2 User two ○ left at step 4: summarised",
        "#4 Summary so far ● 6 tokens, summary of 2 messages",
        "#3 User three ● 5 tokens",
    ]


def test_the_same_as_json(db, capsys):
    create_and_add("a", MessageWindow(2), users("one", "two", "three"))
    said, told = rows_and_total(printed(capsys, "show_memory", "a", "--last", "1", "--json"))
    assert (told["id"], told["step"], told["seqs"], told["earlier"]) == ("a", 3, [2, 3], 2)
    assert [(row["seq"], row["text"]) for row in said] == [(3, "three")]


# The list of conversations


def test_conversations_are_listed_the_newest_first(db, capsys):
    assert printed(capsys, "list_memories") == "0 conversations\n"
    for name in ("a/1", "a/2", "b"):
        create_and_add(name, MessageWindow(2), users("one", f"two of {name}", "three"))
    services.create("b\x1b[31m", MessageWindow(2))
    heading, *lines, last = printed(capsys, "list_memories").splitlines()
    assert heading.split()[:2] == ["id", "said"]
    assert [line.split()[0] for line in lines] == ["b", "b", "a/2", "a/1"]
    assert lines[1].startswith("b       3     2 of 2 messages, 12 tokens  20")
    assert last == "4 conversations"
    assert "1 conversation\n" in printed(capsys, "list_memories", "two of a/1")
    told = printed(capsys, "list_memories", "--prefix", "a/", "--last", "1", "--json")
    (row,), total = rows_and_total(told)
    assert (row["id"], row["said_count"], total) == ("a/2", 3, {"conversations": 2})
    assert "2 conversations, of which 1 are shown" in printed(
        capsys, "list_memories", "--prefix", "a/", "--last", "1"
    )


def test_no_text_is_a_command_for_the_terminal(db, capsys):
    create_and_add("a", MessageWindow(2), [UserMessage("\x1b[31mred\x07[bold]\n\u202ereversed")])
    (row,) = rows(printed(capsys, "show_memory", "a"))
    assert row.startswith("#1 User [31mred [bold] reversed ●")


# What is wrong with the database


ASKING = {
    "vacuum": [],
    "create_token": ["app"],
    "import_transcripts": ["chats.json"],
    "load_demo": [],
    "purge_memories": ["--label", "team"],
    "recall": [],
    "sign_in_link": [],
    "verify_memories": [],
}


@pytest.fixture
def chats(tmp_path, monkeypatch):
    (tmp_path / "chats.json").write_text('[{"role": "user", "content": "Hello"}]')
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", ASKING)
def test_a_database_without_tables_is_explained(db, chats, tmp_path, command):
    if connection.vendor != "sqlite":
        pytest.skip("a file is made more quickly")
    with (
        connected(str(tmp_path / "empty.sqlite3")),
        pytest.raises(CommandError, match=r"run .*manage\.py migrate"),
    ):
        call_command(command, *ASKING[command])


@pytest.mark.parametrize("command", ASKING)
def test_a_database_that_is_down_is_explained(db, chats, command):
    url = f"postgresql://ada:lovelace@127.0.0.1:{free_port()}/chats"
    with connected_to(url), pytest.raises(CommandError) as told:
        call_command(command, *ASKING[command])
    assert "the database is down: connection failed" in str(told.value)
    assert "lovelace" not in str(told.value)


def test_the_cause_that_a_pool_hides_is_printed(warm_processes, tmp_path):
    """Each command waits some seconds for a connection; they wait beside one another."""
    port = free_port()
    url = f"postgresql://ada:lovelace@127.0.0.1:{port}/chats"
    with Served(url, tmp_path, "") as site, ExitStack() as files:
        waiting = []
        for command in ("migrate", "serve", "verify_memories"):
            errors = files.enter_context(TemporaryFile("w+"))
            started = processes.start([*MANAGE, command], site.environment, stderr=errors)
            waiting.append((command, started, errors))
        for command, started, errors in waiting:
            assert started.wait() == 1, command
            errors.seek(0)
            told = errors.read()
            assert "CommandError: the database is down: connection failed" in told, command
            assert f"port {port} failed: Connection refused" in told, command
            assert "Traceback" not in told, command
            assert "lovelace" not in told, command


# Output that cannot be written: nobody reads it, its disk is full, or there is none


@contextmanager
def unread() -> Iterator[IO[str]]:
    """A pipe that nobody reads."""
    reads, writes = os.pipe()
    os.close(reads)
    with suppress(BrokenPipeError), open(writes, "w") as pipe:
        yield pipe


@contextmanager
def full() -> Iterator[IO[str]]:
    """A file on a disk without space."""
    with suppress(OSError), open("/dev/full", "w") as file:
        yield file


OUTPUTS = {"nobody reads it": (unread, "Broken pipe"), "no space": (full, "No space left")}
unwritable = pytest.mark.parametrize(("output", "why"), OUTPUTS.values(), ids=OUTPUTS)
PRINTING = {
    "recall": ["--prefix", "printed", "--json"],
    "verify_memories": ["printed", "--print-heads"],
    "create_token": ["printed"],
}


@unwritable
def test_a_token_whose_secret_nobody_gets_is_not_made(db, output, why):
    with output() as file, pytest.raises(CommandError, match=f"no token was made.*{why}"):
        call_command("create_token", "app", stdout=file)
    assert not ApiToken.objects.exists()
    call_command("create_token", "app")
    assert ApiToken.objects.exists()


@pytest.fixture
def printing(served) -> dict[str, str]:
    """The environment of commands that have something to print."""
    if not served.api.get(f"{served.url}/api/v1/memories/printed/").ok:
        served.create("printed")
        served.say("printed", "hello")
    return served.environment


def run(command: str, environment: dict[str, str], output: IO[str]) -> tuple[int, str]:
    """Return the exit code of a command, and its error."""
    arguments = [*MANAGE, command, *PRINTING[command]]
    with TemporaryFile("w+") as errors:
        code = processes.start(arguments, environment, stdout=output, stderr=errors).wait()
        errors.seek(0)
        return code, errors.read()


@pytest.mark.parametrize("command", ["recall", "verify_memories"])
def test_a_command_whose_output_nobody_reads_ends_without_a_word(printing, command):
    with unread() as output:
        assert run(command, printing, output) == (1, "")


def test_a_full_disk_is_explained(printing):
    with full() as output:
        told = "CommandError: the rest of the output cannot be written: No space left on device\n"
        assert run("recall", printing, output) == (1, told)


@unwritable
def test_a_token_that_cannot_be_printed_is_reported_once(printing, output, why):
    with output() as file:
        code, told = run("create_token", printing, file)
    assert code == 1
    assert told.startswith(
        "CommandError: no token was created, because its secret cannot be printed"
    )
    assert why in told
    assert told.count("\n") == 1


def test_a_command_without_an_output_says_so(printing):
    arguments = [*MANAGE, "verify_memories", *PRINTING["verify_memories"]]
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *arguments]
    ran = subprocess.run(closed, env=printing, stderr=subprocess.PIPE, text=True)
    assert (ran.returncode, ran.stderr) == (
        1,
        "CommandError: standard output is closed, so nothing can be printed\n",
    )


# Completion by shells


def test_bash_completes_names_and_options(typed, tmp_path):
    code, script, _ = typed("completion", "bash")
    assert code == 0

    def completed(*words: str) -> list[str]:
        line = " ".join(f"'{word}'" for word in words)
        asked = f"COMP_WORDS=(chatmemory {line}); COMP_CWORD={len(words)}; _chatmemory"
        shell = ["bash", "-c", f'{script}\n{asked}; echo "${{COMPREPLY[@]}}"']
        return subprocess.run(shell, capture_output=True, text=True, check=True).stdout.split()

    assert completed("im") == ["import"]
    assert completed("import", "--p") == ["--policy", "--prefix", "--progress"]
    assert completed("doctor", "--prov") == ["--provider"]
    assert completed("import", "") == []  # bash completes files
    assert completed("completion", "") == ["bash", "zsh", "fish"]


def test_each_shell_has_a_script_and_others_have_none(typed):
    for shell in ("zsh", "fish"):
        code, script, _ = typed("completion", shell)
        assert code == 0
        assert "doctor" in script
    assert typed("completion", "tcsh")[0] == 2
