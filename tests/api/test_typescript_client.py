"""A program in TypeScript carries out calls of the API; tests/browser/test_mounted.py runs it
against mounted pages, too.
"""

from __future__ import annotations

from ..typescript import run_client, with_typescript


@with_typescript
def test_a_client_compiles_and_its_calls_are_carried_out(shared_server, tmp_path):
    run_client(shared_server.url, shared_server.token, tmp_path)
