"""Every read, as frozen rows: nothing here is lazy, and nothing writes.

"At step n" means after that step; without a step, now. Step 0 is the empty conversation.
"""

from chatmemory.queries.conversations import (
    any_memory,
    is_writable,
    memories,
    memory,
)
from chatmemory.queries.cursors import CursorPage
from chatmemory.queries.history import (
    history,
    mentions,
    message,
    nearest,
    said,
)
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
    Departure,
    MemoryRow,
    MessageRow,
    Page,
    StayRow,
    StepRow,
    StepView,
    WindowPlace,
    WindowRow,
    WindowView,
    memory_row,
    step_row,
)
from chatmemory.queries.steps import (
    arrivals_at,
    evictions_around,
    step,
    steps,
)
from chatmemory.queries.timeline import (
    TAPE_SAMPLES,
    TapeCell,
    sample,
    tape,
)
from chatmemory.queries.windows import (
    beginnings,
    calls_in,
    open_messages,
    outline,
    window,
)

__all__ = [
    "ORDERINGS",
    "TAPE_SAMPLES",
    "CursorPage",
    "Departure",
    "FeedItem",
    "MemoryFilter",
    "MemoryRow",
    "MessageRow",
    "Overview",
    "OverviewRow",
    "OverviewStats",
    "Page",
    "StayRow",
    "StepRow",
    "StepView",
    "TapeCell",
    "WindowPlace",
    "WindowRow",
    "WindowView",
    "any_memory",
    "arrivals_at",
    "beginnings",
    "calls_in",
    "evictions_around",
    "feed",
    "history",
    "is_writable",
    "memories",
    "memory",
    "memory_page",
    "memory_row",
    "mentions",
    "message",
    "nearest",
    "newest_eviction",
    "open_messages",
    "outline",
    "overview",
    "overview_stats",
    "said",
    "sample",
    "step",
    "step_row",
    "steps",
    "tape",
    "window",
]
