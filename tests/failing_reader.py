"""A format whose reader fails, as nobody expected: `{"lines": [{"said": …}, …]}`."""

from __future__ import annotations

from typing import Any

from chatmemory.formats import Format, RawTranscript, Reader
from chatmemory.messages.message import UserMessage


class _Failing(Reader):
    """Fails for every text but "no"."""

    def read(self, turn: Any) -> Any:
        yield UserMessage({"no": turn["said"]}[turn["said"]])


FAILING = Format(
    "failing",
    find=lambda value: (
        RawTranscript(None, value["lines"])
        if isinstance(value, dict) and "lines" in value
        else None
    ),
    parse=lambda turns, after: _Failing().read_all(turns, after),
)
