"""The function `declared_pattern` for the proxy. The function makes a regular expression and
registers it, so that tests can try all expressions.

The function is loaded from the file `chatmemory/patterns.py`, unless `chatmemory` is already
imported. Importing the package `chatmemory` would take longer than starting the proxy.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING or "chatmemory" in sys.modules:
    from chatmemory.patterns import declared_pattern
else:
    _file = Path(__file__).parents[4] / "chatmemory/patterns.py"
    _spec = spec_from_file_location("patterns", _file)
    _module = module_from_spec(_spec)
    _spec.loader.exec_module(_module)
    declared_pattern = _module.declared_pattern

__all__ = ["declared_pattern"]
