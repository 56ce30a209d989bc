"""How memory goes back to the system: glibc's allocator keeps what large answers used.

glibc maps a large block on its own and unmaps it when it is freed, but each one freed raises the
size from which it does so, up to 32 MB (mallopt(3), M_MMAP_THRESHOLD). From then on large blocks
come from the heaps of threads, where freed ones stay between what lives longer.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

_M_MMAP_THRESHOLD = -3
LARGE = 256 * 1024  # bytes


def unmap_large_blocks() -> None:
    """Have every block of 256 kB or more unmapped when it is freed; other libraries stay as they
    are.
    """
    with suppress(OSError, TypeError, AttributeError):  # not glibc
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE)
