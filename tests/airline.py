"""The 100 public runs of an airline's agent (τ-bench), and what is derived from them.

Each process reads the file once, and finds the incidents of a run under a limit once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from chatmemory import ChatMessage, TokenWindow
from chatmemory.formats import read_transcripts
from chatmemory.recall.incidents import Incident, incidents_under


class AirlineRuns:
    def __init__(self, file: Path) -> None:
        transcripts = read_transcripts(file.read_bytes()).transcripts
        self.messages: list[Sequence[ChatMessage]] = [each.messages for each in transcripts]
        self.incidents = cache(self._incidents)

    def _incidents(self, number: int, limit: int) -> list[Incident]:
        """Return the incidents of a run under a limit in tokens."""
        return incidents_under(TokenWindow(limit), self.messages[number])
