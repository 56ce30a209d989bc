"""Returns the memory of large answers to the operating system.

glibc maps a large block separately and unmaps it when it is freed. But each freed block raises the
minimum size of such blocks, up to 32 MB (mallopt(3), M_MMAP_THRESHOLD). Larger blocks then come
from the heaps of threads, which keep them.
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
