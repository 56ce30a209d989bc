"""A TypeScript client with types that openapi-typescript generates from the document of a real
server. It is compiled with the code of docs/typescript.md, and run. `make typescript` installs its
tools.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / ".node/node_modules"
DOCS = ROOT / "docs/typescript.md"
CLIENT = Path(__file__).parent / "typescript"

pytestmark = pytest.mark.skipif(
    not PACKAGES.is_dir() and "CI" not in os.environ, reason="make typescript has not been run"
)


def node(folder: Path, *command: str) -> None:
    done = subprocess.run(["node", *command], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_client_compiles_and_its_calls_are_carried_out(shared_server, tmp_path):
    document = shared_server.api.get(f"{shared_server.url}/api/v1/schema/?format=json")
    (tmp_path / "openapi.json").write_bytes(document.content)
    for name in ("package.json", "tsconfig.json", "client.ts"):
        shutil.copy(CLIENT / name, tmp_path)
    (of_docs,) = re.findall(
        r"^```ts\n(.*?)^```$", DOCS.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    (tmp_path / "docs.ts").write_text(of_docs, "utf-8")
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    node(tmp_path, "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "-o", "api.d.ts")
    node(tmp_path, "node_modules/typescript/bin/tsc")
    node(tmp_path, "client.js", shared_server.url, shared_server.token)
