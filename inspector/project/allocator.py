"""Makes the memory of large responses return to the operating system.

By default, glibc returns a freed large block only if the block was mapped separately. Each freed
block raises the size from which blocks are mapped separately, up to 32 MB. Smaller blocks then come
from heaps, which keep their memory. Source: mallopt(3), M_MMAP_THRESHOLD.
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
