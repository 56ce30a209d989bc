"""Long files are imported in little memory, and go on where they were interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from chatmemory import AiMessage, MessageWindow, UserMessage, services
from chatmemory.core.contents import Image, ImageContent
from chatmemory.formats import Refused, stream_transcripts
from chatmemory.models import Memory

from . import processes
from .connecting import connected_to
from .peaks import MEGABYTE, bounded_growth
from .serving import MANAGE, Served, database

COUNT = 600  # which takes longer than the first progress to be shown
SIZE = 40 * MEGABYTE  # of a file, which takes several times as much memory as a whole
GROWTH = 16 * MEGABYTE


@pytest.fixture
def empty_file(django_db_blocker, tmp_path) -> Iterator[None]:
    """A database in a file, as one in memory grows with what is stored; what an import needs is
    loaded.
    """
    with django_db_blocker.unblock(), connected_to(f"sqlite:///{tmp_path}/empty.sqlite3"):
        call_command("migrate", verbosity=0)
        call_command("import_transcripts", chats(tmp_path, 1))
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
    with bounded_growth(os.getpid(), GROWTH), pytest.raises(Exception, match="refused"):
        call_command("import_transcripts", file)
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
        call_command("import_transcripts", file, prefix="again-")
    assert Memory.objects.get(id="again-long").said_count == SIZE // MEGABYTE


# Interruptions


@pytest.fixture
def site(template, tmp_path) -> Iterator[Served]:
    """A database, whose commands are run beside this process."""
    with (
        database(tmp_path, copy_of=template.url) as url,
        Served(url, tmp_path, template.token) as site,
    ):
        yield site


def interrupted(site: Served, arguments: list[str], how: signal.Signals) -> tuple[int, str]:
    """Import a file until some conversations are stored; return the exit code and what is told."""
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
    ("how", "is_archive"), [(signal.SIGKILL, False), (signal.SIGINT, False), (signal.SIGKILL, True)]
)
def test_the_same_command_goes_on(site, tmp_path, how, is_archive):
    count = COUNT // 4 if is_archive else COUNT  # which take longer each
    arguments = ["import_transcripts", str(chats(tmp_path, count)), "--prefix", "a-"]
    if is_archive:
        site.manage(*arguments)
        archive = str(tmp_path / "archive")
        site.manage("export_conversations", "--all", "--output", archive)
        arguments = ["import_transcripts", archive, "--prefix", "b-"]
    code, told = interrupted(site, arguments, how)
    assert code == (130 if how == signal.SIGINT else -how)
    assert ("interrupted: the same command goes on" in told) == (how == signal.SIGINT)
    told = site.manage(*arguments)
    imported, already = map(int, re.findall(r"(\d+) (?:conversations with|already)", told))
    assert imported + already == count
    assert min(imported, already) > 0, (imported, already)
    assert "all match their replay" in site.manage("verify_memories")


# Lines


def test_the_lines_before_a_wrong_one_are_imported(db, tmp_path, capsys):
    file = tmp_path / "chats.jsonl"
    file.write_text(f"{chat('one', 'a')}\n{chat('two', 'b')}\n{{\n")
    with pytest.raises(Exception, match=r"chats.jsonl: not valid JSON: .* line 4"):
        call_command("import_transcripts", file)
    assert "2 conversations with 8 messages imported" in capsys.readouterr().out
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
