"""What inspector/project/server.py reads of uvicorn without a promise that it stays."""

from __future__ import annotations

import asyncio
import tomllib
from importlib.metadata import version
from pathlib import Path

import uvicorn
from packaging.requirements import Requirement
from packaging.version import Version
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))


def test_a_new_minor_version_is_not_installed_unseen():
    """If this fails, run test_slow_headers.py and tests/live, then move the bound."""
    extra = map(Requirement, PROJECT["project"]["optional-dependencies"]["inspector"])
    (asked,) = (each.specifier for each in extra if each.name == "uvicorn")
    installed = Version(version("uvicorn"))
    assert installed in asked
    assert f"{installed.major}.{installed.minor + 1}.0" not in asked


def test_a_connection_tells_whether_it_owes_a_request():
    async def new_connection() -> H11Protocol:
        config = uvicorn.Config(lambda: None)
        config.load()
        return H11Protocol(config, ServerState(), {})

    connection = asyncio.run(new_connection())
    assert connection.cycle is None
    assert connection.timeout_keep_alive_task is None
