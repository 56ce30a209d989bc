"""The base class of the memories. Each memory holds one conversation. Names and rules follow
LangChain4j.

Under asyncio, use the methods whose names begin with `a`, such as `aadd` and `amessages`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar, Unpack, overload

from chatmemory.exceptions import (
    InvalidValue,
    MemoryNotFound,
    NoRoomBesidePins,
    UnreadableTranscript,
)
from chatmemory.messages.estimators import (
    TokenCountEstimator,
    count_tokens,
    family_of,
)
from chatmemory.messages.field_checks import brief
from chatmemory.messages.ids import string_id
from chatmemory.messages.json_values import JsonDict, JsonList, JsonMap, LibraryValue
from chatmemory.messages.message import (
    ChatMessage,
    SystemMessage,
    chat_message,
    message_list,
    with_attributes,
)
from chatmemory.recall.index import Left, given_way, indexed, is_for_index, is_index
from chatmemory.recall.summary_plan import SummaryOptions, SummaryPlan
from chatmemory.windows.clearing import clear_for
from chatmemory.windows.compaction import is_summary, summary_message
from chatmemory.windows.policies import (
    Policy,
    TokenWindowOptions,
)
from chatmemory.windows.store import (
    ChatMemoryStore,
    Decide,
    SingleSlotChatMemoryStore,
    change_lock_of,
)
from chatmemory.windows.transitions import (
    Transition,
    admit,
    keeps_interrupted,
    refill,
    visible,
)
from chatmemory.windows.window import Entry, Window

if TYPE_CHECKING:
    from chatmemory.formats import Loss
    from chatmemory.formats.format import WrittenAsList, WrittenAsObject, WrittenAsText
    from chatmemory.messages.quotes import Query, Quotes

Limit = int | Callable[[str], int]
Transact = Callable[[str, Decide], Transition]
P = ParamSpec("P")
T = TypeVar("T")
_METHODS_OF_STORES = ("get_messages", "update_messages", "delete_messages")
_METHODS_OF_ESTIMATORS = ("estimate_token_count_in_message", "estimate_token_count_in_messages")


# Long: the public methods that every memory has, each with its documentation.
class ChatMemory(ABC):
    """The memory of the conversation `id`: a list of messages with a limit, kept in a store.

    The limit is checked on every use. An invalid limit raises InvalidValue, a ValueError. The text
    of this error is LangChain4j's.

    The options, such as `low_water=0.6`, are those of `Policy`. Without options, the same messages
    leave as in LangChain4j. A subclass implements `policy`.
    """

    _limit_name: ClassVar[str] = ""  # the name of the argument for the limit, if it is not `limit`

    def __init__(
        self,
        id: str,
        limit: Limit,
        store: ChatMemoryStore | None = None,
        estimator: TokenCountEstimator | None = None,
        always_keep_system_message_first: bool = False,
        **options: Unpack[TokenWindowOptions],
    ) -> None:
        estimator, store = estimator_or_none(estimator), store_or_none(store)
        self.id = string_id(id, self._limit_name)
        self._limit = limit
        self._store = SingleSlotChatMemoryStore(id) if store is None else store
        self._transact_by: Transact | None = getattr(self._store, "transact", None)
        self._estimator = estimator or getattr(self._store, "estimator", None)
        self._options: dict[str, Any] = dict(options)  # of any policy
        if always_keep_system_message_first is not None:  # LangChain4j takes null for false
            self._options["always_keep_system_message_first"] = always_keep_system_message_first
        self.policy()

    @property
    def store(self) -> ChatMemoryStore:
        """The store that keeps the messages of this memory."""
        return self._store

    def add(self, message: ChatMessage, *more: ChatMessage) -> None:
        """Add messages one by one. Older messages are evicted if the limit requires it.

        If a message cannot be added, the messages before it stay added.
        """
        for new in (message, *more):
            self._add(new)

    def extend(self, messages: Iterable[ChatMessage]) -> None:
        """Add messages one by one. If a message cannot be added, the messages before it stay added.

        The asynchronous `aextend` differs: it adds all messages or none.
        """
        for message in message_list(messages):
            self._add(message)

    def _extend_at_once(self, messages: Iterable[ChatMessage]) -> None:
        """Add messages with at most one write to the store: all messages or none."""
        added = message_list(messages)
        if added:
            self._transact(decide for message in added for decide in self._adding(message))

    def set(self, messages: Iterable[ChatMessage]) -> None:
        """Replace all messages in memory by `messages`. If the new messages exceed the limit, the
        oldest are left out.
        """
        policy = self.policy()
        arrivals = [self._entry(message) for message in message_list(messages)]

        def decide(window: Window) -> Transition:
            window.count_with(self._family, self._count)
            return refill(window, arrivals, policy)

        self._transact([decide], reads=False)

    def add_from(self, values: LibraryValue, format: str) -> tuple[Loss, ...]:
        """Add the messages of another library, one by one. Returns the losses: details that a
        message or the store cannot hold.

        memory.add_from(client.messages.create(…, **memory.render("anthropic")), "anthropic")

        `values` is a response, a message or a list of messages, as objects of the other library or
        as JSON values. For a stream, add the whole response after its end. Tool results may answer
        tool calls that are already in memory.

        Details that only `format` can express are kept in attributes, and `render` restores them.
        Raises UnreadableTranscript, and then adds nothing, if a value cannot be read or there is no
        message.
        """
        if isinstance(values, list | tuple) and not values:
            raise UnreadableTranscript(
                -1, "the list of messages is empty: give at least one message to add"
            )
        from chatmemory.formats import parse_objects  # formats load on use

        read = parse_objects(values, format, after=self.messages_with_interrupted())
        self.extend(read.messages)
        return read.losses + self._lost_here(read.messages)

    @overload
    def render(self, format: WrittenAsList) -> JsonList: ...
    @overload
    def render(self, format: WrittenAsObject) -> JsonDict: ...
    @overload
    def render(self, format: WrittenAsText) -> str: ...
    @overload
    def render(self, format: str) -> JsonList | JsonDict | str: ...
    def render(self, format: str) -> JsonList | JsonDict | str:
        """Return the messages as the client of a provider takes them.

        client.messages.create(model=…, max_tokens=…, **memory.render("anthropic"))

        The result is a list, or an object with the list and a system prompt. Formats for people,
        such as "markdown", give a text. `formats.render_messages` also returns the losses.
        """
        from chatmemory.formats import render_messages

        return render_messages(self.messages(), format).value

    def _lost_here(self, messages: Iterable[ChatMessage]) -> tuple[Loss, ...]:
        """Return the losses if the store does not keep the attributes of system messages, as stores
        of LangChain4j's JSON do not.
        """
        if getattr(self._store, "keeps_system_attributes", False):
            return ()
        from chatmemory.formats import Loss

        return tuple(
            Loss(f"message {index + 1}", "attributes of a system message")
            for index, message in enumerate(messages)
            if isinstance(message, SystemMessage) and message.attributes
        )

    def messages(self) -> list[ChatMessage]:
        """Return the messages that the model should see now. Reading never writes."""
        return self._seen_under(self.policy())

    def messages_with_interrupted(self) -> list[ChatMessage]:
        """Return the messages of `messages()`, together with interrupted tool calls (calls without
        results) at their positions.

        To change the messages in memory with `set`, pass a changed copy of this list. `set` removes
        all messages that are not in its list.

        The result differs from `messages()` only with the option
        `auto_recover_orphaned_tool_messages`.
        """
        return self._seen_under(replace(self.policy(), auto_recover_orphaned_tool_messages=False))

    def _seen_under(self, policy: Policy) -> list[ChatMessage]:
        entries = visible(self._read_window(), policy)
        return [entry.message for entry in entries if entry.message is not None]

    def history(self) -> list[ChatMessage]:
        """Return the whole history. If the store keeps no history, return the messages in
        memory.
        """
        read = getattr(self._store, "get_history", None)
        if read is None:
            return self.messages_with_interrupted()
        try:
            return list(read(self.id))
        except MemoryNotFound:
            return []

    @property
    def has_history(self) -> bool:
        """Whether the store keeps messages that have left memory."""
        return hasattr(self._store, "get_history")

    @property
    def searched_by(self) -> Callable[[str, Query], Quotes] | None:
        """The store's function that searches the history of a conversation. None if the store
        cannot search.
        """
        found: Callable[[str, Query], Quotes] | None = getattr(self._store, "search_history", None)
        return found

    def compact(
        self,
        summary: str,
        *,
        attributes: JsonMap | None = None,
        **options: Unpack[SummaryOptions],
    ) -> None:
        """Replace messages by a summary. The summary stays until another compaction replaces it.

            memory.compact("They ask for their parcel.", keep_last=4, append_terms=50)

        Give one option to select the messages that the summary replaces:

        - `covering`: the messages with these indices in `messages()`.
        - `keep_last`: all messages except this number of the newest.
        - `keep_tokens`: all messages except the newest messages that fit into this number of
          tokens.

        With `keep_last` and `keep_tokens`, a leading system message and pinned messages stay, too.
        A tool call and its results are not separated.

        Up to `append_terms` exact terms that the summary lacks are appended to its text if the
        limit leaves room for them. `attributes` are those of the summary message. A store with a
        history keeps the replaced messages there.

        Raises InvalidValue, InvalidMessage, MessageNotFound or NotCompactable, and then changes
        nothing.
        """
        plan, policy = SummaryPlan(**options), self.policy()
        attributes_of_summary = attributes or {}
        with_attributes(summary_message(summary), attributes_of_summary)

        def entry_of(message: ChatMessage) -> Entry:
            own = getattr(message, "attributes", {})
            return self._entry(with_attributes(message, {**attributes_of_summary, **own}))

        def decide(window: Window) -> Transition:
            window.count_with(self._family, self._count)
            return plan.transition(window, summary, entry_of, policy)

        self._transact(self._then_indexed([decide], policy))

    def clear(self) -> None:
        """Remove all messages from memory. A store with a history keeps the history."""
        with self._change_lock:
            self._store.delete_messages(self.id)

    # The same for asyncio, by Django's convention of names

    async def aadd(self, message: ChatMessage, *more: ChatMessage) -> None:
        await self.in_thread(self.add, message, *more)

    async def aextend(self, messages: Iterable[ChatMessage]) -> None:
        """Add messages in one write: all of them, or none if a message cannot be added."""
        await self.in_thread(self._extend_at_once, messages)

    async def aset(self, messages: Iterable[ChatMessage]) -> None:
        await self.in_thread(self.set, messages)

    async def amessages(self) -> list[ChatMessage]:
        return await self.in_thread(self.messages)

    async def amessages_with_interrupted(self) -> list[ChatMessage]:
        return await self.in_thread(self.messages_with_interrupted)

    async def aadd_from(self, values: LibraryValue, format: str) -> tuple[Loss, ...]:
        return await self.in_thread(self.add_from, values, format)

    async def ahistory(self) -> list[ChatMessage]:
        return await self.in_thread(self.history)

    @overload
    async def arender(self, format: WrittenAsList) -> JsonList: ...
    @overload
    async def arender(self, format: WrittenAsObject) -> JsonDict: ...
    @overload
    async def arender(self, format: WrittenAsText) -> str: ...
    @overload
    async def arender(self, format: str) -> JsonList | JsonDict | str: ...
    async def arender(self, format: str) -> JsonList | JsonDict | str:
        return await self.in_thread(self.render, format)

    async def acompact(self, summary: str, **options: Unpack[SummaryOptions]) -> None:
        await self.in_thread(self.compact, summary, **options)

    async def aclear(self) -> None:
        await self.in_thread(self.clear)

    async def in_thread(self, method: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Run a blocking call in a thread, and return its result. A store with the method
        `to_thread` chooses the thread.
        """
        import asyncio  # an eighth of what is imported with this library

        to_thread = getattr(self._store, "to_thread", asyncio.to_thread)
        result: T = await to_thread(method, *args, **options)
        return result

    # The policy

    @abstractmethod
    def policy(self) -> Policy:
        """Return the policy with the current limit. Raises InvalidValue for an invalid limit."""

    def current_limit(self) -> int:
        """Return the current limit. If the limit is a function, it is called with the memory id."""
        return self._limit(self.id) if callable(self._limit) else self._limit

    def _add(self, message: ChatMessage) -> None:
        self._transact(self._adding(message))

    def _adding(self, message: ChatMessage) -> Iterator[Decide]:
        """Yield the changes that add a message. The limit is read when the first change is
        requested.
        """
        policy = self.policy()
        # Counted before the store locks, as counting may be slow. A store that does not lock is
        # read before, as in LangChain4j.
        counted = self._entry(message) if self._transact_by else None

        def admitted(window: Window) -> Transition:
            window.count_with(self._family, self._count)
            arrival = counted or self._entry(message)
            again = None if keeps_interrupted(policy, arrival) else self.policy
            return admit(window, arrival, policy, again)

        def cleared(window: Window) -> Transition:
            window.count_with(self._family, self._count)
            return clear_for(window, counted or self._entry(message), policy, self._count)

        changes = [cleared, admitted] if policy.whole_results else [admitted]
        yield from self._then_indexed(changes, policy)

    def _then_indexed(self, changes: Sequence[Decide], policy: Policy) -> Sequence[Decide]:
        """Return the changes, followed by a change that renews the index. A store that keeps the
        index itself needs no such change.
        """
        if not policy.indexed_terms or getattr(self._store, "keeps_index", False):
            return changes
        return _Indexing(self, policy).of(changes)

    def _transact(self, decisions: Iterable[Decide], reads: bool = True) -> None:
        """Make changes. All or none are made if the store has `transact_all`, or has no
        transactions and is written once.
        """
        remaining = iter(decisions)
        first = next(remaining)
        if self._transact_by is None:
            self._write_once(chain([first], remaining), reads)
            return
        rest = list(remaining)
        transact_all = getattr(self._store, "transact_all", None)
        if rest and transact_all is not None:
            transact_all(self.id, [first, *rest])
            return
        for decide in (first, *rest):
            self._transact_by(self.id, decide)

    def _write_once(self, decisions: Iterable[Decide], reads: bool) -> None:
        with self._change_lock:
            window = self._window(self._store.get_messages(self.id) if reads else ())
            is_changed = False
            for decide in decisions:
                transition = decide(window)
                transition.apply_to(window)
                is_changed |= not transition.ignored
            if is_changed:
                kept = [entry.message for entry in window if entry.message is not None]
                self._store.update_messages(self.id, kept)

    @cached_property
    def _change_lock(self) -> Any:  # an RLock
        """The lock that serializes changes to this memory. For a store with `transact`, which locks
        the conversation itself, this lock does nothing.
        """
        return nullcontext() if self._transact_by else change_lock_of(self._store, self.id)

    def _read_window(self) -> Window:
        """Return the window, with its pins if the store has `get_window`."""
        get_window = getattr(self._store, "get_window", None)
        if get_window is None:
            return self._window(self._store.get_messages(self.id))
        window: Window = get_window(self.id)
        window.count_with(self._family, self._count)
        return window

    def _window(self, messages: Iterable[ChatMessage]) -> Window:
        entries = map(self._entry, messages)
        return Window(
            (replace(each, pinned=_stays(each.message)) for each in entries),
            counted_by=self._family,
        )

    def _entry(self, message: ChatMessage) -> Entry:
        return Entry.of(chat_message(message), self._count(message))

    @property
    def _family(self) -> str | None:
        return family_of(self._estimator) if self._estimator else None

    def _count(self, message: ChatMessage) -> int:
        return count_tokens(self._estimator, message) if self._estimator else 0


class _Indexing:
    """The changes of one add, followed by a change that renews the index. For stores without a
    ledger.

    If a message has no room beside the index, the index leaves before the message is added.
    """

    def __init__(self, memory: ChatMemory, policy: Policy) -> None:
        self._memory, self._policy = memory, policy
        self._left: list[Left] = []

    def of(self, changes: Iterable[Decide]) -> list[Decide]:
        return [*map(self._remembering, changes), self._renewed]

    def _remembering(self, decide: Decide) -> Decide:
        def decided(window: Window) -> Transition:
            try:
                transition = decide(window)
            except NoRoomBesidePins:
                given_way(window, self._policy).apply_to(window)
                transition = decide(window)
            gone = [each.entry for each in transition.evictions if is_for_index(each)]
            known = {each: each for each in window.with_messages()} if gone else {}
            for each in gone:
                if (message := known.get(each, each).message) is not None:
                    self._left.append(Left(message, each.seq))
            return transition

        return decided

    def _renewed(self, window: Window) -> Transition:
        window.count_with(self._memory._family, self._memory._count)
        return indexed(window, self._left, self._policy, self._memory._entry)


def _stays(message: ChatMessage | None) -> bool:
    """Return whether a message is a summary or an index, which evictions pass over. For stores
    without pins.
    """
    return is_summary(message) or is_index(message)


def estimator_or_none(estimator: TokenCountEstimator | None) -> TokenCountEstimator | None:
    """Return `estimator` if it can count tokens or is None. Raises InvalidValue for any other
    value, such as a name.
    """
    if isinstance(estimator, str):
        raise InvalidValue(
            f"estimator must be an object that counts tokens, not the name {estimator!r}: "
            f"use OpenAiTokenCountEstimator({estimator!r})"
        )
    _check_methods("estimator", estimator, _METHODS_OF_ESTIMATORS)
    return estimator


def store_or_none(store: ChatMemoryStore | None) -> ChatMemoryStore | None:
    """Return `store` if it has the methods of a store or is None. Raises InvalidValue for any other
    value.
    """
    _check_methods("store", store, _METHODS_OF_STORES)
    return store


def _check_methods(what: str, value: object, names: tuple[str, ...]) -> None:
    if value is None:
        return
    if isinstance(value, type):
        raise InvalidValue(f"{what} must be an object, not the class: use {value.__name__}(…)")
    missing = [name for name in names if not callable(getattr(value, name, None))]
    if missing:
        raise InvalidValue(f"{what} has no method {missing[0]}: {brief(value)}")
