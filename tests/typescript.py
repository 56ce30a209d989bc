"""A TypeScript client with types that openapi-typescript generates from the document of a real
server. `make typescript` installs its tools.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import requests

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / ".node/node_modules"
CLIENT = ROOT / "tests/api/typescript"

with_typescript = pytest.mark.skipif(
    not PACKAGES.is_dir() and "CI" not in os.environ, reason="make typescript has not been run"
)


def run_client(url: str, token: str, folder: Path) -> None:
    """Compile the client and the code of docs/typescript.md in `folder`, and run the client against
    the site at `url`.
    """
    bearer = {"Authorization": f"Bearer {token}"}
    document = requests.get(f"{url}/api/v1/schema/?format=json", headers=bearer, timeout=60)
    (folder / "openapi.json").write_bytes(document.content)
    for name in ("package.json", "tsconfig.json", "client.ts"):
        shutil.copy(CLIENT / name, folder)
    docs = (ROOT / "docs/typescript.md").read_text("utf-8")
    (of_docs,) = re.findall(r"^```ts\n(.*?)^```$", docs, re.DOTALL | re.MULTILINE)
    (folder / "docs.ts").write_text(of_docs, "utf-8")
    (folder / "node_modules").symlink_to(PACKAGES)
    _node(folder, "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "-o", "api.d.ts")
    _node(folder, "node_modules/typescript/bin/tsc")
    _node(folder, "client.js", url, token)


def _node(folder: Path, *command: str) -> None:
    done = subprocess.run(["node", *command], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
