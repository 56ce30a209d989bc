"""What a stored window may hold after a change, so that everything inside can be a plain list."""

from __future__ import annotations

from chatmemory.conf import configuration
from chatmemory.core.exceptions import WindowTooLarge


def check_bounds(messages: int, size: int) -> None:
    """Raise WindowTooLarge for a window of too many messages, or bytes of their JSON."""
    given = configuration()
    for found, most, setting, unit in (
        (messages, given.WINDOW_MESSAGES, "WINDOW_MESSAGES", "messages"),
        (size, given.WINDOW_BYTES, "WINDOW_BYTES", "bytes"),
    ):
        if found > most:
            raise WindowTooLarge(
                f'the window would hold {found:,} {unit}, and CHATMEMORY["{setting}"] allows '
                f"{most:,}: lower the limit of its policy, or clear it"
            )
