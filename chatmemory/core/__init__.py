"""The core: pure Python without Django or I/O. It imports no other part of chatmemory."""
