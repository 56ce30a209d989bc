"""The recorded conversations that strategies are measured on."""

from __future__ import annotations

import lzma
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chatmemory.printing import Printer
from chatmemory.recall.sessions import said_messages
from chatmemory.reports.files import named_transcripts
from chatmemory.reports.strategies import conversation_of
from chatmemory.strategies import Conversation
from tests.unpacking import unpack

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared/data"  # has all sessions of agents
DATA = ROOT / "tests/data"


@dataclass(frozen=True)
class Corpus:
    """Conversations, with the limits that are tried: about half of the longest prompts."""

    name: str
    title: str
    file: str
    tokens: int
    messages: int = 20

    def conversations(self) -> Iterator[Conversation]:
        with tempfile.TemporaryDirectory() as folder:
            found = _unpacked(self.file, Path(folder))
            yield from conversations_in([found])


TAU = Corpus(
    "tau", "100 support conversations of tau-bench", "tau_bench_airline.openai_chat.json", 4_000
)
CODING = Corpus("coding", "13 sessions of Claude Code", "claude_code_sessions.tar.xz", 80_000)
GLAIVE = Corpus(
    "glaive", "150 short conversations of Glaive", "glaive_toolcall.sharegpt.json", 400, 6
)
CORPORA = (TAU, CODING, GLAIVE)


def conversations_in(files: list[Path]) -> Iterator[Conversation]:
    """Yield the conversations of files and folders; say on standard error what is left out."""
    printer = Printer(print, lambda line: print(line, file=sys.stderr))
    for _, each in named_transcripts(files, "auto", printer):
        yield conversation_of(said_messages(each.messages, each.session), each.session)


def _unpacked(name: str, folder: Path) -> Path:
    """Return a file of the corpora, or the folder of an archive."""
    shared = SHARED / name
    if name.endswith(".tar.xz"):
        unpack(shared if shared.exists() else DATA / name, folder)
        return folder
    if shared.exists():
        return shared
    file = folder / name
    file.write_bytes(lzma.decompress((DATA / f"{name}.xz").read_bytes()))
    return file
