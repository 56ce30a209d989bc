"""Strategies: measures what the memories of agent frameworks would have remembered, and what their
prompts would have cost.

A strategy decides which messages are sent in each model call. It is a framework's own class or
function, run over a history message by message. It trims by the framework's token count, but all
costs are counted by one estimator. No model is called: another text replaces each summary.

A package adds a strategy by an entry point in the group `chatmemory.strategies`: a function that
takes the messages so far, and returns those to send.
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
