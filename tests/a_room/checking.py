from __future__ import annotations

from chatmemory.contradictions import Contradicted, LedgerCheck


class Suspicious(LedgerCheck):
    def end(self) -> None:
        raise Contradicted("the room", "is suspicious")
