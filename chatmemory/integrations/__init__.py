"""Memories for agent frameworks. Each module needs the framework that it is named after."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from chatmemory.formats import Loss
from chatmemory.memories.memory import ChatMemory

logger = logging.getLogger(__name__)


def tell(memory: ChatMemory, losses: Iterable[Loss]) -> None:
    """Log the details of a framework's messages that a memory could not keep."""
    for loss in losses:
        logger.warning("lost in memory %r, %s: %s", memory.id, loss.where, loss.what)
