"""The browser tests of all rooms: `in_a_browser.py` in the folder of each.

They are collected here because the browser is closed after the tests of this package.
"""

from __future__ import annotations

import pytest

from ..rooms import room_modules

pytestmark = pytest.mark.long  # a minute and a half of Chromium: `make whole`

for module in room_modules("in_a_browser"):
    room = module.__name__.split(".")[2]
    globals().update(
        (f"test_of_{room}{name.removeprefix('test')}", found)
        for name, found in vars(module).items()
        if name.startswith("test_")
    )
