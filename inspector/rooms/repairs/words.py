"""The sums of a preview in words."""

from __future__ import annotations

from chatmemory.explain.wording import percent
from inspector.rooms.repairs.recalled import Recalled
from inspector.rooms.repairs.writes import Repairs

HELD = "What the assistant needed and would still hold"


def repair_sums(repairs: Repairs, of_snapping: Recalled) -> list[tuple[str, str]]:
    """Return the sums of a preview of repairs, each with its name."""
    count, all_of_them = len(repairs.done), len(repairs.done) + len(repairs.refused)
    found = [("Taken afterwards, each one checked", f"{count:,} of {all_of_them:,}")]
    if count:
        found.append(("Messages that leave memory, on average", f"{repairs.leaving / count:.1f}"))
    if of_snapping.read:
        found += recall_sums(of_snapping, " if memory begins with a user message after each trim")
    return found


def recall_sums(found: Recalled, when: str = "") -> list[tuple[str, str]]:
    """Return the sums of facts that the assistant needed and memory holds, before and after."""
    if not found.recalls:
        return [(f"{HELD}{when}", "nothing was needed")]
    some = "" if found.read == found.of else f", in {found.read:,} of {found.of:,} conversations"
    before, after = (percent(each, found.recalls) for each in (found.before, found.after))
    facts = f"{found.before:,} → {found.after:,} of {found.recalls:,}"
    return [(f"{HELD}{when}", f"{before} → {after} ({facts}){some}")]
