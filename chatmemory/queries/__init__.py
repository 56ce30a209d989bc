"""All reads. They return frozen dataclasses, never lazy query sets, and write nothing.

"At step n" means after that step; without a step, it means now. Step 0 is the empty conversation.
"""

from chatmemory.core.lint import PROVIDERS, Verdict
from chatmemory.core.phrases import Speaker
from chatmemory.core.recall import recall_sums
from chatmemory.core.recall.comparison import Compared, Followed
from chatmemory.core.recall.cost import Bill, Provider, providers
from chatmemory.core.recall.facts import examples_first
from chatmemory.core.recall.history import Use
from chatmemory.core.recall.incidents import incidents_under
from chatmemory.core.recall.kinds import WORDS as KIND_WORDS
from chatmemory.core.recall.kinds import IncidentKind
from chatmemory.core.window import Totals, Weighable
from chatmemory.distribution import unreachable_nodes
from chatmemory.flags import Flag, flag_named, flags
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.managers import CLIENT
from chatmemory.queries.adoption import PolicyAdoption, adopting
from chatmemory.queries.budget import Budget, budget_at, budget_of, budget_of_all
from chatmemory.queries.cases import DAYS, Cases, cases_of, newest_policy_change
from chatmemory.queries.conversation_state import (
    TEXT_SIZE,
    ConversationQuery,
    ConversationState,
    conversation_state,
)
from chatmemory.queries.conversations import (
    any_memory,
    branches,
    copies,
    free_disk_space,
    is_writable,
    memories,
    memory,
    policy,
)
from chatmemory.queries.costs import CostsByStep, costs_by_step
from chatmemory.queries.cursors import CursorPage
from chatmemory.queries.feed import (
    FeedItem,
    feed,
    microseconds,
    newest_change,
    newest_change_or_erasure,
)
from chatmemory.queries.history import (
    Part,
    WholeHistory,
    history,
    message,
    message_by_client_id,
    said,
    whole_history,
)
from chatmemory.queries.keeping import WhatWouldKeep
from chatmemory.queries.overview import (
    OverviewRow,
    OverviewStats,
    all_memories,
    count,
    count_each,
    count_with_any,
    memory_page,
    orderings,
    outside,
    overview_page,
    overview_rows,
    overview_stats,
)
from chatmemory.queries.phrase import MATCHES_MAX, PhraseMatches, Remembered, TurningPoint
from chatmemory.queries.recall import (
    COMPARED_MAX,
    FACTS_ENOUGH,
    POLICIES_MAX,
    READ_AT_ONCE,
    ComparedRow,
    Comparison,
    advised,
    comparison,
    histories_today,
    recall_history,
    recall_of_stored,
)
from chatmemory.queries.rows import MemoryRow, MessageDetail, StayDetail, StepRow, memory_row
from chatmemory.queries.searching import MENTIONS_COUNTED, BestMatch, MemoryFilter
from chatmemory.queries.simulation import (
    Outlook,
    PinPreview,
    Simulation,
    pin_preview,
    simulate,
)
from chatmemory.queries.steps import (
    Arrival,
    StepPoint,
    StepSample,
    step,
    step_at_time,
    step_samples,
    steps,
)
from chatmemory.queries.summaries import StandsFor, stands_for, summaries_holding
from chatmemory.queries.windows import (
    NoRoom,
    WindowPlace,
    WindowRow,
    WindowView,
    outline,
    window,
    window_in_parts,
)
from chatmemory.search import searches_messages
