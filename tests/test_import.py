"""Transcript files are imported, one step a message, and known again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from chatmemory import UserMessage, queries, services
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.services import protocol

pytestmark = pytest.mark.django_db


@pytest.fixture
def chats(tmp_path):
    file = tmp_path / "chats.json"
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    file.write_text(json.dumps([{"id": "one", "messages": chat}, {"id": "two", "messages": chat}]))
    return file


def write(folder, content) -> Path:
    file = folder / "chats.json"
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return file


def test_each_message_is_a_step_and_a_second_run_changes_nothing(chats, capsys):
    call_command("import_transcripts", chats, policy="message_window:1")
    assert queries.memory("chats-one").last_step == 2
    assert [row.text for row in queries.window("chats-one", 1).rows] == ["hi"]
    assert verify("chats-one") is None
    call_command("import_transcripts", chats)
    assert "0 conversations with 0 messages imported, 2 already imported" in capsys.readouterr().out
    assert queries.memory("chats-one").last_step == 2


def test_it_is_known_again_after_its_labels_were_changed(chats, capsys, api):
    call_command("import_transcripts", chats)
    url = "/api/v1/memories/chats-one/"
    assert api.get(url).data["labels"] == {}
    assert api.patch(url, {"labels": {"team": "red"}}).data["labels"] == {"team": "red"}
    services.change("chats-two", labels={})
    assert (queries.memory("chats-one").version, queries.memory("chats-two").version) == (3, 2)
    conflict = api.patch(url, {"labels": {}}, headers={"If-Match": '"2"'})
    assert conflict.data["current"]["labels"] == {"team": "red"}
    capsys.readouterr()
    call_command("import_transcripts", chats)
    assert "0 conversations with 0 messages imported, 2 already imported" in capsys.readouterr().out
    services.redact("chats-one", 1)
    assert queries.memory("chats-one").labels == {"team": "red"}
    assert verify("chats-one") is None


def test_a_name_that_is_taken_in_the_file_gets_the_next_free_number(tmp_path):
    said = [("a", "1"), ("a-2", "2"), ("a", "3"), ("a", "4"), ("a-3", "5")]
    chats = [{"id": id, "messages": [{"role": "user", "content": text}]} for id, text in said]
    call_command("import_transcripts", write(tmp_path, chats), prefix="")
    found = {
        pk: queries.history(pk).rows[0].text for pk in Memory.objects.values_list("pk", flat=True)
    }
    assert found == {"a": "1", "a-2": "2", "a-3": "3", "a-4": "4", "a-3-2": "5"}


@pytest.mark.parametrize("bad", ["\ud800", "nul \x00", "x" * 256])
def test_an_id_that_cannot_be_stored_is_refused_and_the_others_are_imported(tmp_path, capsys, bad):
    chat = [{"role": "user", "content": "hi"}]
    file = write(tmp_path, [{"id": id, "messages": chat} for id in ("one", bad, "two")])
    with pytest.raises(CommandError, match="refused"):
        call_command("import_transcripts", file, prefix="p-")
    said = capsys.readouterr()
    assert "2 conversations with 2 messages imported, 0 already imported, 1 refused" in said.out
    assert "a memory id " in said.err
    assert sorted(Memory.objects.values_list("pk", flat=True)) == ["p-one", "p-two"]


def test_a_taken_id_is_refused_and_the_others_are_imported(chats, capsys):
    protocol.update_messages("p-one", [UserMessage("mine")])
    with pytest.raises(CommandError, match="1 conversation was refused, 1 imported"):
        call_command("import_transcripts", chats, prefix="p-")
    assert "p-one" in capsys.readouterr().err
    assert (queries.memory("p-one").said_count, queries.memory("p-two").said_count) == (1, 2)
    chats.write_text(chats.read_text().replace("hello", "hullo"))
    with pytest.raises(CommandError, match="2 conversations were refused, none was imported"):
        call_command("import_transcripts", chats, prefix="p-")


SYSTEM, KIND = {"role": "system", "content": "kind"}, "a system message equal to the one in force"
BLANK = {"role": "system", "content": " "}


@pytest.mark.parametrize(
    ("said", "count", "lost"),
    [
        ([BLANK, "a"], "1 message", "lost 1 time: a blank system message"),
        (["a", SYSTEM, SYSTEM], "2 messages", f"{KIND}, which a memory ignores"),
    ],
)
def test_what_is_lost_is_told(tmp_path, capsys, said, count, lost):
    turns = [each if isinstance(each, dict) else {"role": "user", "content": each} for each in said]
    call_command("import_transcripts", write(tmp_path, turns))
    told = capsys.readouterr().out
    assert f"1 conversation with {count} imported" in told
    assert lost in told


@pytest.mark.parametrize(
    ("name", "policy", "told"),
    [
        (
            "tau_bench_airline.openai_chat.json",
            "token_window:1000",
            "100 conversations with 2,526 messages imported",
        ),
        ("glaive_toolcall.sharegpt.json", "message_window:4", "the definitions of the tools"),
    ],
)
def test_real_conversations_are_imported_and_verified(data_file, capsys, name, policy, told):
    call_command("import_transcripts", data_file(name), policy=policy)
    assert told in capsys.readouterr().out
    call_command("verify_memories")


UNKNOWN = {"type": "unheard_of", "text": "x"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([{"role": "user", "content": "fine"}, {"role": "user", "content": "nul \0"}], "refused"),
        ([{"role": "assistant", "content": [UNKNOWN]}], "1 conversation was refused, none was imp"),
        (b"\xff", "UTF-8"),
        (b"{", "JSON"),
        (b"[]", "no conversation"),
        (b'{"a":1}', "no conversation"),
    ],
)
def test_what_cannot_be_read_or_stored_is_refused(tmp_path, content, words):
    with pytest.raises(CommandError, match=words):
        call_command("import_transcripts", write(tmp_path, content))
    assert not Memory.objects.exists()


def test_a_bad_policy_and_a_missing_file_are_named(chats, tmp_path):
    with pytest.raises(CommandError, match="token_window:1000"):
        call_command("import_transcripts", chats, policy="20")
    with pytest.raises(CommandError, match=r"none\.json"):
        call_command("import_transcripts", tmp_path / "none.json")
