"""docs/architecture.md names the files that an add passes through, and no others."""

import re
from pathlib import Path

import pytest
from django.db import connection

import chatmemory
from benchmarks.hops import Hops
from chatmemory import MessageWindowChatMemory, UserMessage
from chatmemory.stores.database import DjangoChatMemoryStore

PACKAGE = Path(chatmemory.__file__).parent
DOCUMENT = PACKAGE.parent / "docs" / "architecture.md"


def tables() -> list[list[str]]:
    """Return the files in the first column of the two tables."""
    of_sqlite = "SQLite's trigger"
    _, _, section = DOCUMENT.read_text().partition("## The walk of an add")
    section, _, _ = section.partition("\n## ")
    parts = section.split("| file |")[1:]
    return [
        [
            file
            for line, does in re.findall(r"^\| (`.*?) \| (.*)", part, re.M)
            if of_sqlite not in does or connection.vendor == "sqlite"
            for file in line.split("`")[1::2]
        ]
        for part in parts
    ]


@pytest.mark.django_db(transaction=True)
def test_the_walk_of_an_add_is_documented():
    memory = MessageWindowChatMemory("m", max_messages=2, store=DjangoChatMemoryStore())
    memory.extend(map(UserMessage, "abc"))
    message, hops = UserMessage("d"), Hops()
    hops.run(lambda: memory.add(message))
    passed = {Path(file) for file in hops.files}
    known = {str(file.relative_to(PACKAGE)) for file in passed if PACKAGE in file.parents}
    walk, beside = tables()
    assert sorted(walk + beside) == sorted(known)
