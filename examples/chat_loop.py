"""A chat that remembers and calls tools, over any model that can be called.

`model` takes the messages that it should see and returns an `AiMessage`: wrap your provider's
client in such a function. `tools` are functions by name, which take the arguments of a call.

    python -m examples.chat_loop
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from chatmemory import (
    AiMessage,
    ChatMemory,
    ChatMemoryProvider,
    ChatMessage,
    MessageWindowChatMemory,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    text_of,
)

Model = Callable[[Sequence[ChatMessage]], AiMessage]
Tools = Mapping[str, Callable[..., str]]

MOST_ROUNDS = 10


class Assistant:
    """Answers users; each conversation has a memory of its own."""

    def __init__(
        self, model: Model, memories: ChatMemoryProvider, tools: Tools, instructions: str = ""
    ) -> None:
        self.model = model
        self.memories = memories
        self.tools = tools
        self.instructions = instructions

    def chat(self, memory_id: str, text: str) -> str:
        """Return the answer to a user's message, after the tools that the model calls for it."""
        memory = self.memories.get(memory_id)
        if self.instructions:
            memory.add(SystemMessage(self.instructions))  # an equal one is ignored
        memory.add(UserMessage(text))
        for _ in range(MOST_ROUNDS):
            answer = self.model(memory.messages())
            memory.add(answer)
            if not answer.has_tool_execution_requests:
                return answer.text or ""
            self.run_tools(memory, answer)
        raise RuntimeError(f"the model still calls tools after {MOST_ROUNDS} rounds")

    def run_tools(self, memory: ChatMemory, answer: AiMessage) -> None:
        """Add the result of each call. The memory evicts them together with their call."""
        for call in filter(None, answer.tool_execution_requests):
            result, is_error = self.run_tool(call)
            memory.add(ToolExecutionResultMessage(call.id, call.name, result, is_error or None))

    def run_tool(self, call: ToolExecutionRequest) -> tuple[str, bool]:
        """Return what a tool says, and whether it is an error; the model hears of errors too."""
        try:
            return self.tools[call.name or ""](**json.loads(call.arguments or "{}")), False
        except Exception as error:
            return f"{type(error).__name__}: {error}", True


def main() -> None:
    """Talk to a model that knows two sentences, in place of a real one."""

    def model(messages: Sequence[ChatMessage]) -> AiMessage:
        match messages[-1]:
            case ToolExecutionResultMessage() as result:
                return AiMessage(f"Here it is: {text_of(result)}.")
        call = ToolExecutionRequest.of("find_order", {"order": "A-1182"}, id="1")
        return AiMessage(None, [call])

    memories = ChatMemoryProvider(lambda name: MessageWindowChatMemory(name, max_messages=10))
    tools = {"find_order": lambda order: f"{order}: shipped"}
    assistant = Assistant(model, memories, tools, "Be brief.")
    print(assistant.chat("my-order-1", "Where is my parcel?"))
    print(len(memories.get("my-order-1").messages()), "messages in memory")


if __name__ == "__main__":
    main()
