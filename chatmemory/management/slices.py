"""A verification of all conversations in slices: what the file of `--resume` keeps between them."""

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
    """The number of conversations verified so far, in the order of their ids, up to `after`, and
    their contradictions.
    """

    after: str = ""
    verified: int = 0
    contradictions: list[Contradiction] = field(default_factory=list)


class Slice:
    """A part of a verification of all conversations.

    A slice with a `file` continues after the previous slice, otherwise with the first conversation.
    A slice ends after `seconds`, or at the last conversation if `seconds` is None.
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
        """Count a conversation, and keep it at least once a second."""
        self.so_far.after = memory_id
        self.so_far.verified += 1
        if found:
            self.so_far.contradictions.append(found)
        if monotonic() - self._written > _EVERY:
            self.keep()

    def keep(self) -> None:
        """Write the file: a killed slice is repeated from its last write."""
        if self._file:
            draft = self._file.with_name(f"{self._file.name}.new")
            draft.write_text(json.dumps(asdict(self.so_far)), "utf-8")
            os.replace(draft, self._file)
        self._written = monotonic()

    def end(self) -> None:
        """Remove the file: the next run begins with the first conversation again."""
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
