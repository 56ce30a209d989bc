"""The contract of every ChatMemoryStore."""

from __future__ import annotations

from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import SynchronousOnlyOperation
from django.db import DatabaseError, connection
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    InMemoryChatMemoryStore,
    InvalidValue,
    MemoryNotFound,
    MessageWindowChatMemory,
    OversizedMessage,
    SingleSlotChatMemoryStore,
    SummarizingChatMemory,
    TokenWindowChatMemory,
    ToolExecutionResultMessage,
    UserMessage,
    messages_to_json,
)
from chatmemory.formats import Loss
from chatmemory.ledger.verification import verify
from chatmemory.models import Message
from chatmemory.reading.conversations import any_memory
from chatmemory.reading.steps import steps
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.stores.http import HttpChatMemoryStore
from chatmemory.windows.transitions import clear

from ..conversations import BRIEF
from ..properties import examples

MESSAGES = [BRIEF, UserMessage("one"), UserMessage("two")]


STORES = {
    "in memory": lambda memory_id, request: InMemoryChatMemoryStore(),
    "single slot": lambda memory_id, request: SingleSlotChatMemoryStore(memory_id),
    "Django": lambda memory_id, request: DjangoChatMemoryStore(),
}
OVER_HTTP = {"HTTP": lambda memory_id, request: request.getfixturevalue("http_store")}


@pytest.fixture
def http_store(served):
    with HttpChatMemoryStore(served.url, served.token) as store:
        yield store


@pytest.fixture
def memory_id() -> str:
    """An id of this test's own, since tests share a server."""
    return f"acme/{uuid4().hex} ü"


@pytest.fixture(params=STORES | OVER_HTTP)
def store(request, db, memory_id):
    return (STORES | OVER_HTTP)[request.param](memory_id, request)


@pytest.fixture(params=STORES)
def transactional(request, db, memory_id):
    return STORES[request.param](memory_id, request)


def test_it_keeps_copies_until_they_are_replaced_or_deleted(store, memory_id):
    assert store.get_messages(memory_id) == []
    messages = list(MESSAGES)
    store.update_messages(memory_id, messages)
    messages.clear()
    store.get_messages(memory_id).clear()
    assert store.get_messages(memory_id) == MESSAGES
    store.update_messages(memory_id, [])
    assert store.get_messages(memory_id) == []
    store.update_messages(memory_id, MESSAGES)
    for _ in range(2):
        store.delete_messages(memory_id)
        assert store.get_messages(memory_id) == []


def thought(text: str, signature: str | None = None) -> AiMessage:
    return AiMessage(text, attributes={"signature": signature} if signature else {})


HI, BYE = UserMessage("hi"), UserMessage("bye")
LISTS = {
    "in the window": [[HI, thought("ok", "1")], [HI, thought("ok", "2")]],
    "in the middle": [[thought("ok", "1"), HI, BYE], [thought("ok", "2"), HI, BYE]],
    "added": [[thought("ok", "1")], [thought("ok", "1"), thought("ok", "2")]],
    "comes back": [[thought("ok", "1"), HI, BYE], [HI, BYE], [thought("ok", "2"), HI, BYE]],
    "a window of one": [[thought("ok", "1")], [thought("ok", "2")]],
    "two adds missed": [[HI, thought("ok", "1")], [thought("ok", "1"), BYE, thought("ok", "2")]],
    "the only ones that have some": [[thought("ok"), HI], [thought("ok", "1"), HI]],
    "in another order": [
        [thought("ok", "1"), thought("ok", "2"), HI],
        [thought("ok", "2"), thought("ok", "1"), HI],
    ],
    "of a result": [
        [ToolExecutionResultMessage("1", "f", "x", attributes={"n": n})] for n in (1, 2)
    ],
}


@pytest.mark.parametrize("name", LISTS)
def test_what_was_put_with_attributes_comes_back_with_them(store, memory_id, name):
    for messages in LISTS[name]:
        store.update_messages(memory_id, messages)
        found = store.get_messages(memory_id)
        assert messages_to_json(found) == messages_to_json(messages)


KINDS = {
    "AI": lambda text, own: AiMessage(text, attributes=own),
    "user": lambda text, own: UserMessage(text, attributes=own),
    "result": lambda text, own: ToolExecutionResultMessage("1", "f", text, attributes=own),
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_attributes_are_as_good_as_any(store, memory_id, kind):
    make, asked, other = KINDS[kind], UserMessage("q"), UserMessage("z")
    signed, unsigned = make("ok", {"sig": "OLD"}), make("ok", {})
    for messages in (
        *([signed], [unsigned], [signed]),
        *([asked, signed], [asked, unsigned], [asked, signed], [other, unsigned]),
        *([asked], [other], [asked, unsigned], [asked, unsigned, signed]),
    ):
        store.update_messages(memory_id, messages)
        assert messages_to_json(store.get_messages(memory_id)) == messages_to_json(messages)


def test_a_memory_of_one_message_forgets_the_attributes_of_the_one_before(store, memory_id):
    memory = MessageWindowChatMemory(memory_id, 1, store)
    memory.add(AiMessage("ok", attributes={"sig": "OLD"}))
    memory.add(AiMessage("ok"))
    assert messages_to_json(store.get_messages(memory_id)) == messages_to_json([AiMessage("ok")])


own = st.sampled_from([{}, {"sig": "1"}, {"sig": "2", "at": [None, {"b": 1.5}]}])
TEXTS = [(kind, f"{kind} {word}") for kind in KINDS for word in ("ok", "no")]
put = st.lists(st.tuples(st.sampled_from(TEXTS), own), max_size=6)


@examples(40)
@given(st.lists(put, min_size=2, max_size=8))
def test_whatever_was_put_is_what_it_gives(store, lists):
    memory_id = uuid4().hex
    if isinstance(store, SingleSlotChatMemoryStore):
        store = SingleSlotChatMemoryStore(memory_id)
    said, before = set(), []
    for made in lists:
        messages = [KINDS[kind](text, attributes) for (kind, text), attributes in made]
        known = kept_by(store, memory_id)
        store.update_messages(memory_id, messages)
        assert messages_to_json(store.get_messages(memory_id)) == messages_to_json(messages)
        texts = [text for text, _ in made]
        if texts == before and len(texts) > 1:
            assert kept_by(store, memory_id) == known, "attributes alone are no new message"
        before = texts
        said |= {*texts}
    if (kept := kept_by(store, memory_id)) is not None:
        assert {*kept} == {text for _, text in said}
        assert not said or verify(memory_id) is None


@examples(40)
@given(st.lists(st.tuples(st.sampled_from(TEXTS), own), max_size=14), st.integers(1, 6))
def test_the_history_has_each_message_once_that_changed_the_list_of_a_client(store, added, limit):
    """The client's memory decides. A list that is equal to the one before tells of no message."""
    memory_id, memory = uuid4().hex, MessageWindowChatMemory("m", limit)
    if isinstance(store, SingleSlotChatMemoryStore):
        store = SingleSlotChatMemoryStore(memory_id)
    said, before = [], []
    for (kind, text), attributes in added:
        memory.add(KINDS[kind](text, attributes))
        listed = memory.messages()
        store.update_messages(memory_id, listed)
        assert messages_to_json(store.get_messages(memory_id)) == messages_to_json(listed)
        said += [text] if messages_to_json(listed) != messages_to_json(before) else []
        before = listed
    if (kept := kept_by(store, memory_id)) is not None:
        assert kept == said
        assert not said or verify(memory_id) is None


def kept_by(store, memory_id) -> list[str] | None:
    """Return the texts of all messages that a store keeps for ever, in order; None if it forgets
    them. Those that a client put before known ones were not said, and are kept beside the history.
    """
    if not isinstance(store, DjangoChatMemoryStore):
        return None
    rows = Message.objects.filter(memory=memory_id).order_by("seq")
    return list(rows.values_list("text", flat=True))


@pytest.mark.parametrize("call", ["get_messages", "update_messages", "delete_messages"])
def test_an_id_that_is_no_string_is_refused(store, call):
    arguments = [MESSAGES] if call == "update_messages" else []
    with pytest.raises(InvalidValue, match=r"must be a string, not 42: use str"):
        getattr(store, call)(42, *arguments)


def test_a_memory_keeps_its_messages_in_it(store, memory_id):
    for message in MESSAGES:
        MessageWindowChatMemory(memory_id, 2, store).add(message)
    memory = MessageWindowChatMemory(memory_id, 2, store)
    assert memory.messages() == [MESSAGES[0], MESSAGES[2]]
    memory.clear()
    assert memory.messages() == []


def test_nothing_is_added_if_one_message_is_refused(store, memory_id):
    memory = TokenWindowChatMemory(memory_id, 40, store=store, oversized="reject")
    memory.add(UserMessage("before"))
    with pytest.raises(OversizedMessage):
        async_to_sync(memory.aextend)([UserMessage("one"), UserMessage("many words " * 50)])
    assert memory.messages() == [UserMessage("before")]
    with pytest.raises(OversizedMessage):
        memory.add(UserMessage("one"), UserMessage("many words " * 50))
    assert memory.messages() == [UserMessage("before"), UserMessage("one")]


def test_a_store_says_whether_it_keeps_the_attributes_of_system_messages(store, memory_id):
    memory = MessageWindowChatMemory(memory_id, 3, store)
    losses = memory.add_from([{"role": "developer", "content": "Be brief."}], "openai_chat")
    (kept,) = MessageWindowChatMemory(memory_id, 3, store).render("openai_chat")
    is_kept = kept["role"] == "developer"
    assert store.keeps_system_attributes == is_kept
    lost = Loss("message 1", "attributes of a system message")
    assert losses == (() if is_kept else (lost,))
    assert is_kept == (not isinstance(store, HttpChatMemoryStore))


def test_a_transaction_that_raises_stores_nothing(transactional, memory_id):
    memory = MessageWindowChatMemory(memory_id, 2, transactional)
    memory.add(UserMessage("one"))

    def decide(window):
        list(window)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        transactional.transact(memory_id, decide)
    assert transactional.get_messages(memory_id) == [UserMessage("one")]


def test_a_single_slot_serves_one_memory():
    with pytest.raises(InvalidValue, match="'m', but is used for 'other'"):
        SingleSlotChatMemoryStore("m").get_messages("other")


# The store of a Django project


def memory(limit: int = 2) -> MessageWindowChatMemory:
    return MessageWindowChatMemory("a", limit, DjangoChatMemoryStore())


def test_the_history_has_what_the_memory_forgot(db):
    said = [UserMessage("one"), AiMessage("two"), UserMessage("three")]
    memory().add(*said)
    assert memory().messages() == said[1:]
    assert DjangoChatMemoryStore().get_history("a") == said
    with pytest.raises(MemoryNotFound):
        DjangoChatMemoryStore().get_history("b")


def test_its_first_policy_is_a_step_unless_it_makes_the_conversation(db):
    memory().add(UserMessage("one"))
    assert [step.kind for step in steps("a")] == ["add"]
    store = DjangoChatMemoryStore()
    store.update_messages("b", [])
    MessageWindowChatMemory("b", 2, store).add(UserMessage("one"))
    assert [step.kind for step in steps("b")] == ["policy", "add"]
    assert verify("a") is verify("b") is None


def test_a_memory_under_asyncio_uses_the_connection_of_its_task(db):
    async def talk() -> list:
        await memory().aadd(UserMessage("one"), AiMessage("two"))
        await memory().aextend([UserMessage("three")])
        return await memory().amessages()

    assert async_to_sync(talk)() == memory().messages() == [AiMessage("two"), UserMessage("three")]
    async_to_sync(memory().aset)([UserMessage("four")])
    assert memory().messages() == [UserMessage("four")]
    async_to_sync(memory().aclear)()
    assert memory().messages() == []


def test_every_method_that_asks_the_database_is_there_for_asyncio(db):
    store = DjangoChatMemoryStore()
    summarizing = SummarizingChatMemory("a", 99, lambda messages: "in short", store=store)

    async def talk() -> None:
        with pytest.raises(SynchronousOnlyOperation) as refused:
            summarizing.messages()
        assert "aadd for add" in refused.value.__notes__[0]
        await store.aupdate_messages("a", [UserMessage("one"), UserMessage("two")])
        window = await store.aget_window("a")
        assert [entry.message for entry in window] == await store.aget_messages("a")
        await store.atransact("a", lambda window: clear(window, None))
        await summarizing.aadd(UserMessage("three"))
        await summarizing.aadd_from({"role": "user", "content": "four"}, "openai_chat")
        assert await summarizing.asummarize_if_full() is False
        await summarizing.acompact("in short", keep_last=0)
        assert len(await summarizing.arender("openai_chat")) == 1
        assert len(await summarizing.ahistory()) == len(await store.aget_history("a")) == 4
        await store.adelete_messages("a")

    async_to_sync(talk)()
    assert summarizing.messages() == []
    for kind in (DjangoChatMemoryStore, SummarizingChatMemory):
        public = {name for name in dir(kind) if not name.startswith("_")}
        methods = {name for name in public if callable(getattr(kind, name))}
        asking = methods - {"policy", "current_limit"}
        assert {name for name in asking if f"a{name}" not in asking and name[0] != "a"} == (
            {"to_thread"} if kind is DjangoChatMemoryStore else {"in_thread"}
        )


def test_an_error_of_the_database_says_what_to_do(transactional_db):
    memory().add(UserMessage("one"))
    with connection.schema_editor() as editor:
        editor.execute("ALTER TABLE chatmemory_stay RENAME TO elsewhere")
    try:
        with pytest.raises(DatabaseError) as raised:
            memory().messages()
    finally:
        with connection.schema_editor() as editor:
            editor.execute("ALTER TABLE elsewhere RENAME TO chatmemory_stay")
    (note,) = raised.value.__notes__
    assert "the database is not migrated" in note
    assert "run manage.py migrate" in note


@pytest.mark.parametrize("limit", [2**63, 10**30])
def test_a_limit_that_no_database_can_hold_is_refused(db, limit):
    memory = MessageWindowChatMemory("m", limit, DjangoChatMemoryStore())
    for change in (memory.add, lambda message: memory.set([message])):
        with pytest.raises(InvalidValue, match=f"max_messages must be at most {2**63 - 1}"):
            change(UserMessage("hello"))
    assert not any_memory()
