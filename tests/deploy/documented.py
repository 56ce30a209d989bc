"""Runs lines of docs/operations.md as they are written, with a `manage.py` and a `systemctl`."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ..serving import MANAGE, ROOT


def lines_after(heading: str) -> list[str]:
    """The blocks of commands between a bold heading and the next one, each as a script."""
    text = (ROOT / "docs" / "operations.md").read_text()
    section = re.split(r"\n\*\*|\n## ", text.partition(f"\n**{heading}")[2], maxsplit=1)[0]
    assert section, heading
    blocks = re.findall(r"(?:^    .+\n)+", section, re.M)
    return [re.sub(r"^    ", "", block, flags=re.M) for block in blocks]


class Shell:
    """A shell in a folder. `systemctl` only writes its arguments to the file of that name."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        programs = folder / "programs"
        programs.mkdir()
        _program(programs / "manage.py", f'cd {ROOT} && exec {shlex.join(MANAGE)} "$@"')
        _program(programs / "systemctl", f'echo "$@" >> {folder}/systemctl')
        self.environment = {**environment, "PATH": f"{programs}:{os.environ['PATH']}"}

    def run(self, script: str, **names: str) -> str:
        """Run lines, after replacing names in capitals such as FILE."""
        for name, meant in names.items():
            script = re.sub(rf"\b{name}\b", meant, script)
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr


def _program(file: Path, line: str) -> None:
    file.write_text(f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)
