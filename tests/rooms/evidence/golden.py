"""Pages whose texts are in the folder `golden`."""

from __future__ import annotations

from tests.golden.states import State

STATES = {
    "compacted": State("/c/compacted/?at=5&terms=1"),
    "lab-compactions": State("/lab/compactions/?level=told"),
}
