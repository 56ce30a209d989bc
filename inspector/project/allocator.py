"""Returns the memory of large responses to the operating system.

glibc maps a large block separately and unmaps the block when it is freed. But each freed block
raises the size from which blocks are mapped separately, up to 32 MB (mallopt(3), M_MMAP_THRESHOLD).
Then more blocks come from the heaps of threads, and a heap keeps its memory.
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
