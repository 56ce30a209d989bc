from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ..wheels import ROOT, built_from, empty_venv, python


def copied() -> list[str]:
    """The files and folders of the checkout from which the image builds its wheel."""
    lines = re.findall(
        r"^COPY (?!--from|deploy)(.+) \S+$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE
    )
    return [name for each in lines for name in each.split()]


@pytest.fixture(scope="session")
def artifact(tmp_path_factory) -> Path:
    """The content of the wheel that is built from the files that the Dockerfile copies."""
    folder = tmp_path_factory.mktemp("artifact")
    for name in copied():
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    return built_from(folder, folder)


Run = Callable[..., str]


@pytest.fixture
def run(artifact, tmp_path) -> Run:
    """Runs Python in an environment that has the wheel, an extra and nothing else.

    The working directory is `tmp_path`, where the user's data are, too.
    """

    def run(extra: str, *arguments: str) -> str:
        folder = tmp_path / f".venv-{extra or 'bare'}"
        if not folder.exists():
            folder.mkdir()
            empty_venv(artifact, folder, extra)
        return python("-S", *arguments, paths=[artifact, folder], home=tmp_path)

    return run
