"""Measures strategies: which facts their prompts would have had, and what the prompts would have
cost.

A strategy, such as `trim_messages` of the framework LangChain, decides which messages are sent in
each model call. The framework's own code runs over a history, message by message. By default, the
framework counts tokens in its own way. The costs of all strategies are counted by one estimator. No
model is called: a stand-in text replaces each summary (see `StandIn`).

A package can add a strategy by an entry point in the group `chatmemory.strategies`. The entry point
is a function that takes the messages so far, and returns the messages to send.
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
