"""Counts of work: growth with the number of messages already shows at a few hundred of them.

Garbage is not collected during a count: its calls are not the work of the block.
"""

from __future__ import annotations

import gc
import sys
from types import FrameType
from typing import Any


class CountedLines:
    """Counts the lines that are executed in its blocks. A loop on one line counts once for each
    round.
    """

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> CountedLines:
        gc.disable()
        sys.settrace(self._traced)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        gc.enable()

    def _traced(self, _: FrameType, event: str, __: object) -> Any:
        self.count += event == "line"
        return self._traced
