"""An agent of the OpenAI Agents SDK that remembers four messages, with a model that needs no
provider.

    python -m examples.with_openai_agents
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from chatmemory.integrations.openai_agents import ChatMemorySession
from examples.in_the_inspector import QUESTIONS, memory_of, tell_address


class Polite(Model):
    """Says the same to everybody."""

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        text = ResponseOutputText(type="output_text", text="I am looking.", annotations=[])
        said = ResponseOutputMessage(
            id="msg_1", type="message", role="assistant", status="completed", content=[text]
        )
        return ModelResponse([said], Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


async def main() -> None:
    memory = memory_of("with-openai-agents")
    agent, session = Agent("Support", model=Polite()), ChatMemorySession(memory)
    for question in QUESTIONS:
        config = RunConfig(tracing_disabled=True)
        await Runner.run(agent, question, session=session, run_config=config)
    tell_address(memory)


if __name__ == "__main__":
    asyncio.run(main())
