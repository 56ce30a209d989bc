from __future__ import annotations

import pytest

from .upstream import ANSWER, answer_json, provider


@pytest.fixture
def upstream():
    with provider() as found:
        found.answer = lambda handler, got: answer_json(handler, ANSWER)
        yield found
