"""Forecasts: what adding messages would do, in the conditional because nothing has happened."""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory.core.long_lists import seqs_of
from chatmemory.explain.captions import Caption
from chatmemory.explain.misfits import why_no_fit
from chatmemory.explain.wording import counted, seqs
from chatmemory.ledger.changes import ChangeResult


def forecast(changes: Sequence[ChangeResult], hidden: Sequence[int] = ()) -> Caption:
    """Return what simulated changes would do; `hidden` is what a lower limit alone would hide."""
    misfits = [(change, change.misfit) for change in changes if change.misfit]
    too_big = {misfit.seq for _, misfit in misfits}
    leaving = [seq for change in changes for seq in seqs_of(change.evicted)]
    if too_big:
        leaving = [seq for seq in leaving if seq not in too_big]
    leaving = leaving or list(hidden)
    loss = counted(len(leaving), "message") if leaving else ""
    if misfits:
        also = f" Would also evict {loss}: {seqs(leaving)}." if leaving else ""
        return Caption("Too big", detail=f"{why_no_fit(*misfits[-1])}{also}")
    if not leaving:
        return Caption("Fits", detail="Nothing would leave.")
    return Caption("Would evict", loss=loss, detail=seqs(leaving))
