"""The built wheel, and Pythons that have nothing else of the checkout."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PathDistribution, distribution
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement

from .unpacking import unpack

ROOT = Path(__file__).parents[1]
OURS = {"DATABASE_URL", "CHATMEMORY_VAR", "DJANGO_SETTINGS_MODULE", "PYTHONPATH"}


def installed_once(folder: Path) -> Path:
    """Return a folder with the content of the wheel, as pip would install it.

    Of all test processes, the first that asks builds the wheel; the others wait.
    """
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "site").exists():
            _install(folder)
    return folder / "site"


def _install(folder: Path) -> None:
    """Build the source distribution from the checkout, and the wheel from that, like `python -m
    build`.
    """
    unpack(_build("sdist", ROOT, folder), folder)
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    built_from(unpacked, folder)


def built_from(sources: Path, folder: Path) -> Path:
    """Build a wheel in `folder`, and return the folder with its content."""
    ZipFile(_build("wheel", sources, folder)).extractall(folder / "site")
    return folder / "site"


def files_of(installed: Path) -> set[str]:
    """Return the names of a wheel's files, without its metadata and without bytecode."""
    found = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    return {name for name in found if "dist-info" not in name and not name.endswith(".pyc")}


def _build(target: str, sources: Path, folder: Path) -> Path:
    build = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(build, cwd=sources, check=True, capture_output=True)
    (built,) = folder.glob({"sdist": "*.tar.gz", "wheel": "*.whl"}[target])
    return built


def empty_venv(installed: Path, folder: Path, extra: str = "") -> list[Path]:
    """Return the import path of a new venv into which pip has installed the wheel with an extra.

    It has the packages that the wheel's metadata require, and their requirements. They are links to
    the packages of the tests, so that nothing is downloaded. Python must be started with -S.
    """
    (metadata,) = installed.glob("*.dist-info")
    names: set[tuple[str, str]] = set()
    _collect(PathDistribution(metadata).requires or [], extra, names)
    for found in {name: distribution(name) for name, _ in names}.values():
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(str(found.locate_file(top)))
    return [installed, folder]


def _collect(lines: Iterable[str], extra: str, names: set[tuple[str, str]]) -> None:
    """Add the names of all packages that these requirements need, each with an extra or ""."""
    for each in map(Requirement, lines):
        if each.marker and not each.marker.evaluate({"extra": extra}):
            continue
        for inner in ("", *each.extras):
            if (each.name, inner) not in names:
                names.add((each.name, inner))
                _collect(distribution(each.name).requires or [], inner, names)


def environment(*paths: Path, **others: str) -> dict[str, str]:
    """The environment of a process that imports from these folders first."""
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    return kept | {"PYTHONPATH": os.pathsep.join(map(str, paths)), **others}


def python(*arguments: str, paths: list[Path], home: Path) -> str:
    """Run Python with these arguments in the folder `home`, and return its output."""
    ran = subprocess.run(
        [sys.executable, *arguments],
        cwd=home,
        env=environment(*paths, XDG_DATA_HOME=str(home)),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
