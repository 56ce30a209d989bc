"""Reads data files of chatmemory, which are stored beside its modules.

The files are opened by path, because importing `importlib.resources` would slow the import of
chatmemory.
"""

from __future__ import annotations

from os.path import dirname, join
from typing import Any

Toml = dict[str, Any]  # each reader knows the keys of its own file


def toml_beside(module: str, name: str) -> Toml:
    """Return the content of a TOML file beside a module, given the module's `__file__`."""
    import tomllib  # many programs read no such file

    with open(join(dirname(module), name), "rb") as file:
        return tomllib.load(file)
