"""The memory of an agent of the OpenAI Agents SDK, as a session.

    memory = MessageWindowChatMemory("order-7741", max_messages=20, store=store)
    await Runner.run(agent, "Where is my parcel?", session=ChatMemorySession(memory))

The model sees the window, and the store keeps the whole history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from chatmemory.formats import parse_objects, render_each
from chatmemory.integrations import tell
from chatmemory.memories.memory import ChatMemory
from chatmemory.messages.json_values import JsonValue
from chatmemory.messages.message import ChatMessage
from chatmemory.messages.quotes import HITS, TOOL
from chatmemory.tools import DESCRIPTION, answer
from chatmemory.windows.store import change_lock_of

try:
    from agents import Tool, function_tool
    from agents.memory import Session, SessionSettings
except ModuleNotFoundError as error:
    raise ImportError(
        "ChatMemorySession needs OpenAI's Agents SDK: pip install '.[openai-agents]' in a checkout"
    ) from error

if TYPE_CHECKING:
    from agents import TResponseInputItem

_FORMAT = "openai_responses"


class ChatMemorySession(Session):
    """A session of the Agents SDK that uses the window of a memory.

    - Items are returned as the SDK gave them, with their ids, reasoning and usage. Reasoning, text
      and calls in a row become one message, so that they leave the window together.
    - `get_items` returns the window. With a `limit`, as an argument or in `session_settings`, it
      returns only that many items from the end.
    - `pop_item` removes the last item from the window, but not from the history. If this item is
      part of a message with several items, a new message with the other items replaces the message
      in the window.
    - `clear_session` empties the window, but not the history.
    - With `search_history=True`, `tools` has the tool `search_history`, which searches the
      session's history. Give the tool to the agent, as in `Agent("Support", tools=session.tools)`.

    If the memory refuses a message, such as a message that is too long, the run stops with the
    memory's exception.
    """

    def __init__(
        self,
        memory: ChatMemory,
        *,
        session_settings: SessionSettings | None = None,
        search_history: bool = False,
    ) -> None:
        self.session_id = memory.id
        self.tools: list[Tool] = [_search_tool(memory)] if search_history else []
        self.session_settings = session_settings
        self._memory = memory

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items = _items_of(await self._memory.amessages())
        return items if limit is None or limit < 0 else items[max(0, len(items) - limit) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        if items:
            tell(self._memory, await self._memory.aadd_from(items, _FORMAT))

    async def pop_item(self) -> TResponseInputItem | None:
        return await self._memory.in_thread(self._pop_item)

    async def clear_session(self) -> None:
        await self._memory.aclear()

    def _pop_item(self) -> TResponseInputItem | None:
        with change_lock_of(self._memory, self.session_id):
            messages = self._memory.messages_with_interrupted()
            items = _items_of(messages)
            if not items:
                return None
            *rest, last = items
            self._memory.set(_shortened(messages, rest))
            return last


def _search_tool(memory: ChatMemory) -> Tool:
    async def search(query: str, limit: int = HITS) -> str:
        return await memory.in_thread(answer, memory, query, limit)

    return function_tool(
        search,
        name_override=TOOL,
        description_override=DESCRIPTION,
        use_docstring_info=False,
        strict_mode=False,
    )


def _shortened(messages: Sequence[ChatMessage], items: Sequence[JsonValue]) -> list[ChatMessage]:
    """Return messages for `items`. These are all items of the given messages except the
    last item.
    """
    for end in range(len(messages) - 1, -1, -1):
        kept = list(messages[:end])
        known = _items_of(kept)
        if known == items[: len(known)]:
            break
    rest = items[len(known) :]
    return [*kept, *parse_objects(rest, _FORMAT, after=kept).messages] if rest else kept


def _items_of(messages: Sequence[ChatMessage]) -> list[TResponseInputItem]:
    return cast("list[TResponseInputItem]", [*render_each(messages, _FORMAT).values])
