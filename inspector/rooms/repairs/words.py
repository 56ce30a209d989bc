"""The totals of a preview of repairs, in words."""

from __future__ import annotations

from inspector.rooms.repairs.writes import Repairs


def repair_sums(repairs: Repairs) -> list[tuple[str, str]]:
    """Return the totals of a preview of repairs as pairs of name and value."""
    count, all_of_them = len(repairs.done), len(repairs.done) + len(repairs.refused)
    found = [
        (
            "Conversations accepted after the repair (each one checked)",
            f"{count:,} of {all_of_them:,}",
        )
    ]
    if count:
        found.append(
            (
                "Messages that leave memory, on average per conversation",
                f"{repairs.leaving / count:.1f}",
            )
        )
    return found
