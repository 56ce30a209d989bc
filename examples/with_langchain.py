"""An agent of LangChain that remembers four messages, with a model that needs no provider.

python -m examples.with_langchain
"""

from __future__ import annotations

import asyncio

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langgraph.checkpoint.memory import InMemorySaver

from chatmemory.integrations.langchain import ChatMemoryMiddleware
from examples.in_the_inspector import QUESTIONS, memory_of, tell_address


async def main() -> None:
    memory = memory_of("with-langchain")
    model = GenericFakeChatModel(messages=iter(["Thank you.", "On its way.", "I do not know."]))
    middleware = [ChatMemoryMiddleware(memory)]
    agent = create_agent(model, middleware=middleware, checkpointer=InMemorySaver())
    for question in QUESTIONS:
        said = {"messages": question}
        await agent.ainvoke(said, {"configurable": {"thread_id": memory.id}})
    tell_address(memory)


if __name__ == "__main__":
    asyncio.run(main())
