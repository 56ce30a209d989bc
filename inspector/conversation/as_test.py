"""*Copy as test*: turns a statement of a page about a conversation into the code of a test."""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory import Policy, can_decide
from chatmemory.testing import snippets


def copied_test(
    memory_id: str, policy: Policy | None, about: str, assertions: Sequence[str], why: str = ""
) -> str:
    """Return the code of a test with these assertions about a conversation under a policy; "" if no
    policy decides the window.

    The test replays the history. If the policy only measures, the test enforces its limit. `about`
    names the test, and `why` becomes a comment in the test.
    """
    if not can_decide(policy):
        return ""
    return snippets.as_test(memory_id, policy.enforced(), about, assertions, why)


def copied_incident(
    memory_id: str, policy: Policy | None, kind: str, fact: str, message_count: int, why: str
) -> str:
    """Return the code of a test, which asserts that no incident of this kind happens.

    If a `fact` is given, the test also asserts that memory holds the fact after the first
    `message_count` messages: the messages before the fact was repeated.
    """
    assertions = [snippets.holds(fact, message_count)] if fact else []
    asserted = [*assertions, snippets.no_incident(kind)]
    return copied_test(memory_id, policy, f"keeps {fact}" if fact else kind, asserted, why)
