"""Archives of an earlier version come back as they were, and verify.

`archives.json.xz` was exported by commit dcf347be after random operations (tests/any_operations.py,
45 for each of the seeds 1, 2, 21, 25, 32, 36, 3, 4, 5 and 6). That version cleared redacted results
in another way, and lost the text of a stub whose attributes a client changed; then it contradicted
its own ledgers. It accused the first six, which are whole. In the last archive, a turn
window dropped a question beside a pinned summary, and kept its answer.
"""

from __future__ import annotations

import json
import lzma
from io import BytesIO
from pathlib import Path

import pytest

from chatmemory.ledger.verification import verify
from chatmemory.messages.message import text_of
from chatmemory.models import Memory, Message, Stay
from chatmemory.reading import windows
from inspector.rooms.transfer.archives import import_archive
from inspector.rooms.transfer.exports import archive_lines

pytestmark = pytest.mark.database

FILE = Path(__file__).with_name("archives.json.xz")
ARCHIVES: list[list[str]] = json.loads(lzma.decompress(FILE.read_bytes()))


def imported(lines: list[str]) -> list[str]:
    """Import an archive, and return the ids of its conversations."""
    file = BytesIO("".join(f"{each}\n" for each in lines).encode())
    assert [each.refused for each in import_archive(file) if each.refused] == []
    return list(Memory.objects.order_by("created_at").values_list("pk", flat=True))


@pytest.mark.parametrize("lines", ARCHIVES, ids=range(len(ARCHIVES)))
def test_an_earlier_archive_is_imported_and_verified(db, lines):
    ids = imported(lines)
    assert [verify(memory_id) for memory_id in ids] == [None] * len(ids)
    assert list(archive_lines(ids)) == lines


@pytest.mark.parametrize("lines", ARCHIVES[:2], ids=range(2))
def test_earlier_stubs_of_redacted_results_show_the_tombstone(db, lines):
    imported(lines)
    redacted = {row.seq: row.redacted_step for row in Message.objects.exclude(redacted_step=None)}
    stubs = Stay.objects.filter(seq__in=redacted, overrides__isnull=False)
    stubs = [stay for stay in stubs if stay.entered_step > redacted[stay.seq]]
    assert stubs, "they began after the redaction, as earlier versions made them"
    for stay in stubs:
        shown = windows.window(stay.memory_id, stay.entered_step)
        places = [place for place, row in enumerate(shown.rows) if row.seq == stay.seq]
        assert [text_of(shown.messages[place]) for place in places] == [f"[redacted #{stay.seq}]"]
