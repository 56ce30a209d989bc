"""Messages are stored as they are, each text once, with their attributes as they came."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import example, given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    MessageWindow,
    MessageWindowChatMemory,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    message_to_json,
    messages_from_json,
    messages_to_json,
    services,
)
from chatmemory.exceptions import DuplicateClientId, UnstorableText, WindowTooLarge
from chatmemory.formats import read_transcripts, render_messages
from chatmemory.inserted import NewMessage
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.ledger.windows import read_message
from chatmemory.messages.codec import stored_json, without_attributes
from chatmemory.messages.message import with_attributes, with_open_attributes
from chatmemory.models import Memory, Message, Stay
from chatmemory.reading import conversations as conversations_reads
from chatmemory.reading import history as history_reads
from chatmemory.reading import steps as steps_reads
from chatmemory.reading.history import history
from chatmemory.reading.windows import window
from chatmemory.stores.database import DjangoChatMemoryStore
from inspector.rooms.transfer.imports import import_all

from ..conversations import create_and_add
from ..properties import examples
from .test_any_changes import undone

pytestmark = [pytest.mark.django_db, pytest.mark.database]

ROLE = {"openai_chat": {"differs": {"role": "developer"}}}
BRIEF = SystemMessage("Be brief.", ROLE)
CALL = ToolExecutionRequest("1", "find", '{"order":"A-1"}')
SAID = [
    BRIEF,
    UserMessage("Where is it?", attributes={"cache": 1}),
    AiMessage(None, (CALL,), attributes={"id": "msg_1"}),
    ToolExecutionResultMessage("1", "find", "sent", attributes={"b": [1.5, None]}),
    AiMessage("It was sent.", attributes={"signature": "\N{SLOTH}=="}),
]


@pytest.fixture
def m() -> str:
    create_and_add("m", MessageWindow(9), SAID)
    return "m"


def attributes_of(messages) -> list[dict]:
    return [dict(message.attributes) for message in messages]


def without(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return messages as a client sends them that drops attributes; a custom message is one."""
    return [
        each if isinstance(each, CustomMessage) else with_open_attributes(with_attributes(each, {}))
        for each in messages
    ]


# They come back


READINGS = {
    "the store": lambda m: DjangoChatMemoryStore().get_messages(m),
    "the store's history": lambda m: DjangoChatMemoryStore().get_history(m),
    "the store's window": lambda m: [e.message for e in DjangoChatMemoryStore().get_window(m)],
    "a memory": lambda m: MessageWindowChatMemory(m, 9, DjangoChatMemoryStore()).messages(),
    "the window": lambda m: window(m).messages,
    "the window at a step": lambda m: window(m, 5).messages,
    "pages of the history": lambda m: [row.message for row in history(m).rows],
    "all of the history": history_reads.all_messages,
    "single messages": lambda m: [history_reads.message(m, seq).message for seq in range(1, 6)],
    "a branch": lambda m: (services.branch(m, "b", []), window("b").messages)[1],
    "a branch's history": lambda m: (services.branch(m, "b", []), history_reads.all_messages("b"))[
        1
    ],
}


@pytest.mark.parametrize("name", READINGS)
def test_they_come_back_with_the_messages(m, name):
    found = READINGS[name](m)
    assert found == SAID
    assert attributes_of(found) == attributes_of(SAID)
    assert verify(m) is None


def test_attributes_of_a_system_message_are_not_in_its_json(m):
    row = Message.objects.get(seq=1)
    assert row.payload == message_to_json(BRIEF) == '{"text":"Be brief.","type":"SYSTEM"}'
    assert (row.text, "developer" in row.frame) == ("Be brief.", False)
    others = Message.objects.exclude(seq=1).values_list("attributes", flat=True)
    assert set(others) == {None}, "those are in the JSON of the message"


def test_they_come_with_messages_of_a_format(api, memory_id):
    said = [
        {"role": "developer", "content": "Be brief.", "name": "ops"},
        {"role": "user", "content": "hi", "name": "ada"},
    ]
    url = "/api/v1/memories/order-7741/messages/"
    body = {"messages": said, "format": "openai_chat"}
    assert api.post(url, body, format="json").status_code == 201
    answer = api.get(f"{url}?as=openai_chat").json()
    assert (answer["messages"], answer["lost"]) == (said, [])
    assert api.get(url).json()["messages"][0] == {"text": "Be brief.", "type": "SYSTEM"}
    assert verify(memory_id) is None


def test_an_import_keeps_them_and_knows_its_content_by_them():
    def import_role(role: str):
        content = f'[{{"role":"{role}","content":"Be brief."}},{{"role":"user","content":"hi"}}]'
        (result,) = import_all(read_transcripts(content), prefix="i-")
        return result

    assert import_role("developer").messages == 2
    said = history_reads.all_messages("i-1")
    assert render_messages(said, "openai_chat").value[0]["role"] == "developer"
    assert import_role("developer").already
    assert import_role("system").refused


def test_an_equal_system_message_is_ignored_whatever_its_attributes(m):
    (result,) = services.add(m, [SystemMessage("Be brief.", {"cache": True})])
    assert result.ignored
    assert attributes_of(window(m).messages) == attributes_of(SAID)


def test_they_take_no_query_of_their_own(m):
    def count(message: ChatMessage) -> int:
        with CaptureQueriesContext(connection) as asked:
            services.add(m, [message])
            protocol.get_messages(m)
            history_reads.all_messages(m)
        return len(asked)

    bare = count(SystemMessage("one"))
    assert count(SystemMessage("two", {"cache": True})) == bare


def test_search_and_counts_do_not_look_into_them(m):
    for word, found in {"brief": [m], "developer": [], "msg_1": [], "signature": []}.items():
        assert [*Memory.objects.containing(word).values_list("pk", flat=True)] == found
    create_and_add("bare", MessageWindow(9), without(SAID))
    tokens = [[row.tokens for row in history(name).rows] for name in (m, "bare")]
    assert tokens[0] == tokens[1]
    assert conversations_reads.memory(m).window == conversations_reads.memory("bare").window


# Their bytes


@pytest.mark.parametrize("kind", [SystemMessage, UserMessage, AiMessage])
def test_they_count_in_bytes_and_not_in_tokens(kind):
    attributes = {"a": "\N{SLOTH}" * 100}
    for name, message in {"bare": kind("hi"), "m": with_attributes(kind("hi"), attributes)}.items():
        create_and_add(name, TokenWindow(100), [message])
    bare, m = (Memory.objects.get(pk=name) for name in ("bare", "m"))
    assert (m.window_tokens, m.history_tokens) == (bare.window_tokens, bare.history_tokens)
    assert m.window_size - bare.window_size >= 400
    assert Stay.objects.get(memory="m").size == Message.objects.get(memory="m").size
    assert verify("m") is None


def test_a_window_is_too_large_by_them(settings):
    settings.CHATMEMORY = {"WINDOW_BYTES": 500}
    services.create("m", MessageWindow(3))
    large = SystemMessage("hi", {"a": "x" * 300})
    services.add("m", [large])
    with pytest.raises(WindowTooLarge):
        services.add("m", [AiMessage("hi", attributes={"a": "x" * 300})])
    with pytest.raises(WindowTooLarge):
        services.import_conversation("i", [large, *[UserMessage("y" * 99)] * 600], MessageWindow(9))


def test_attributes_of_a_system_message_must_be_storable(memory_id):
    with pytest.raises(UnstorableText):
        services.add(memory_id, [SystemMessage("hi", {"a": "\ud800"})])
    nul = SystemMessage("hi", {"a": "\0"})
    services.add(memory_id, [nul])
    assert attributes_of(history_reads.all_messages(memory_id)) == [{"a": "\0"}]


# What a client sends back


REORDERED = ToolExecutionResultMessage("1", "find", "sent", attributes={"b": [1.5, None], "a": 1})
CHANGES = [protocol.update_messages, services.set_messages]


@pytest.mark.parametrize("change", CHANGES)
def test_a_message_without_its_attributes_is_the_stored_one(m, change):
    assert change(m, without(SAID)).ignored
    assert change(m, [*without(SAID)[:2], *SAID[2:]]).ignored
    assert attributes_of(window(m).messages) == attributes_of(SAID)


@pytest.mark.parametrize("change", CHANGES)
def test_attributes_are_compared_by_value(m, change):
    change(m, [REORDERED])
    other = with_attributes(REORDERED, {"a": 1, "b": [1.5, None]})
    assert change(m, [other]).ignored
    assert not change(m, [with_attributes(REORDERED, {"a": 1, "b": [None, 1.5]})]).ignored


@pytest.mark.parametrize("change", CHANGES)
def test_attributes_that_a_client_changed_belong_to_the_stay(m, change):
    sent = [with_attributes(each, {"new": n}) for n, each in enumerate(SAID)]
    result = change(m, sent)
    assert (result.kind, result.arrived, result.evicted) == ("set", (), ())
    assert attributes_of(protocol.get_messages(m)) == [{"new": n} for n in range(5)]
    assert attributes_of(window(m, 5).messages) == attributes_of(SAID)
    assert attributes_of(history_reads.all_messages(m)) == attributes_of(SAID)
    ended = Stay.objects.filter(left_step=6).values_list("seq", "reason")
    assert [*ended.order_by("seq")] == [(seq, "MOVED") for seq in range(1, 6)]
    assert change(m, sent).ignored
    assert change(m, without(sent)).ignored
    assert verify(m) is None
    change(m, SAID)
    assert attributes_of(window(m).messages) == attributes_of(SAID)
    sizes = [len(stored_json(each).encode()) for each in SAID]
    assert Memory.objects.get(pk=m).window_size == sum(sizes)
    assert verify(m) is None


ONE, TWO, THREE = (AiMessage("ok", attributes={"id": n}) for n in (1, 2, 3))
HI, BYE = UserMessage("hi"), UserMessage("bye")
# What a client put, one list after another, and the numbers of the last one
LISTS = {
    "in the window": ([[HI, ONE], [HI, TWO]], [1, 2]),
    "before another": ([[ONE, HI], [TWO, HI]], [1, 2]),
    "of equal ones": ([[HI, ONE, ONE], [HI, ONE, TWO]], [1, 2, 3]),
    "as if equal ones had slid": (
        [[HI, ONE, ONE, BYE, ONE, ONE], [HI, ONE, ONE, BYE, ONE, TWO]],
        [1, 2, 3, 4, 5, 6],
    ),
    "added": ([[HI, ONE], [HI, ONE, TWO]], [1, 2, 3]),
    "added as another leaves": ([[ONE, HI], [HI, TWO]], [2, 3]),
    "a window of one": ([[ONE], [TWO]], [2]),
    "comes back": ([[ONE, HI, BYE], [HI, BYE], [TWO, HI, BYE]], [1, 2, 3]),
    "comes back as it was": ([[ONE, TWO, HI, BYE], [HI, BYE], [ONE, HI, BYE]], [1, 3, 4]),
    "changed before it comes back": (
        [[ONE, HI, BYE], [TWO, HI, BYE], [HI, BYE], [TWO, HI, BYE]],
        [1, 2, 3],
    ),
    "two adds missed": ([[HI, ONE], [ONE, BYE, TWO]], [2, 3, 4]),
    "equal ones slide": ([[ONE, TWO], [TWO, THREE]], [2, 3]),
    "equal ones in another order": ([[ONE, TWO, HI], [TWO, ONE, HI]], [2, 1, 3]),
    "changed and added": ([[HI, ONE], [HI, TWO, BYE]], [1, 2, 3]),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_client_gets_back_the_list_that_it_put(name):
    lists, seqs = LISTS[name]
    for sent in lists:
        protocol.update_messages("m", sent)
        found = protocol.get_messages("m")
        assert (found, attributes_of(found)) == (sent, attributes_of(sent))
    assert [row.seq for row in window("m").rows] == seqs
    for step, sent in enumerate(lists, 1):
        assert window("m", step).messages == sent
    assert verify("m") is None


def test_own_attributes_stay_with_what_is_pinned_recounted_or_saved_as_a_branch(m):
    sent = [*SAID[:4], with_attributes(SAID[4], {"new": 1})]
    protocol.update_messages(m, sent)
    services.pin(m, 5)
    services.change(m, policy=MessageWindow(9, estimator="gpt-4"))
    services.branch(m, "b", [])
    for name in (m, "b"):
        assert attributes_of(window(name).messages) == attributes_of(sent)
        assert attributes_of(history_reads.all_messages(name)) == attributes_of(SAID)
        assert verify(name) is None


@pytest.mark.parametrize("change", CHANGES)
def test_what_moves_or_returns_is_the_stored_one(m, change):
    sent = without(SAID)
    change(m, sent[::-1])
    assert [row.seq for row in window(m).rows] == [5, 4, 3, 2, 1]
    assert window(m).messages == SAID[::-1]
    change(m, [UserMessage("another")])
    change(m, sent)
    assert [row.seq for row in window(m).rows] == [1, 2, 3, 4, 5]
    assert attributes_of(window(m).messages) == attributes_of(SAID)
    assert conversations_reads.memory(m).said_count == 6
    assert verify(m) is None


def test_equal_texts_with_other_attributes_are_matched_in_order():
    said = [AiMessage("ok", attributes={"id": n}) for n in range(3)]
    protocol.update_messages("m", said)
    assert protocol.update_messages("m", without(said)).ignored
    protocol.update_messages("m", [*without(said), UserMessage("thanks")])
    assert attributes_of(history_reads.all_messages("m")) == [{"id": 0}, {"id": 1}, {"id": 2}, {}]
    protocol.update_messages("m", [said[0], *without(said[1:2])])
    assert [row.seq for row in window("m").rows] == [1, 2]


def test_attributes_of_a_custom_message_are_its_content():
    custom = CustomMessage({"a": 1})
    protocol.update_messages("m", [custom])
    protocol.update_messages("m", [CustomMessage({})])
    assert window("m").messages == [CustomMessage({})]
    assert history_reads.all_messages("m") == [custom, CustomMessage({})]


def test_a_client_id_names_the_same_message_with_other_attributes(memory_id):
    said = NewMessage(AiMessage("hi", attributes={"id": 1}), "c")
    services.add(memory_id, [said])
    for again in (AiMessage("hi"), AiMessage("hi", attributes={"id": 2})):
        assert services.add(memory_id, [NewMessage(again, "c")])[0].seq == 1
        (first, second) = services.add(memory_id, [said, NewMessage(again, "c")])
        assert (first.ignored, second.ignored) == (True, True)
    with pytest.raises(DuplicateClientId):
        services.add(memory_id, [NewMessage(AiMessage("ho"), "c")])
    assert history_reads.all_messages(memory_id) == [said.message]


KINDS = [
    *(kind(word) for kind in (SystemMessage, UserMessage, AiMessage) for word in ("a", "b")),
    UserMessage('"attributes":'),
    AiMessage(None, (CALL,)),
    ToolExecutionResultMessage("1", "find", "x"),
]
attributes = st.sampled_from([{}, {"id": 1}, {"id": 2, "b": {"attributes": {}}}])


@st.composite
def conversations(draw) -> list[tuple]:
    """Changes in which equal messages have equal attributes. Of two that differ in nothing else, a
    list without attributes does not tell which one it has.
    """
    made = [with_attributes(kind, draw(attributes)) for kind in KINDS]
    messages = st.sampled_from([*made, CustomMessage({}), CustomMessage({"id": 1})])
    changes = st.one_of(
        st.tuples(st.just("add"), messages),
        st.tuples(st.just("put first"), messages),
        st.tuples(st.just("list"), st.lists(st.integers(0, 5), max_size=6, unique=True)),
        st.tuples(st.sampled_from(["own list", "earlier list"]), st.integers(1, 5)),
    )
    return draw(st.lists(changes, min_size=2, max_size=12))


def play(name: str, limit: int, made: list, drops: bool) -> int:
    """Let a client decide its window, with or without the attributes of known messages.

    Return the number of changes until two messages of the history differed in attributes alone.
    """
    store, earlier = DjangoChatMemoryStore(), [[]]
    services.create(name, MessageWindow(20))
    for n, (kind, value) in enumerate(made):
        if have_twins(messages_of(name)):
            return n
        known = store.get_messages(name)
        known = without(known) if drops else known
        earlier.append(known)
        match kind:
            case "add":
                memory = MessageWindowChatMemory("own", limit)
                memory.set(known)
                memory.add(value)
                store.update_messages(name, memory.messages())
            case "put first" if without([value])[0] not in without(known):
                store.update_messages(name, [value, *known])
            case "list":
                store.update_messages(name, [known[n] for n in value if n < len(known)])
            case "own list":
                services.set_messages(name, known[-value:])
            case "earlier list":
                services.set_messages(name, earlier[-value:][0])
    return len(made)


def have_twins(messages: list[ChatMessage]) -> bool:
    """Whether two messages differ in nothing but attributes."""
    said = [*zip(without(messages), attributes_of(messages), strict=True)]
    known = dict(said)
    return any(known[message] != own for message, own in said)


def account_of(name: str) -> list[object]:
    """Return the ledger's account of each step and each message, without attributes."""
    steps = [
        steps_reads.step(name, n) for n in range(1, conversations_reads.memory(name).last_step + 1)
    ]
    changes = [
        (
            s.row.kind,
            [(each.seq, each.type, each.tokens, each.origin) for each in s.change.arrived],
            [(each.seq, each.type, each.tokens, each.reason) for each in s.change.evicted],
            s.change.after,
        )
        for s in steps
    ]
    windows = [[(r.seq, r.tokens) for r in window(name, s.row.n).rows] for s in steps]
    rows = Message.objects.filter(memory=name).order_by("seq")
    said = [(row.seq, without_attributes(row.payload), row.origin) for row in rows]
    return [changes, windows, said, conversations_reads.memory(name).window]


def messages_of(name: str) -> list[ChatMessage]:
    return [*map(read_message, Message.objects.filter(memory=name).order_by("seq"))]


B = ("add", UserMessage("b"))


@examples(60)
@given(st.integers(2, 5), conversations())
@example(3, [B, ("add", SystemMessage("a")), B, ("put first", UserMessage("a"))])
@example(
    2,
    [
        ("add", AiMessage(None, (CALL,))),
        ("put first", ToolExecutionResultMessage("1", "find", "x", None, {"id": 1})),
        ("list", [0]),
    ],
)
def test_a_client_that_drops_attributes_makes_the_same_steps(db, limit, made):
    with undone():
        count = play("drops", limit, made, drops=True)
        play("keeps", limit, made[:count], drops=False)
        assert verify("drops") is verify("keeps") is None
        assert account_of("drops") == account_of("keeps")
        found = (attributes_of(messages_of(name)) for name in ("drops", "keeps"))
        for mine, theirs in zip(*found, strict=True):
            assert mine in (theirs, {}), "a list may tell that an equal message was said again"


# Redaction


SECRET = {"openai_chat": {"differs": {"cited": "card 4711"}, "response": {"id": "r-4711"}}}


@pytest.mark.parametrize(
    "message",
    [
        SystemMessage("card 4711", SECRET),
        UserMessage("card 4711", attributes=SECRET),
        AiMessage("card 4711", (ToolExecutionRequest("1", "f", "4711"),), "4711", SECRET),
        ToolExecutionResultMessage("1", "f", "card 4711", None, SECRET),
        CustomMessage(SECRET),
    ],
    ids=lambda message: message.type,
)
def test_a_redaction_removes_them(api, memory_id, message):
    services.add(memory_id, [UserMessage("before"), message, AiMessage("after")])
    services.branch(memory_id, "branch", [])
    services.redact(memory_id, 2, branches=["branch"])
    for name in (memory_id, "branch"):
        row = Message.objects.get(memory=name, seq=2)
        assert row.attributes is None
        assert "4711" not in f"{row.frame} {row.text}"
        assert "4711" not in messages_to_json(history_reads.all_messages(name))
        assert not getattr(window(name, 2).messages[1], "attributes", {}).get("openai_chat")
        assert verify(name) is None
    for form in ("langchain4j", "openai_chat"):
        assert (
            "4711"
            not in api.get(f"/api/v1/memories/{memory_id}/messages/?as={form}").content.decode()
        )
        assert "4711" not in str(render_messages(history_reads.all_messages(memory_id), form).value)
    services.add(memory_id, [UserMessage("more")])
    sent = messages_from_json(messages_to_json(window(memory_id).messages))
    assert protocol.update_messages(memory_id, sent).ignored


@pytest.mark.parametrize("change", CHANGES)
def test_a_redaction_erases_the_attributes_of_its_stays(m, change):
    for id in ("of Ludovica", "of Ottokar"):
        change(m, [*SAID[:4], with_attributes(SAID[4], {"id": id})])
    services.redact(m, 5)
    rows = [*Stay.objects.values_list("overrides", flat=True), *Message.objects.values_list()]
    assert "Ludovica" not in f"{rows}"
    assert "Ottokar" not in f"{rows}"
    assert verify(m) is None
    mark = window(m).messages[4]
    assert change(m, [*SAID[:4], with_attributes(mark, SECRET)]).ignored
    change(m, [with_attributes(mark, SECRET)])
    change(m, SAID[:4])
    change(m, [with_attributes(mark, SECRET), *SAID[:4]])
    assert attributes_of(window(m).messages) == [{}, *attributes_of(SAID[:4])]
    assert not Stay.objects.filter(seq=5, overrides__contains="attributes").exists()
    assert verify(m) is None


def test_a_client_cannot_bring_back_the_attributes_of_a_redacted_message(memory_id):
    services.add(memory_id, [SystemMessage("card 4711", SECRET), UserMessage("hi")])
    services.redact(memory_id, 1)
    mark, hi = window(memory_id).messages
    for back in ([hi, mark], [hi], [mark, hi]):
        services.set_messages(memory_id, [with_attributes(each, SECRET) for each in back])
    assert [row.seq for row in window(memory_id).rows] == [1, 2]
    assert Message.objects.filter(attributes__isnull=False).count() == 0
    assert verify(memory_id) is None


# Texts


PLAIN = [
    SystemMessage("Be brief."),
    UserMessage('my "order" is A-1\n\N{SLOTH}'),
    AiMessage("I look.", (ToolExecutionRequest("1", "find", '{"order":"A-1"}'),)),
    ToolExecutionResultMessage("1", "find", "sent\tyesterday"),
    AiMessage("It was sent."),
]


@pytest.fixture
def conversation() -> str:
    create_and_add("m", MessageWindow(9), PLAIN)
    return "m"


def test_messages_are_stored_read_and_verified(conversation):
    assert history_reads.all_messages(conversation) == window(conversation).messages == PLAIN
    for row, message in zip(Message.objects.order_by("seq"), PLAIN, strict=True):
        assert row.payload == message_to_json(message)
        assert (row.frame == row.payload) == message.has_tool_execution_requests
        assert message.has_tool_execution_requests or row.text not in row.frame
    assert verify(conversation) is None
    for column in ("text", "frame"):
        row = Message.objects.get(seq=2)
        Message.objects.filter(seq=2).update(**{column: getattr(row, column).replace("A-1", "B-2")})
    assert verify(conversation).row == "message #2"


def test_only_equal_messages_return(conversation):
    services.set_messages(conversation, [UserMessage("another")])
    named = UserMessage(PLAIN[1].single_text(), name="Ada")
    services.set_messages(conversation, [named])
    assert [row.seq for row in window(conversation).rows] == [7]
    services.set_messages(conversation, PLAIN)
    assert [row.seq for row in window(conversation).rows] == [1, 2, 3, 4, 5]
    services.set_messages(conversation, [named])
    assert window(conversation).messages == [named]


TEXTS = {
    "words": "a word " * 70_000,
    "an emoji": "a word " * 70_000 + "\N{SLOTH}",
    "controls": "\x1fa\\\x02" * 10_000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_long_text_is_stored_as_it_is(text):
    services.create("long", MessageWindow(9))
    said = [UserMessage(text), AiMessage("short")]
    services.add("long", said)
    services.set_messages("long", [SystemMessage(text), *said])
    protocol.update_messages("long", [SystemMessage(text), *said, UserMessage(text + "!")])
    assert history_reads.all_messages("long") == [
        *said,
        SystemMessage(text),
        UserMessage(text + "!"),
    ]
    assert verify("long") is None
    assert Message.objects.get(seq=1).text == text
    with connection.cursor() as cursor:
        kind = "pg_typeof" if connection.vendor == "postgresql" else "typeof"
        cursor.execute(f"SELECT DISTINCT {kind}(text), {kind}(frame) FROM chatmemory_message")
        assert {*cursor.fetchall()} == {("text", "text")}
