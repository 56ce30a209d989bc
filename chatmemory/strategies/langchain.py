"""Runs LangChain's memories: `trim_messages` of langchain-core, and two middlewares of agents.

`trim_messages` gets the system message. The middlewares do not: the agent sends the system message
before their messages. By default, tokens are counted by LangChain's approximate count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langchain.agents.middleware import ClearToolUsesEdit, SummarizationMiddleware
from langchain.agents.middleware.context_editing import DEFAULT_TOOL_PLACEHOLDER
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
    trim_messages,
)
from langchain_core.messages import SystemMessage as LangChainSystem
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult

from chatmemory.messages.estimators import count_tokens
from chatmemory.messages.json_values import LibraryValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.strategies.runs import Run, Sent, Settings, arguments_of, spoken
from chatmemory.strategies.summaries import WRITTEN, Summary

KEPT_BY_SUMMARY = 20  # the default of SummarizationMiddleware
RESULTS_KEPT = 3  # the default of ClearToolUsesEdit


def written(position: int, message: ChatMessage) -> BaseMessage:
    """Return a message as an object of LangChain. The id of the object is the message's position in
    the conversation.
    """
    id, text = str(position), spoken(message)
    match message:
        case AiMessage():
            requests = filter(None, message.tool_execution_requests)
            calls = [
                {"name": each.name or "", "args": arguments_of(each.arguments), "id": each.id or ""}
                for each in requests
            ]
            return AIMessage(content=text, tool_calls=calls, id=id)
        case ToolExecutionResultMessage():
            name, call = message.tool_name, message.id or ""
            return ToolMessage(content=text, tool_call_id=call, name=name, id=id)
    return HumanMessage(content=text, id=id)


class LangChainRun(Run):
    """Base class of the runs of LangChain's memories. `state` has the agent's messages so far, with
    their positions as ids.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.state: list[BaseMessage] = []
        self.settings = settings
        self._sizes: dict[str | None, int] = {}  # by the ids of messages, in tokens of costs

    def add(self, position: int, message: ChatMessage) -> None:
        self._sizes[str(position)] = count_tokens(self.settings.estimator, message)
        super().add(position, message)

    def take(self, position: int, message: ChatMessage) -> None:
        self.state.append(written(position, message))

    @property
    def counter(self) -> LibraryValue:
        """The function that counts tokens, by default LangChain's approximate count. With the
        setting `counts_alike`, the function uses the estimator of the settings.
        """
        return self._count if self.settings.counts_alike else count_tokens_approximately

    def _count(self, messages: Iterable[BaseMessage]) -> int:
        return sum(map(self._size, messages))

    def _size(self, message: BaseMessage) -> int:
        """Return the tokens of a message, which the library may have changed or written."""
        if message.id in self._sizes and message.content != DEFAULT_TOOL_PLACEHOLDER:
            return self._sizes[message.id]
        return count_tokens(self.settings.estimator, UserMessage(str(message.content)))


class TrimRun(LangChainRun):
    """Runs `trim_messages` before each call. The prompt is the system message and the newest
    messages within the limit, from a user message on.
    """

    def add(self, position: int, message: ChatMessage) -> None:
        super().add(position, message)
        if isinstance(message, SystemMessage):
            self.state = [each for each in self.state if not isinstance(each, LangChainSystem)]
            self.state.insert(0, LangChainSystem(content=message.text, id=str(position)))

    def prompt(self) -> list[Sent]:
        kept = trim_messages(
            self.state,
            max_tokens=self.settings.tokens,
            strategy="last",
            token_counter=self.counter,
            start_on="human",
            include_system=True,
        )
        return [int(each.id or 0) for each in kept]


class ClearRun(LangChainRun):
    """Runs `ClearToolUsesEdit` on a copy of the messages before each call, as LangChain's
    middleware does.

    The tokens of the system message count only with `counts_alike`, as they do in the middleware
    with `token_count_method="model"`.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._edit = ClearToolUsesEdit(trigger=settings.tokens, keep=RESULTS_KEPT)

    def memory(self) -> Sequence[Sent]:
        edited: list[LibraryValue] = [*self.state]
        self._edit.apply(edited, count_tokens=self._counted)
        pairs = zip(self.state, edited, strict=True)
        return [
            int(before.id or 0) if after is before else _cleared(after) for before, after in pairs
        ]

    def _counted(self, messages: Sequence[BaseMessage]) -> int:
        is_counted = self.settings.counts_alike and self.system is not None
        counted: int = self.counter(messages)
        return counted + (self._sizes[str(self.system)] if is_counted else 0)


def _cleared(message: ToolMessage) -> ChatMessage:
    return ToolExecutionResultMessage(message.tool_call_id, message.name, str(message.content))


class _Writer(BaseChatModel):
    """Replaces the model that writes summaries, and keeps its prompts."""

    prompts: list[str] = []  # a field of pydantic, which copies it for each instance

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def _generate(self, messages: list[BaseMessage], *args: object, **kwargs: object) -> ChatResult:
        self.prompts.append("\n".join(str(each.content) for each in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=WRITTEN))])


class SummaryRun(LangChainRun):
    """Runs `SummarizationMiddleware` before each call. A new summary is kept only if the next
    message is from the assistant, because the agent calls a model only before such a message.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._writer = _Writer()
        self._middleware: LibraryValue = SummarizationMiddleware(
            self._writer,
            trigger=("tokens", settings.tokens),
            keep=("messages", KEPT_BY_SUMMARY),
            token_counter=self.counter,
        )
        self._next: list[BaseMessage] | None = None  # the state after the answer
        self._written: list[str] = []  # the prompt of the summary that the answer follows
        self._summaries: dict[str, Summary] = {}

    def take(self, position: int, message: ChatMessage) -> None:
        if isinstance(message, AiMessage) and self._next is not None:
            self.state = self._next
            self.billed += self._written
        self._next = None
        super().take(position, message)

    def memory(self) -> Sequence[Sent]:
        self._writer.prompts.clear()
        update = self._middleware.before_model({"messages": self.state}, None)
        self._next, self._written = self.state, self._writer.prompts[:]
        if update is not None:
            kept = [each for each in update["messages"] if not isinstance(each, RemoveMessage)]
            self._name(kept[0])
            self._next = kept
        return [self._stands_for(each.id or "") for each in self._next]

    def _name(self, message: BaseMessage) -> None:
        """Number a new summary, and remember the library's words around it."""
        number = len(self._summaries)
        before, _, after = str(message.content).partition(WRITTEN)
        message.id = f"summary {number}"
        self._summaries[message.id] = Summary(number, before, after)

    def _stands_for(self, id: str) -> Sent:
        return self._summaries[id] if id in self._summaries else int(id)
