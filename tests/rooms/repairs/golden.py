"""Pages whose texts are in the folder `golden`."""

from __future__ import annotations

from tests.golden.states import State

STATES = {"repair": State("/c/client/repair/?provider=openai")}
