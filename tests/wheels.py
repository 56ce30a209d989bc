"""The built wheel, and processes that have nothing else of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
OURS = {"DATABASE_URL", "CHATMEMORY_VAR", "DJANGO_SETTINGS_MODULE", "PYTHONPATH"}


def install(folder: Path) -> Path:
    """Build the wheel, and return a folder with its content, as pip would install it."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("django_chatmemory-*.whl")
    ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def environment(installed: Path, **others: str) -> dict[str, str]:
    """The environment of a process that imports the installed wheel."""
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    return kept | {"PYTHONPATH": str(installed), **others}


def python(*arguments: str, installed: Path, home: Path) -> str:
    """Run Python with these arguments in the folder `home`, and return its output."""
    ran = subprocess.run(
        [sys.executable, *arguments],
        cwd=home,
        env=environment(installed, XDG_DATA_HOME=str(home)),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
