"""Make the database that tests/stored/test_upgrade.py migrates: a SQLite file, and its heads.

`site.sqlite3.gz` was made by the code whose one migration was 0001, and stays as it is: it is what
a user of that version has on disk. To make a file for another version, check that version out, copy
this script and tests/data into it, and run there:

    .venv/bin/python tests/stored/make.py FOLDER

It writes FOLDER/site.sqlite3.gz and FOLDER/heads.tsv, as `verify_memories --print-heads` prints it.
"""

from __future__ import annotations

import gzip
import os
import sqlite3
import sys
import tarfile
from contextlib import closing, redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parents[2]
SESSIONS = ROOT / "tests/data/claude_code_sessions.tar.xz"
SESSION = "session-198393f2.jsonl"  # the shortest: 51 lines with a compaction
RUNS = ROOT / "tests/golden/tau_bench.json"
HELD = "tau-38-1"  # the shorter of two runs


def fill() -> None:
    """Store conversations of each sort, and at least one row in each table that they have."""
    from django.utils import timezone

    from chatmemory import AiMessage, TokenWindow, UserMessage, services
    from chatmemory.access.tokens import create_token
    from chatmemory.formats import read_transcripts
    from chatmemory.models import IdempotentAnswer, RequestCount
    from inspector import demo
    from inspector.rooms.transfer.imports import import_all

    demo.load()
    list(import_all(read_transcripts(RUNS.read_bytes()), TokenWindow(1000), "tau-"))
    services.delete_all(
        [each for each in all_ids() if each.startswith("tau-") and each != HELD], "operator"
    )
    with tarfile.open(SESSIONS) as archive:
        session = archive.extractfile(SESSION)
        assert session
        list(import_all(read_transcripts(session.read()), None, "session-"))
    repaired_and_pinned()
    drafts = [UserMessage("Is my favourite colour red?"), AiMessage("It is green.")]
    services.branch("classroom", "classroom-from-9", drafts, at=9, actor="operator")
    services.keep_trial("classroom", drafts, 5, actor="operator")
    services.set_default_policy("shop/", TokenWindow(4000, low_water="0.6"), actor="operator")
    services.create("shop/empty", labels={"team": "support"})
    for memory_id in all_ids():
        services.current_incidents(memory_id)
    create_token("shop", role="viewer", prefix="shop/", days=7)
    IdempotentAnswer.objects.create(
        caller="token-1", key="k", memory_id="support", status=201, headers={}, body="{}"
    )
    RequestCount.objects.create(key="token-1", count=2, ends_at=timezone.now())


def all_ids() -> list[str]:
    from chatmemory.models import Memory

    return list(Memory.objects.values_list("id", flat=True))


def repaired_and_pinned() -> None:
    """A pin, a redaction, and a call without a result that is repaired for OpenAI."""
    from chatmemory import (
        AiMessage,
        MessageWindow,
        SystemMessage,
        ToolExecutionRequest,
        UserMessage,
        services,
    )

    services.create("support", MessageWindow(6), {"vip": "", "team": "support"})
    services.add("support", [SystemMessage("Be kind."), UserMessage("My order is A-1182.")])
    services.pin("support", 2, actor="operator")
    calls = [ToolExecutionRequest("1", "find_order", '{"order": "A-1182"}')]
    said = [UserMessage("My card ends in 4242."), AiMessage(None, calls), UserMessage("Hello?")]
    services.add("support", said)
    services.redact("support", 3, actor="operator")
    services.repair("support", "openai", reason="a late result", actor="operator")
    services.add("support", [AiMessage("It is in Lyon.")])


def make(folder: Path) -> None:
    file = folder / "site.sqlite3"
    os.environ["DATABASE_URL"] = f"sqlite:///{file.absolute()}"
    os.environ["DJANGO_SETTINGS_MODULE"] = "inspector.project.settings"
    sys.path.insert(0, str(ROOT))
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    call_command("migrate", verbosity=0)
    fill()
    call_command("verify_memories")
    with (folder / "heads.tsv").open("w", encoding="utf-8") as heads, redirect_stdout(heads):
        call_command("verify_memories", print_heads=True)
    connections.close_all()
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("VACUUM")
    (folder / "site.sqlite3.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
    file.unlink()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
