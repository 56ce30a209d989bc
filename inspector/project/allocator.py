"""Memory of large answers goes back to the system.

glibc maps a large block on its own and unmaps it when it is freed. But each freed block raises the
size from which it does so, up to 32 MB (mallopt(3), M_MMAP_THRESHOLD). From then on large blocks
come from the heaps of threads, which keep them.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

_M_MMAP_THRESHOLD = -3
LARGE = 2**20  # bytes


def unmap_large_blocks() -> None:
    """Have each block of a megabyte or more unmapped when it is freed; no effect without glibc."""
    with suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE)
