"""Strategies: measures what the memories of agent frameworks would have remembered, and what their
prompts would have cost.

A strategy decides, before each model call, which messages are sent. Each strategy here is a
library's own class or function, run over a history message by message; a library trims by its own
token count. All costs are counted by one tokenizer, so that strategies can be compared. No model is
asked: each summary is replaced by another text, which contains no facts by default.

A package adds a strategy of its own by an entry point of the group `chatmemory.strategies`: a
function that takes the messages so far and returns the messages that would be sent.
"""

import chatmemory.messages  # noqa: F401  (refuses another package named chatmemory in its place)
from chatmemory.strategies.catalog import (
    STRATEGIES,
    Strategy,
    all_strategies,
    chosen_strategies,
    measured_by,
)
from chatmemory.strategies.measuring import Conversation, Measured, everything_of, measure
from chatmemory.strategies.runs import Run, Settings
from chatmemory.strategies.summaries import StandIn, Summary

__all__ = [
    "STRATEGIES",
    "Conversation",
    "Measured",
    "Run",
    "Settings",
    "StandIn",
    "Strategy",
    "Summary",
    "all_strategies",
    "chosen_strategies",
    "everything_of",
    "measure",
    "measured_by",
]
