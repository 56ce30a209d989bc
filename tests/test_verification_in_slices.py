"""`verify_memories --resume`: a verification of all conversations that goes on later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from chatmemory import MessageWindow, UserMessage, services
from chatmemory.models import Message

from .conversations import create_and_add


@pytest.fixture
def three(db) -> list[str]:
    for name in ("a", "b", "c"):
        create_and_add(name, MessageWindow(2), [UserMessage(text) for text in ("1", "2", "3")])
    return ["a", "b", "c"]


def total(capsys) -> dict[str, int]:
    return json.loads(capsys.readouterr().out.splitlines()[-1])["total"]


def one_slice(file: Path, *options: str) -> None:
    call_command("verify_memories", "--resume", str(file), "--json", *options)


def test_a_slice_without_time_verifies_nothing_and_the_next_one_all(three, tmp_path, capsys):
    file = tmp_path / "progress"
    one_slice(file, "--seconds", "0")
    assert total(capsys) == {"verified": 0, "contradictions": 0, "made_anew": 0, "left": 3}
    one_slice(file)
    assert total(capsys)["verified"] == 3
    assert not file.exists()


def test_it_goes_on_after_the_last_conversation_and_finds_new_ones(three, tmp_path, capsys):
    file = tmp_path / "progress"
    file.write_text(json.dumps({"after": "b", "verified": 2, "contradictions": []}))
    services.create("d", MessageWindow(2))
    one_slice(file)
    assert total(capsys) == {"verified": 4, "contradictions": 0, "made_anew": 0, "left": 0}


def test_a_contradiction_of_an_earlier_slice_is_told_by_each_later_one(three, tmp_path, capsys):
    file = tmp_path / "progress"
    Message.objects.filter(memory_id="a", seq=1).update(text="never said")
    with pytest.raises(CommandError, match="1 of 3 conversations differ"):
        one_slice(file)
    found = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (found["conversation"], found["row"]) == ("a", "message #1")
    kept = {"memory_id": "a", "row": "message #1", "what": "altered"}
    file.write_text(json.dumps({"after": "b", "verified": 2, "contradictions": [kept]}))
    with pytest.raises(CommandError, match="1 of 3 conversations differ"):
        one_slice(file)
    assert "altered" in capsys.readouterr().out


def test_a_file_of_something_else_is_refused_and_kept(three, tmp_path):
    file = tmp_path / "progress"
    file.write_text("my notes")
    with pytest.raises(CommandError, match="delete it to begin again"):
        one_slice(file)
    assert file.read_text() == "my notes"


def test_a_slice_needs_a_file_and_no_ids(three, tmp_path):
    with pytest.raises(CommandError, match="needs --resume"):
        call_command("verify_memories", "--seconds", "5")
    with pytest.raises(CommandError, match="leave out the ids"):
        call_command("verify_memories", "a", "--resume", str(tmp_path / "progress"))


def test_people_are_told_what_is_left(three, tmp_path, capsys):
    call_command("verify_memories", "--resume", str(tmp_path / "p"), "--seconds", "0")
    assert "0 conversations verified" in (told := capsys.readouterr().out)
    assert "3 conversations are left to verify: repeat the command with --resume" in told
