"""Makes glibc return the memory of large responses to the operating system.

glibc gets a large block from the system by mmap, and returns the block as soon as it is freed. All
other blocks come from heaps, which keep freed memory.

By default, the minimum size for mmap can grow: freeing a larger block raises the minimum to the
size of this block, up to 32 MB. Then large responses come from heaps. A fixed minimum prevents
this. Source: mallopt(3), M_MMAP_THRESHOLD.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

_M_MMAP_THRESHOLD = -3
LARGE = 2**20  # bytes


def unmap_large_blocks() -> None:
    """Make glibc unmap each block of a megabyte or more when it is freed. No effect with other C
    libraries.
    """
    with suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE)
