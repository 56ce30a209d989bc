"""Pages whose texts are in the folder `golden`."""

from __future__ import annotations

from tests.golden.states import State

LESSON = "/learn/message-window/"
STATES = {
    "lessons": State("/learn/", by="stranger"),
    "lesson-asked": State(f"{LESSON}?step=1", by="stranger"),
    "lesson-right": State(f"{LESSON}?step=1&leaves=1&check=1", by="stranger"),
    "lesson-wrong": State(f"{LESSON}?step=1&leaves=3&check=1", by="stranger"),
    "lesson-summary": State("/learn/what-a-summary-forgets/?step=3&answer=3", by="stranger"),
    "lesson-presented": State(f"{LESSON}present/?screen=2", by="stranger"),
    "playground": State("/learn/playground/?sample=message-window", by="stranger"),
}
