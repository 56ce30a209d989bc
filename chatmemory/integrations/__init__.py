"""Memories for agent frameworks. Each module is named after the framework that it needs."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from chatmemory.formats import Loss
from chatmemory.memories.memory import ChatMemory

logger = logging.getLogger(__name__)


def tell(memory: ChatMemory, losses: Iterable[Loss]) -> None:
    """Log a warning for each loss. A loss is a detail of a framework's message that the memory
    could not store.
    """
    for loss in losses:
        logger.warning(
            "memory %r could not store a part of a message, %s: %s",
            memory.id,
            loss.where,
            loss.what,
        )
