"""Places where a memory's messages live. Each module is one implementation of `ChatMemoryStore`."""
