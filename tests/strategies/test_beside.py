"""Our runs send what the libraries' own agents send."""

from __future__ import annotations

import pytest

from benchmarks.strategies.beside import AGENTS, ours
from chatmemory.strategies import chosen_strategies


@pytest.mark.long
@pytest.mark.parametrize("name", AGENTS)
def test_prompts_are_those_of_the_librarys_agent(name):
    (strategy,) = chosen_strategies(name)
    if not strategy.is_installed:
        pytest.skip(f"{strategy.package} is not installed here: make strategies has it")
    send, has_tools = AGENTS[name]
    sent = send(name)
    assert len(sent) >= 20
    assert sent == ours(name, has_tools)
