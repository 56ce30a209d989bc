"""An agent of Pydantic AI that remembers four messages, with a model that needs no provider.

python -m examples.with_pydantic_ai
"""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from chatmemory.integrations.pydantic_ai import ChatMemoryCapability
from examples.in_the_inspector import QUESTIONS, memory_of, tell_address


async def main() -> None:
    memory = memory_of("with-pydantic-ai")
    model = TestModel(custom_output_text="I am looking for it.")
    agent = Agent(model, capabilities=[ChatMemoryCapability(memory)])
    for question in QUESTIONS:
        await agent.run(question)
    tell_address(memory)


if __name__ == "__main__":
    asyncio.run(main())
