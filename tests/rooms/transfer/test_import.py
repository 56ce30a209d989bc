"""Transcript files are imported, one step a message, and known again; long ones too."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from chatmemory import AiMessage, MessageWindow, UserMessage, services
from chatmemory.formats import Refused, Transcript, stream_transcripts
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.messages.contents import Image, ImageContent
from chatmemory.models import Memory
from chatmemory.reading import conversations, windows
from chatmemory.reading.history import history
from inspector.rooms.transfer.imports import import_each

from ... import processes
from ...connecting import connected_to
from ...peaks import MEGABYTE, bounded_growth
from ...serving import MANAGE, Served, unstarted

pytestmark = pytest.mark.django_db


@pytest.fixture
def two_chats(tmp_path):
    file = tmp_path / "chats.json"
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    file.write_text(json.dumps([{"id": "one", "messages": chat}, {"id": "two", "messages": chat}]))
    return file


def write(folder, content) -> Path:
    file = folder / "chats.json"
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return file


def test_each_message_is_a_step_and_a_second_run_changes_nothing(two_chats, capsys):
    call_command("import_transcripts", two_chats, policy="message_window:1")
    assert conversations.memory("chats-one").last_step == 2
    assert [row.text for row in windows.window("chats-one", 1).rows] == ["hi"]
    assert verify("chats-one") is None
    call_command("import_transcripts", two_chats)
    assert "0 conversations with 0 messages imported, 2 already imported" in capsys.readouterr().out
    assert conversations.memory("chats-one").last_step == 2


def test_it_is_known_again_after_its_labels_were_changed(two_chats, capsys, api):
    call_command("import_transcripts", two_chats)
    url = "/api/v1/memories/chats-one/"
    assert api.get(url).data["labels"] == {}
    assert api.patch(url, {"labels": {"team": "red"}}).data["labels"] == {"team": "red"}
    services.change("chats-two", labels={})
    assert (
        conversations.memory("chats-one").version,
        conversations.memory("chats-two").version,
    ) == (3, 2)
    conflict = api.patch(url, {"labels": {}}, headers={"If-Match": '"2"'})
    assert conflict.data["current"]["labels"] == {"team": "red"}
    capsys.readouterr()
    call_command("import_transcripts", two_chats)
    assert "0 conversations with 0 messages imported, 2 already imported" in capsys.readouterr().out
    services.redact("chats-one", 1)
    assert conversations.memory("chats-one").labels == {"team": "red"}
    assert verify("chats-one") is None


def test_a_name_that_is_taken_in_the_file_gets_the_next_free_number(tmp_path):
    said = [("a", "1"), ("a-2", "2"), ("a", "3"), ("a", "4"), ("a-3", "5")]
    chats = [{"id": id, "messages": [{"role": "user", "content": text}]} for id, text in said]
    call_command("import_transcripts", write(tmp_path, chats), prefix="")
    found = {pk: history(pk).rows[0].text for pk in Memory.objects.values_list("pk", flat=True)}
    assert found == {"a": "1", "a-2": "2", "a-3": "3", "a-4": "4", "a-3-2": "5"}


@pytest.mark.parametrize("bad", ["\ud800", "nul \x00", "x" * 256])
def test_an_id_that_cannot_be_stored_is_refused_and_the_others_are_imported(tmp_path, capsys, bad):
    chat = [{"role": "user", "content": "hi"}]
    file = write(tmp_path, [{"id": id, "messages": chat} for id in ("one", bad, "two")])
    with pytest.raises(CommandError, match="refusal"):
        call_command("import_transcripts", file, prefix="p-")
    said = capsys.readouterr()
    assert "2 conversations with 2 messages imported, 0 already imported, 1 refused" in said.out
    assert "a memory id " in said.err
    assert sorted(Memory.objects.values_list("pk", flat=True)) == ["p-one", "p-two"]


def test_a_taken_id_is_refused_and_the_others_are_imported(two_chats, capsys):
    protocol.update_messages("p-one", [UserMessage("mine")])
    with pytest.raises(CommandError, match="1 refusal, 1 conversation imported"):
        call_command("import_transcripts", two_chats, prefix="p-")
    assert "p-one" in capsys.readouterr().err
    assert (conversations.memory("p-one").said_count, conversations.memory("p-two").said_count) == (
        1,
        2,
    )
    two_chats.write_text(two_chats.read_text().replace("hello", "hullo"))
    with pytest.raises(CommandError, match="2 refusals, no conversation imported"):
        call_command("import_transcripts", two_chats, prefix="p-")


SYSTEM, KIND = {"role": "system", "content": "kind"}, "a system message equal to the one in force"
BLANK = {"role": "system", "content": " "}


class ReadTwice(tuple):
    """Messages that another import stores while this one reads them."""

    def __iter__(self):
        messages = (*super().__iter__(),)
        [*import_each([Transcript("one", messages)])]
        return iter(messages)


def test_two_imports_of_a_file_at_once_store_it_once(db):
    messages = ReadTwice([UserMessage("hi"), AiMessage("hello")])
    (late,) = import_each([Transcript("one", messages)])
    assert (late.already, late.refused) == (True, "")
    assert conversations.memory("one").said_count == 2


@pytest.mark.parametrize(
    ("said", "count", "lost"),
    [
        ([BLANK, "a"], "1 message", "lost in the import, 1 time: a blank system message"),
        (["a", SYSTEM, SYSTEM], "2 messages", f"{KIND}, which a memory ignores"),
    ],
)
def test_losses_are_printed(tmp_path, capsys, said, count, lost):
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
    call_command("import_transcripts", data_file(name), policy=policy, store_only=True)
    assert told in capsys.readouterr().out
    call_command("verify_memories")


UNKNOWN = {"type": "unheard_of", "text": "x"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([{"role": "user", "content": "fine"}, {"role": "user", "content": "nul \0"}], "refusal"),
        ([{"role": "assistant", "content": [UNKNOWN]}], "1 refusal, no conversation imp"),
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


def test_a_bad_policy_and_a_missing_file_are_named(two_chats, tmp_path):
    with pytest.raises(CommandError, match="token_window:1000"):
        call_command("import_transcripts", two_chats, policy="20")
    with pytest.raises(CommandError, match=r"none\.json"):
        call_command("import_transcripts", tmp_path / "none.json")


# Long files


COUNT = 300  # which takes longer than the first progress to be shown
SIZE = 40 * MEGABYTE  # of a file, which takes several times as much memory as a whole
GROWTH = 16 * MEGABYTE


@pytest.fixture
def empty_file(django_db_blocker, migrated_url, tmp_path) -> Iterator[None]:
    """A database in a file, since one in memory grows with its rows. Modules of an import are
    loaded.
    """
    with django_db_blocker.unblock(), connected_to(migrated_url):
        call_command("import_transcripts", chats(tmp_path, 1), store_only=True)
        call_command("purge_memories", older_than="0d", yes=True)
        yield


def chat(id: str, words: str, turns: int = 2) -> str:
    turn = [{"role": "user", "content": words}, {"role": "assistant", "content": words}]
    return json.dumps({"id": id, "messages": turn * turns})


def chats(folder: Path, count: int = COUNT) -> Path:
    file = folder / "chats.jsonl"
    file.write_text("".join(f"{chat(str(n), f'words of {n}', 4)}\n" for n in range(count)))
    return file


# Memory


def test_a_line_is_in_memory_at_a_time(empty_file, tmp_path, capsys):
    """What is refused for its id is read and not stored, which would take longer."""
    file, words = tmp_path / "chats.jsonl", "so many words " * 1_000
    with file.open("w") as out:
        while out.tell() < SIZE:
            is_stored = out.tell() < 2 * MEGABYTE
            out.write(chat(f"{out.tell()}" if is_stored else "x" * 300, words) + "\n")
    with bounded_growth(os.getpid(), GROWTH), pytest.raises(Exception, match="refusal"):
        call_command("import_transcripts", file, store_only=True)
    assert f"{Memory.objects.count()} conversations with" in capsys.readouterr().out
    assert Memory.objects.count() > 30


def test_a_step_of_a_long_conversation_is_in_memory_at_a_time(empty_file, tmp_path):
    """It has pictures, of which nothing is counted or indexed."""
    file, base64 = tmp_path / "long.jsonl", "iVBORw0KGgo" + "A" * 999_989
    said = [UserMessage([ImageContent(Image(base64_data=base64))])] * (SIZE // MEGABYTE)
    services.create("long", MessageWindow(2))
    for message in said:
        services.add("long", [message])
    del said
    with bounded_growth(os.getpid(), GROWTH):
        call_command("export_conversations", "long", output=file)
    assert file.stat().st_size > 0.9 * SIZE
    with bounded_growth(os.getpid(), GROWTH):
        call_command("import_transcripts", file, prefix="again-", store_only=True)
    assert Memory.objects.get(id="again-long").said_count == SIZE // MEGABYTE


# Interruptions


@pytest.fixture
def site(template, tmp_path) -> Iterator[Served]:
    """A database, with commands that run in another process."""
    with unstarted(tmp_path, template) as site:
        yield site


def interrupted(site: Served, arguments: list[str], how: signal.Signals) -> tuple[int, str]:
    """Import a file until some conversations are stored; return the exit code and the output."""
    command = [*MANAGE, *arguments, "--progress"]
    with open(os.devnull, "w") as nowhere:
        process = processes.start(command, site.environment, stdout=nowhere, stderr=subprocess.PIPE)
    assert process.stderr
    told = ""
    while not re.search(r"[1-9]\d* conversations", told):
        told += process.stderr.read(20)
    process.send_signal(how)
    told += process.stderr.read()
    process.stderr.close()
    return process.wait(), told


@pytest.mark.parametrize(
    ("how", "is_archive"),
    [
        pytest.param(signal.SIGKILL, False, marks=pytest.mark.long),
        pytest.param(signal.SIGINT, False, marks=pytest.mark.long),
        (signal.SIGKILL, True),
    ],
)
def test_the_same_command_goes_on(site, tmp_path, how, is_archive):
    count = COUNT // 2 if is_archive else COUNT  # which take longer each
    only = "--store-only"
    arguments = ["import_transcripts", only, str(chats(tmp_path, count)), "--prefix", "a-"]
    if is_archive:
        site.manage(*arguments)
        archive = str(tmp_path / "archive")
        site.manage("export_conversations", "--all", "--output", archive)
        arguments = ["import_transcripts", only, archive, "--prefix", "b-"]
    code, told = interrupted(site, arguments, how)
    assert code == (130 if how == signal.SIGINT else -how)
    assert ("interrupted: run the same command again" in told) == (how == signal.SIGINT)
    told = site.manage(*arguments)
    imported, already = map(int, re.findall(r"(\d+) (?:conversations with|already)", told))
    assert imported + already == count
    assert min(imported, already) > 0, (imported, already)
    assert "all match their replay" in site.manage("verify_memories")


# Lines


def test_the_lines_around_a_wrong_one_are_imported(db, tmp_path, capsys):
    file = tmp_path / "chats.jsonl"
    file.write_text(f"{chat('one', 'a')}\n{{\n{chat('two', 'b')}\n")
    with pytest.raises(CommandError, match="1 refusal, 2 conversations imported"):
        call_command("import_transcripts", file)
    printed = capsys.readouterr()
    assert "2 conversations with 8 messages imported" in printed.out
    assert "refused line 2: not JSON" in printed.err
    assert Memory.objects.count() == 2


def test_a_line_without_a_conversation_is_refused_among_others():
    stream = stream_transcripts(f"{chat('one', 'a')}\n[]\n{chat('two', 'b')}".encode())
    one, refused, two = stream.conversations
    assert (stream.format, one.name, two.name, two.number) == ("openai_chat", "one", "two", 3)
    assert isinstance(refused, Refused)


def test_lines_that_are_messages_are_one_conversation():
    lines = '{"role": "user", "content": "a"}\n{"role": "assistant", "content": "b"}\n'
    (found,) = stream_transcripts(lines.encode()).conversations
    assert found.messages == (UserMessage("a"), AiMessage("b"))


# Folders


def test_the_files_of_a_folder_are_imported_under_their_paths(db, tmp_path, capsys):
    (tmp_path / "old").mkdir()
    for name in ("new.jsonl", "old/new.jsonl"):
        (tmp_path / name).write_text(f"{chat('one', name)}\n")
    (tmp_path / "package.json").write_text('{"name": "no chat"}')
    (tmp_path / "notes.txt").write_text("not JSON")
    call_command("import_transcripts", tmp_path)
    told = capsys.readouterr()
    assert set(Memory.objects.values_list("pk", flat=True)) == {"new-one", "old-new-one"}
    assert "  old-new-one: 4 messages" in told.out
    assert re.findall(r"not imported: .*/(\S+): no conversation", told.err) == ["package.json"]
    call_command("import_transcripts", tmp_path)
    assert "  old-new-one: already imported" in capsys.readouterr().out


def test_a_file_of_a_folder_that_breaks_off_is_imported_without_its_end_and_so_is_the_next(
    db, tmp_path, capsys
):
    (tmp_path / "a.jsonl").write_text(f"{chat('one', 'a')}\n{chat('two', 'a')}\n{{\n")
    (tmp_path / "b.jsonl").write_text(f"{chat('one', 'b')}\n")
    with pytest.raises(CommandError, match="1 refusal, 3 conversations imported"):
        call_command("import_transcripts", tmp_path)
    assert "refused line 3: not JSON" in capsys.readouterr().err


def test_a_named_file_that_cannot_be_read_is_refused_and_the_others_are_imported(
    db, tmp_path, capsys
):
    files = [tmp_path / f"{name}.jsonl" for name in "abc"]
    for name, file in zip("abc", files, strict=True):
        file.write_text("no chat" if name == "b" else f"{chat('one', name)}\n")
    with pytest.raises(CommandError, match="1 refusal, 2 conversations imported"):
        call_command("import_transcripts", *files)
    assert f"not imported: {files[1]}: not valid JSON" in capsys.readouterr().err
    assert set(Memory.objects.values_list("pk", flat=True)) == {"a-one", "c-one"}
    with pytest.raises(CommandError, match="not valid JSON"):
        call_command("import_transcripts", files[1])


def test_a_folder_without_transcripts_is_refused(db, tmp_path):
    with pytest.raises(CommandError, match="the folder has no file that ends with"):
        call_command("import_transcripts", tmp_path)
