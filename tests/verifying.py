"""Verification in both of its ways: with short steps in memory, and as if each were a long one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chatmemory.ledger import verification
from chatmemory.ledger.contradictions import Contradiction


@contextmanager
def all_steps_are_long() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verification, "KEPT_IN_MEMORY", 0)
        yield


def verify(memory_id: str) -> Contradiction | None:
    """Return the first row that contradicts, which both ways must name."""
    found = verification.verify(memory_id)
    with all_steps_are_long():
        assert verification.verify(memory_id) == found
    return found
