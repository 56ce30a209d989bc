"""*Copy as test*: turns a statement that a page makes about a conversation into the code of a
test.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory import Policy, can_decide
from chatmemory.testing import snippets


def copied_test(
    memory_id: str, policy: Policy | None, about: str, assertions: Sequence[str], why: str = ""
) -> str:
    """Return the code of a test that makes these assertions about a conversation, such as
    `holds("A-1182", at=45)`. Return "" if there is no policy, or if the policy's kind is not
    installed.

    The test replays the history under the policy. If the policy only measures (`meters_only`), the
    test enforces its limit. `about` becomes a part of the test's name, and `why` a comment in the
    test.
    """
    if not can_decide(policy):
        return ""
    return snippets.as_test(memory_id, policy.enforced(), about, assertions, why)


def copied_incident(
    memory_id: str, policy: Policy | None, kind: str, fact: str, message_count: int, why: str
) -> str:
    """Return the code of a test that asserts that no incident of this kind, such as
    "user_repeated", happens. Return "" if there is no policy, or if the policy's kind is not
    installed.

    `message_count` is the number of messages in history before the message that repeats the fact.
    With a `fact`, the test also asserts that memory holds the fact after these messages. `why`
    becomes a comment in the test.
    """
    assertions = [snippets.holds(fact, message_count)] if fact else []
    asserted = [*assertions, snippets.no_incident(kind)]
    return copied_test(memory_id, policy, f"keeps {fact}" if fact else kind, asserted, why)
