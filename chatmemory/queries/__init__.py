"""All reads. They return frozen dataclasses, never lazy query sets, and write nothing.

"At step n" means after that step; without a step, it means now. Step 0 is the empty conversation.
"""

from chatmemory.core.lint import Verdict
from chatmemory.core.recall.comparison import Compared
from chatmemory.core.recall.figures import LimitPoint
from chatmemory.core.recall.figures import smallest as smallest_limit
from chatmemory.core.recall.phrases import Followed
from chatmemory.core.recall.scores import Use
from chatmemory.core.speakers import Speaker
from chatmemory.core.window import Counted, Totals
from chatmemory.managers import CLIENT, Flag
from chatmemory.queries.branches import branches, copies
from chatmemory.queries.comparing import (
    COMPARED_MAX,
    POLICIES_MAX,
    ComparedRow,
    Comparison,
    comparison,
    comparison_of,
)
from chatmemory.queries.conversation_state import (
    TEXT_SIZE,
    ConversationQuery,
    ConversationState,
    conversation_state,
    simulated_state,
)
from chatmemory.queries.conversations import (
    any_memory,
    free_disk_space,
    is_writable,
    memories,
    memory,
    policy,
    unreachable_nodes,
)
from chatmemory.queries.counts import (
    OverviewStats,
    count,
    count_each,
    outside,
    overview_stats,
)
from chatmemory.queries.cursors import CursorPage
from chatmemory.queries.feed import (
    FeedItem,
    feed,
    moment,
    newest_change,
    newest_change_or_erasure,
)
from chatmemory.queries.filters import MemoryFilter
from chatmemory.queries.history import Part, WholeHistory, history, message, said, whole_history
from chatmemory.queries.incidents import IncidentsUntil, incidents
from chatmemory.queries.keeping import WhatWouldKeep
from chatmemory.queries.lab import (
    FileFleet,
    Fleet,
    FleetLists,
    FleetQuery,
    Loser,
    PolicyAdoption,
    Repeat,
    adopting,
    fleet,
    fleet_lists,
)
from chatmemory.queries.over_limits import HIDDEN_MAX
from chatmemory.queries.overview import (
    ORDERINGS,
    OverviewRow,
    all_memories,
    memory_page,
    overview,
    overview_rows,
)
from chatmemory.queries.phrase import MATCHES_MAX, PhraseMatches, Turn
from chatmemory.queries.pinning import PinPreview, pin_preview
from chatmemory.queries.recalling import READ_AT_ONCE, recall_history, recall_of_stored
from chatmemory.queries.recalling import sums as recall_sums
from chatmemory.queries.rehearsal import Line, Scene, rehearse
from chatmemory.queries.rows import (
    MemoryRow,
    MessageRow,
    Page,
    StayRow,
    StepDetail,
    StepRow,
    memory_row,
    step_row,
)
from chatmemory.queries.searching import MENTIONS_COUNTED, Mention
from chatmemory.queries.simulation import (
    Outlook,
    Simulation,
    Trial,
    simulate,
    simulate_trial,
    trial,
)
from chatmemory.queries.step_samples import (
    Arrival,
    StepPoint,
    StepPoints,
    StepSample,
    StepSamples,
    step_samples,
)
from chatmemory.queries.steps import step, steps
from chatmemory.queries.windows import (
    NoRoom,
    WindowPlace,
    WindowRow,
    WindowView,
    outline,
    window,
)
from chatmemory.search import searches_messages

__all__ = [
    "CLIENT",
    "COMPARED_MAX",
    "HIDDEN_MAX",
    "MATCHES_MAX",
    "MENTIONS_COUNTED",
    "ORDERINGS",
    "POLICIES_MAX",
    "READ_AT_ONCE",
    "TEXT_SIZE",
    "Arrival",
    "Compared",
    "ComparedRow",
    "Comparison",
    "ConversationQuery",
    "ConversationState",
    "Counted",
    "CursorPage",
    "FeedItem",
    "FileFleet",
    "Flag",
    "Fleet",
    "FleetLists",
    "FleetQuery",
    "Followed",
    "IncidentsUntil",
    "LimitPoint",
    "Line",
    "Loser",
    "MemoryFilter",
    "MemoryRow",
    "Mention",
    "MessageRow",
    "NoRoom",
    "Outlook",
    "OverviewRow",
    "OverviewStats",
    "Page",
    "Part",
    "PhraseMatches",
    "PinPreview",
    "PolicyAdoption",
    "Repeat",
    "Scene",
    "Simulation",
    "Speaker",
    "StayRow",
    "StepDetail",
    "StepPoint",
    "StepPoints",
    "StepRow",
    "StepSample",
    "StepSamples",
    "Totals",
    "Trial",
    "Turn",
    "Use",
    "Verdict",
    "WhatWouldKeep",
    "WholeHistory",
    "WindowPlace",
    "WindowRow",
    "WindowView",
    "adopting",
    "all_memories",
    "any_memory",
    "branches",
    "comparison",
    "comparison_of",
    "conversation_state",
    "copies",
    "count",
    "count_each",
    "feed",
    "fleet",
    "fleet_lists",
    "free_disk_space",
    "history",
    "incidents",
    "is_writable",
    "memories",
    "memory",
    "memory_page",
    "memory_row",
    "message",
    "moment",
    "newest_change",
    "newest_change_or_erasure",
    "outline",
    "outside",
    "overview",
    "overview_rows",
    "overview_stats",
    "pin_preview",
    "policy",
    "recall_history",
    "recall_of_stored",
    "recall_sums",
    "rehearse",
    "said",
    "searches_messages",
    "simulate",
    "simulate_trial",
    "simulated_state",
    "smallest_limit",
    "step",
    "step_row",
    "step_samples",
    "steps",
    "trial",
    "unreachable_nodes",
    "whole_history",
    "window",
]
