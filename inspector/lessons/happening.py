"""What happens between two scenes: which messages arrive, which leave, and which cannot stay."""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory.queries import Line, Scene


@dataclass(frozen=True)
class Happening:
    """The scene before some events, and one after each of them; no event leaves it as it is."""

    before: Scene
    changes: tuple[Scene, ...] = ()

    @property
    def after(self) -> Scene:
        return self.changes[-1] if self.changes else self.before

    @property
    def arriving(self) -> tuple[Line, ...]:
        return self.after.said[len(self.before.said) :]

    @property
    def leaving(self) -> tuple[int, ...]:
        """The messages that the model saw before, and does not see after, in their order."""
        rows = self.before.window.rows
        return tuple(row.seq for row in rows if row.seq not in self.after.seen)

    @property
    def lost(self) -> tuple[int, ...]:
        """The messages that arrive and leave at once."""
        return tuple(line.seq for line in self.arriving if line.seq not in self.after.seen)
