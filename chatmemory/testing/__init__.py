"""Assertions for tests of a project: how does a policy treat recorded conversations?

- `recorded.py` replays a conversation under a policy.
- `judging.py` finds faults, and returns a sentence about each fault. `asserting.py` raises errors
  with these sentences.
- `figures.py` compares the figures of whole folders with a baseline.
- `snippets.py` writes a test as text.

Nothing here needs Django or a database. The plugin for pytest is the package `pytest_chatmemory`.
`chatmemory check` makes the same assertions without pytest.
"""
