"""Verifies all conversations in slices. The file of the option `--resume` keeps the state between
two slices.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic

from chatmemory.contradictions import Contradiction
from chatmemory.management.base import wrong_arguments

_EVERY = 1.0  # seconds between two writes of the file


@dataclass
class Verified:
    """The state of a verification, which goes through the conversations in the order of their ids.

    `after` is the id of the last verified conversation, and `verified` the number of conversations
    verified so far. `contradictions` has the stored rows, found so far, that contradict a ledger.
    """

    after: str = ""
    verified: int = 0
    contradictions: list[Contradiction] = field(default_factory=list)


class Slice:
    """A part of a verification of all conversations, in the order of their ids.

    The slice begins after the conversation at which the previous slice ended; `file` has the id of
    this conversation. If there is no file, the slice begins with the first conversation.

    The slice ends after `seconds` seconds, or with the last conversation if `seconds` is None.
    """

    def __init__(self, file: Path | None, seconds: int | None) -> None:
        self._file = file
        self._end = None if seconds is None else monotonic() + seconds
        self._written = monotonic()
        self.left = 0  # conversations, once the slice has ended
        self.so_far = _read(file) if file and file.exists() else Verified()

    @property
    def is_over(self) -> bool:
        return self._end is not None and monotonic() >= self._end

    def add(self, memory_id: str, found: Contradiction | None) -> None:
        """Count a verified conversation, and remember its contradiction if there is one. The file
        is written about once a second.
        """
        self.so_far.after = memory_id
        self.so_far.verified += 1
        if found:
            self.so_far.contradictions.append(found)
        if monotonic() - self._written > _EVERY:
            self.keep()

    def keep(self) -> None:
        """Write the state to the file, from which the next slice continues."""
        if self._file:
            draft = self._file.with_name(f"{self._file.name}.new")
            draft.write_text(json.dumps(asdict(self.so_far)), "utf-8")
            os.replace(draft, self._file)
        self._written = monotonic()

    def end(self) -> None:
        """Remove the file, so that the next run begins with the first conversation again."""
        if self._file:
            with suppress(FileNotFoundError):
                self._file.unlink()


def _read(file: Path) -> Verified:
    try:
        kept = Verified(**json.loads(file.read_text("utf-8")))
        kept.contradictions = [Contradiction(**each) for each in kept.contradictions]  # type: ignore[arg-type]  # read from JSON
    except (OSError, TypeError, ValueError) as error:
        raise wrong_arguments(
            f"{file} is no file of verify_memories --resume: delete it to begin again ({error})"
        ) from error
    return kept
