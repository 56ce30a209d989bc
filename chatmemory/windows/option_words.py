"""Names the options of a policy in a few words, such as `trimmed to 50 % when full`. Pages write
these words after the policy's limit.
"""

from __future__ import annotations

from chatmemory.windows.policies import WHOLE, Policy
from chatmemory.windows.stored_policies import can_decide


def option_words(policy: Policy | None) -> list[str]:
    """Return the options that differ from their defaults and change which messages leave, each in a
    few words. [] if there is no policy, or if its kind or an option is not installed.
    """
    if not can_decide(policy):
        return []
    words = {
        "rejecting oversized messages": policy.rejects_oversized,
        "keeping oversized messages": policy.keeps_newest,
        "leaving out interrupted tool calls": policy.recovers,
        "only measured": policy.meters_only,
        "system message kept first": policy.always_keep_system_message_first,
        "system message free": policy.free_system,
        f"indexing up to {policy.indexed_terms:,} terms of what left": policy.indexed_terms > 0,
    }
    return [*varied_words(policy), *_chosen(words)]


def varied_words(policy: Policy) -> list[str]:
    """Return words for the options `low_water`, `snap_to_user` and `clear_tool_results` of a
    policy, such as `trimmed to 50 % when full`. Options with their default value are left out.
    """
    words = {
        f"trimmed to {(policy.low_water * 100).normalize():f} % when full": (
            policy.low_water != WHOLE
        ),
        "starting at a user message": policy.snap_to_user,
        f"clearing tool results but the newest {policy.whole_results:,}": policy.whole_results > 0,
    }
    return _chosen(words)


def _chosen(words: dict[str, bool]) -> list[str]:
    return [each for each, is_chosen in words.items() if is_chosen]
