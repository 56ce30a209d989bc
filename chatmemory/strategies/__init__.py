"""Strategies: what the memory of an agent framework would have held of a conversation, and what
its prompts would have cost.

A strategy decides, before each model call, which messages are sent. Each of them here is a
library's own class or function, run over a history message by message, and a library trims by its
own count. All costs are counted by one tokenizer, so that strategies can be compared. Without a
model, each summary is a stand-in, which holds nothing by default.

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
