from __future__ import annotations

import pytest

from chatmemory import TokenWindow

from ...conversations import create_and_add
from ...test_erasure import SAID


@pytest.fixture
def secrets(db) -> str:
    create_and_add("m", TokenWindow(5_000), SAID)
    return "m"
