"""Pages whose texts are in the folder `golden`."""

from __future__ import annotations

from functools import partial

from inspector.rooms.lab import writes
from tests.golden.states import State


def prepare(monkeypatch) -> None:
    """Let all figures be computed at once, on a slow machine, too."""
    patient = partial(writes.compute_figures, seconds=60)
    monkeypatch.setattr(writes, "compute_figures", patient)


STATES = {
    "lab-not-computed": State("/lab/"),
    "lab": State("/lab/", form={"kind": "token_window"}),
    "lab-limit": State("/lab/?limit=800&input=2.5"),
    "lab-adopt": State("/lab/adopt/", form={"kind": "token_window", "limit": "800"}),
}
