from __future__ import annotations

import pytest

from chatmemory import TokenWindow, UserMessage, services

from ..conversations import BRIEF


@pytest.fixture
def long_conversation():
    services.create("order-7741", TokenWindow(1500))
    words = [UserMessage("where is my parcel? " * n) for n in range(1, 40)]
    services.add("order-7741", [BRIEF, *words])
