"""The example conversation: what each strategy loses of it first."""

from __future__ import annotations

import json

from benchmarks.strategies.corpora import ROOT
from chatmemory.formats import parse_messages
from chatmemory.messages.estimators import estimator_for
from chatmemory.reports.strategies import conversation_of
from chatmemory.strategies import Settings, chosen_strategies, measure
from chatmemory.windows.policies import DEFAULT_ESTIMATOR

NAME = "order-7741"
SETTINGS = Settings(800, 10, estimator_for(DEFAULT_ESTIMATOR))


def lost_first() -> dict[str, str]:
    """Return the first fact that each strategy loses, or an empty text."""
    file = ROOT / f"inspector/demo/{NAME}.json"
    script = json.loads(file.read_text("utf-8"))["script"]
    said = parse_messages([each for each in script if "policy" not in each], "openai_chat").messages
    talk = conversation_of(said)
    return {
        each.name: measure(talk, each.run(SETTINGS)).first_lost
        for each in chosen_strategies("")
        if each.is_installed
    }
