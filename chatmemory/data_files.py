"""Data files of chatmemory, stored beside its modules.

Files are read by their paths: `importlib.resources` would take a twelfth of the time to import
chatmemory.
"""

from __future__ import annotations

from os.path import dirname, join
from typing import Any


def toml_beside(module: str, name: str) -> dict[str, Any]:
    """Return the content of a TOML file beside a module, whose `__file__` is given."""
    import tomllib  # many programs read no such file

    with open(join(dirname(module), name), "rb") as file:
        return tomllib.load(file)
