"""*Copy as test*: what a page says of a conversation, as a test of a project."""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory import Policy, can_decide
from chatmemory.queries import ConversationState
from chatmemory.testing import snippets


def copied_test(
    memory_id: str, policy: Policy | None, about: str, assertions: Sequence[str], why: str = ""
) -> str:
    """Return the text of a test under a policy; empty where no policy decides, as a test replays
    what was said.
    """
    if not can_decide(policy):
        return ""
    return snippets.as_test(memory_id, policy.enforced(), about, assertions, why)


def copied_phrase(state: ConversationState, why: str) -> str:
    """Return that memory holds the phrase of a search at the step; empty if nothing says it."""
    if state.is_simulated or not state.mentions.speakers or state.detail is None:
        return ""
    row = state.detail.row
    at = None if row.n == state.memory.last_step else row.said_count
    phrase = state.query.find
    return copied_test(
        state.memory.id, row.policy, f"remembers {phrase}", [snippets.holds(phrase, at)], why
    )
