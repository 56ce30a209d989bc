"""Commands whose output cannot be written: nobody reads it, its disk is full, or there is none."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import IO

import pytest
from django.core.management import CommandError, call_command

from chatmemory.models import ApiToken

from . import processes
from .serving import MANAGE


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
def printed(served) -> dict[str, str]:
    """The environment of commands that have something to print."""
    if not served.api.get(f"{served.url}/api/v1/memories/printed/").ok:
        served.create("printed")
        served.say("printed", "hello")
    return served.environment


def run(command: str, environment: dict[str, str], output: IO[str]) -> tuple[int, str]:
    """Return how a command ends, and what it says of that."""
    arguments = [*MANAGE, command, *PRINTING[command]]
    with TemporaryFile("w+") as errors:
        code = processes.start(arguments, environment, stdout=output, stderr=errors).wait()
        errors.seek(0)
        return code, errors.read()


@pytest.mark.parametrize("command", ["recall", "verify_memories"])
def test_a_command_whose_output_nobody_reads_ends_without_a_word(printed, command):
    with unread() as output:
        assert run(command, printed, output) == (1, "")


def test_a_full_disk_is_told(printed):
    with full() as output:
        told = "CommandError: nothing more can be written: No space left on device\n"
        assert run("recall", printed, output) == (1, told)


@unwritable
def test_a_token_that_cannot_be_printed_is_told_once(printed, output, why):
    with output() as file:
        code, told = run("create_token", printed, file)
    assert code == 1
    assert told.startswith("CommandError: no token was made, because its secret cannot be printed")
    assert why in told
    assert told.count("\n") == 1


def test_a_command_without_an_output_says_so(printed):
    arguments = [*MANAGE, "verify_memories", *PRINTING["verify_memories"]]
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *arguments]
    ran = subprocess.run(closed, env=printed, stderr=subprocess.PIPE, text=True)
    assert (ran.returncode, ran.stderr) == (1, "CommandError: there is no output to print to\n")
