"""All reads. They return frozen dataclasses, never lazy query sets, and write nothing.

"At step n" means after that step; without a step, it means now. Step 0 is the empty conversation.
"""

from chatmemory.core.lint import Verdict
from chatmemory.managers import CLIENT
from chatmemory.queries.conversation_state import (
    TEXT_SIZE,
    ConversationQuery,
    ConversationState,
    Mentions,
    conversation_state,
    simulated_state,
)
from chatmemory.queries.conversations import any_memory, is_writable, memories, memory
from chatmemory.queries.cursors import CursorPage
from chatmemory.queries.history import Part, history, message, said
from chatmemory.queries.overview import (
    ORDERINGS,
    FeedItem,
    MemoryFilter,
    Overview,
    OverviewRow,
    OverviewStats,
    feed,
    memory_page,
    newest_eviction,
    overview,
    overview_stats,
)
from chatmemory.queries.rows import (
    MemoryRow,
    MessageRow,
    Page,
    StayRow,
    StepDetail,
    StepRow,
    WindowPlace,
    WindowRow,
    WindowView,
    memory_row,
    step_row,
)
from chatmemory.queries.simulation import Simulation, simulate
from chatmemory.queries.step_samples import StepSample, sample_numbers, step_samples
from chatmemory.queries.steps import step, steps
from chatmemory.queries.windows import outline, window

__all__ = [
    "CLIENT",
    "ORDERINGS",
    "TEXT_SIZE",
    "ConversationQuery",
    "ConversationState",
    "CursorPage",
    "FeedItem",
    "MemoryFilter",
    "MemoryRow",
    "Mentions",
    "MessageRow",
    "Overview",
    "OverviewRow",
    "OverviewStats",
    "Page",
    "Part",
    "Simulation",
    "StayRow",
    "StepDetail",
    "StepRow",
    "StepSample",
    "Verdict",
    "WindowPlace",
    "WindowRow",
    "WindowView",
    "any_memory",
    "conversation_state",
    "feed",
    "history",
    "is_writable",
    "memories",
    "memory",
    "memory_page",
    "memory_row",
    "message",
    "newest_eviction",
    "outline",
    "overview",
    "overview_stats",
    "said",
    "sample_numbers",
    "simulate",
    "simulated_state",
    "step",
    "step_row",
    "step_samples",
    "steps",
    "window",
]
