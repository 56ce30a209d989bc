"""manage.py recall, of files and of stored conversations."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from chatmemory import AiMessage, MessageWindow, Policy, TokenWindow, UserMessage, services
from chatmemory.reading.conversations import any_memory
from chatmemory.reading.recall import recall_history
from chatmemory.windows.written_policies import policies_from_text, text_of_policy

SAID = [UserMessage("Order A-1182."), AiMessage("Yes?"), UserMessage("Hm"), AiMessage("A-1182")]


@pytest.fixture
def conversation(db):
    services.create("m", MessageWindow(20), {"team": "a"})
    services.add("m", SAID)


def test_stored_conversations_become_a_row_for_each_policy(conversation, capsys):
    call_command("recall", "--label", "team:a", "--policies", "message_window:2,everything")
    header, *rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert header[:6] == [
        "policy",
        "conversations",
        "recalls",
        "held",
        "nothing_lost",
        "user_repeated",
    ]
    assert [row[:5] for row in rows] == [
        ["message_window:2", "1", "1", "0", "0"],
        ["everything", "1", "1", "1", "1"],
        ["recommended:", "nothing:", "No", "advice:", "fewer"],
    ]


def test_files_are_read_and_not_stored(db, capsys, tmp_path):
    file = tmp_path / "chat.json"
    file.write_text(
        json.dumps(
            [{"role": "user", "content": "A-1182"}, {"role": "assistant", "content": "A-1182"}]
        )
    )
    call_command("recall", str(file), "--policies", "token_window:1,token_window:900", "--json")
    *rows, total = map(json.loads, capsys.readouterr().out.splitlines())
    assert total["total"]["conversations"] == 1
    assert [(row["policy"], row["held"]) for row in rows] == [
        ("token_window:1", 0),
        ("token_window:900", 1),
    ]
    assert not any_memory()


def test_stored_tokens_are_used_unless_another_estimator_counts(conversation):
    stored = recall_history("m")
    assert stored.tokens == recall_history("m", "gpt-4o").tokens
    services.change("m", policy=TokenWindow(900, estimator="gpt-3.5-turbo"))
    services.redact("m", 1)
    assert recall_history("m").tokens[0] == stored.tokens[0]
    assert recall_history("m", latest=2).numbers == [3, 4]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.json"], "No such file"),
        (["x.json", "--label", "a"], "name files, or"),
        (["--format", "langchain4j"], "--format is only for files: name files"),
        (["--format", "langchain4j", "--label", "a"], "--format is only for files: name files"),
        ([], "no conversations are stored: import some"),
        (["--label", "nope"], "no stored conversation has the label 'nope'"),
        (["--label", "a:b", "--prefix", "x/"], "the label 'a:b' and an id that begins with 'x/'"),
        (["--policies", "nothing:1"], "is not a policy"),
        (["--policies", ","], "no policy"),
    ],
)
def test_what_is_wrong_is_said(db, arguments, words):
    with pytest.raises(CommandError, match=words):
        call_command("recall", *arguments)


@pytest.mark.parametrize(
    "text",
    [
        "everything",
        "message_window:20",
        "token_window:3000,estimator=gpt-3.5-turbo,always_keep_system_message_first=true",
        "token_window:3000,low_water=0.6,snap_to_user=true,oversized=keep",
    ],
)
def test_a_policy_is_read_back_from_its_text(text):
    (policy,) = policies_from_text(text)
    assert policy is None or isinstance(policy, Policy)
    assert policies_from_text(text_of_policy(policy)) == [policy]


@pytest.mark.long
def test_the_page_about_choosing_a_window_shows_what_the_command_prints(
    capsys, data_file, all_claude_sessions
):
    """The figures of docs/choosing-a-window.md."""
    page = (Path(__file__).parents[1] / "docs/choosing-a-window.md").read_text()
    commands = re.findall(r"manage.py recall .*?\n +--policies (.*)\n", page)
    files = [
        [str(data_file("tau_bench_airline.openai_chat.json"))],
        list(map(str, all_claude_sessions)),
    ]
    prices = ("--input", "2.50", "--cached", "0.25")
    for file, policies in zip(files, commands, strict=True):
        call_command("recall", *file, "--policies", policies, *prices, "--json")
        *rows, _ = map(json.loads, capsys.readouterr().out.splitlines())
        everything = rows[-1]
        for row in rows:
            per_call = round(row["prompt_tokens"] / row["calls"])
            share = row["prompt_tokens"] / everything["prompt_tokens"]
            cells = f"{row['nothing_lost']} | {per_call:,}" if len(file) == 1 else f"{share:.2f}"
            assert f"| {row['held']:,} | {cells} | {row['relative_cost']:.2f} |" in page
