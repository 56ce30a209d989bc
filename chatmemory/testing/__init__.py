"""Memory as a test: what a policy makes of recorded conversations, asserted by tests of a project.

`recorded.py` reads a conversation under a policy, `judging.py` says in sentences what is wrong with
it, `asserting.py` raises these sentences, `figures.py` compares the figures of whole folders with a
baseline, and `snippets.py` writes a test as text. Nothing here needs Django or a database. The
plugin for pytest is the package `pytest_chatmemory`; `chatmemory check` does the same without
pytest.
"""
