"""A simulation that decides by columns what leaves tells what one that decides by entries tells."""

from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    ChatMemoryError,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    queries,
    services,
)

BRIEF = SystemMessage("Be brief.")
CALL = AiMessage("looking", [ToolExecutionRequest("1", "look", "{}")])
RESULT = ToolExecutionResultMessage("1", "look", "found")
TURN = [UserMessage("look for it"), CALL, RESULT, AiMessage("found it")]
WORDS = UserMessage("many words " * 40)
DRAFTS = {
    "user": [UserMessage("hello")],
    "system": [SystemMessage("Be long.")],
    "same": [BRIEF, UserMessage("hello")],
    "result": [RESULT],
    "call": [CALL, RESULT, UserMessage("thanks")],
    "later": [UserMessage("a"), BRIEF, SystemMessage("b"), WORDS],
    "large": [UserMessage("a"), *TURN, WORDS, UserMessage("b")],
}
OPTIONS = [
    {},
    {"low_water": 0.5},
    {"snap_to_user": True},
    {"oversized": "keep"},
    {"oversized": "reject"},
    {"always_keep_system_message_first": True, "low_water": 0.4, "snap_to_user": True},
]
ENDS = {"answer": [], "call": TURN[:2], "result": TURN[:3]}
LIMITS = [MessageWindow(n) for n in (18, 17, 13, 12, 4)] + [TokenWindow(n) for n in (60, 200)]


@pytest.mark.parametrize("pins", [(), (2,), (4, 8)], ids=str)
@pytest.mark.parametrize("end", ENDS)
def test_columns_and_entries_tell_the_same(db, end, pins):
    said = [BRIEF, *TURN, *TURN, *TURN, *ENDS[end]]
    for options in OPTIONS:
        memory_id = f"m-{OPTIONS.index(options)}"
        services.import_conversation(memory_id, said, MessageWindow(len(said), **options))
        for seq in pins:
            services.pin(memory_id, seq)
        for limit in (None, *LIMITS):
            policy = limit and type(limit)(limit.limit, **options)
            for name, drafts in DRAFTS.items():
                by_entries = outcome(memory_id, drafts, policy)
                with pytest.MonkeyPatch.context() as patched:
                    patched.setattr("chatmemory.core.trimming.FEW", 0)
                    assert outcome(memory_id, drafts, policy) == by_entries, (options, limit, name)


def outcome(memory_id, drafts, policy) -> object:
    """Return what a simulation tells, or how it is refused."""
    try:
        simulation = queries.simulate(memory_id, drafts, policy)
    except ChatMemoryError as error:
        return type(error), getattr(error, "index", None)
    return simulation.changes, simulation.remaining, simulation.totals
