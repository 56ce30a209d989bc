from __future__ import annotations

import json

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


def test_each_message_is_a_step(chats):
    call_command("import_transcripts", chats, policy="message_window:1")
    assert queries.memory("chats-one").last_step == 2
    assert [row.text for row in queries.window("chats-one", 1).rows] == ["hi"]
    assert verify("chats-one") is None


def test_running_it_again_changes_nothing(chats, capsys):
    call_command("import_transcripts", chats)
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


def test_a_taken_id_is_refused_and_the_others_are_imported(chats, capsys):
    protocol.update_messages("p-one", [UserMessage("mine")])
    with pytest.raises(CommandError, match="1 conversation was refused, 1 imported"):
        call_command("import_transcripts", chats, prefix="p-")
    assert "p-one" in capsys.readouterr().err
    assert queries.memory("p-two").said_count == 2
    assert queries.memory("p-one").said_count == 1


def test_a_file_of_which_nothing_is_imported_says_so(chats, tmp_path):
    with pytest.raises(CommandError, match="2 conversations were refused, none was imported"):
        call_command("import_transcripts", chats, prefix="nul \x00")
    call_command("import_transcripts", chats, prefix="p-")
    chats.write_text(chats.read_text().replace("hello", "hullo"))
    with pytest.raises(CommandError, match="2 conversations were refused, none was imported"):
        call_command("import_transcripts", chats, prefix="p-")


def test_one_is_not_a_plural(tmp_path, capsys):
    file = tmp_path / "chat.json"
    file.write_text(
        '[{"role": "user", "content": [{"type": "video"}, {"type": "text", "text": "a"}]}]'
    )
    call_command("import_transcripts", file)
    said = capsys.readouterr().out
    assert "1 conversation with 1 message imported" in said
    assert "lost 1 time: a part of type 'video'" in said


def test_a_name_that_is_taken_in_the_file_gets_the_next_free_number(tmp_path):
    said = [("a", "1"), ("a-2", "2"), ("a", "3"), ("a", "4"), ("a-3", "5")]
    chats = [{"id": id, "messages": [{"role": "user", "content": text}]} for id, text in said]
    file = tmp_path / "chats.json"
    file.write_text(json.dumps(chats))
    call_command("import_transcripts", file, prefix="")
    found = {
        pk: queries.history(pk).rows[0].text for pk in Memory.objects.values_list("pk", flat=True)
    }
    assert found == {"a": "1", "a-2": "2", "a-3": "3", "a-4": "4", "a-3-2": "5"}


@pytest.mark.parametrize("bad", ["\ud800", "nul \x00", "x" * 256])
def test_an_id_that_cannot_be_stored_is_refused_and_the_others_are_imported(tmp_path, capsys, bad):
    chat = [{"role": "user", "content": "hi"}]
    file = tmp_path / "chats.json"
    file.write_text(json.dumps([{"id": id, "messages": chat} for id in ("one", bad, "two")]))
    with pytest.raises(CommandError, match="refused"):
        call_command("import_transcripts", file, prefix="p-")
    said = capsys.readouterr()
    assert "2 conversations with 2 messages imported, 0 already imported, 1 refused" in said.out
    assert "a memory id " in said.err
    assert sorted(Memory.objects.values_list("pk", flat=True)) == ["p-one", "p-two"]


def test_a_refused_conversation_stores_nothing(tmp_path):
    file = tmp_path / "bad.json"
    file.write_text('[{"role":"user","content":"fine"},{"role":"user","content":"nul \\u0000"}]')
    with pytest.raises(CommandError, match="refused"):
        call_command("import_transcripts", file)
    assert not Memory.objects.exists()


def test_a_file_with_a_turn_of_which_nothing_can_be_read_is_refused(tmp_path, capsys):
    file = tmp_path / "anthropic.json"
    call = {"type": "tool_use", "name": "find", "input": {}}
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [call]}]
    file.write_text(json.dumps(turns))
    with pytest.raises(CommandError, match="1 conversation was refused, none was imported"):
        call_command("import_transcripts", file)
    assert "message 2: no part of its content can be read" in capsys.readouterr().err
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff", "UTF-8"),
        (b"{", "JSON"),
        (b"[]", "no conversation"),
        (b'{"a":1}', "no conversation"),
    ],
)
def test_an_unreadable_file_is_named(tmp_path, content, words):
    file = tmp_path / "bad.json"
    file.write_bytes(content)
    with pytest.raises(CommandError, match=words):
        call_command("import_transcripts", file)


def test_a_bad_policy_says_how_to_write_one(chats):
    with pytest.raises(CommandError, match="token_window:1000"):
        call_command("import_transcripts", chats, policy="20")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CommandError, match=r"none\.json"):
        call_command("import_transcripts", tmp_path / "none.json")


def test_the_tau_bench_runs_import_and_verify(data_file, capsys):
    file = data_file("tau_bench_airline.openai_chat.json")
    call_command("import_transcripts", file, policy="token_window:1000")
    assert "100 conversations with 2,526 messages imported" in capsys.readouterr().out
    call_command("verify_memories")


def test_the_glaive_conversations_import_and_say_what_is_lost(data_file, capsys):
    file = data_file("glaive_toolcall.sharegpt.json")
    call_command("import_transcripts", file, policy="message_window:4")
    out = capsys.readouterr().out
    assert "150 conversations with 926 messages imported" in out
    assert "the definitions of the tools" in out
    call_command("verify_memories")


def test_system_messages_that_a_memory_ignores_are_told_as_lost(tmp_path, capsys):
    said = [("system", "kind"), ("user", "one"), ("system", "kind"), ("user", "two")]
    chat = [{"role": role, "content": text} for role, text in said]
    file = tmp_path / "chat.json"
    file.write_text(json.dumps({"id": "one", "messages": chat}))
    call_command("import_transcripts", file, prefix="")
    told = capsys.readouterr().out
    assert "with 3 messages imported" in told
    assert "a system message equal to the one in force, which a memory ignores" in told
    assert queries.memory("one").said_count == 3
