"""An agent of LlamaIndex that remembers four messages, with a model that needs no provider.

python -m examples.with_llama_index
"""

from __future__ import annotations

import asyncio

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM

from chatmemory.integrations.llama_index import LlamaIndexMemory
from examples.in_the_inspector import QUESTIONS, memory_of, tell_address


async def main() -> None:
    memory = memory_of("with-llama-index")
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=LlamaIndexMemory(memory))
    for question in QUESTIONS:
        await engine.achat(question)
    tell_address(memory)


if __name__ == "__main__":
    asyncio.run(main())
