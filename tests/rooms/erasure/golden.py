"""Pages whose texts are in the folder `golden`."""

from __future__ import annotations

from tests.golden.states import State

STATES = {"redact-asked": State("/c/classroom/redact/2/", form={})}
