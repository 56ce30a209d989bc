from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from chatmemory.room import Erased, Recorded
from inspector.shell import room

if TYPE_CHECKING:
    from chatmemory.contradictions import LedgerCheck
    from chatmemory.models import Memory


class Integrity(room.SiteRoom):
    name = "inspector.rooms.integrity"
    verbose_name = "Integrity"
    services: Mapping[str, str] = {"verify_head": "inspector.rooms.integrity.checking"}

    def sealing(self, change: Recorded) -> None:
        from inspector.rooms.integrity.chain import seal

        seal(change)

    def erasing(self, erased: Erased) -> None:
        """Raise CorruptRow if a message to redact was altered, because the redaction would hide the
        alteration.
        """
        from inspector.rooms.integrity.chain import check_commitments

        check_commitments(erased.memory_id, erased.seqs or ())

    def verifying(self, memory: Memory) -> LedgerCheck:
        from inspector.rooms.integrity.checking import ChainCheck

        return ChainCheck(memory)
