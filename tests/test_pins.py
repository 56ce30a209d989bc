"""Pins: pinned messages stay, whatever is added; each pin is a step of the ledger."""

from __future__ import annotations

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    MessageWindow,
    MessageWindowChatMemory,
    NoRoomBesidePins,
    NotPinnable,
    OversizedMessage,
    PolicyRequired,
    TokenWindow,
    UserMessage,
    services,
)
from chatmemory.explain import captions
from chatmemory.explain.causes import reason_of, why_no_fit
from chatmemory.ledger import protocol
from chatmemory.ledger.transaction import locked
from chatmemory.ledger.verification import verify
from chatmemory.messages.estimators import estimator_for
from chatmemory.models import Stay, Step
from chatmemory.reading import conversations, steps, windows
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.windows.transitions import admit_beside_pins
from chatmemory.windows.window import Entry
from inspector.conversation.pins import PinPreview, pin_preview, pinning

from .conversations import BRIEF, CALL, RESULT, create_and_add, seqs, users
from .explain.test_receipts import changes, make, policies
from .properties import examples

pytestmark = pytest.mark.django_db
URL = "/api/v1/memories/m/messages/"
A = UserMessage("a")


def pinned_seqs(memory_id: str = "m", at: int | None = None) -> list[int]:
    return [row.seq for row in windows.window(memory_id, at).rows if row.pinned]


@pytest.fixture
def order(db) -> str:
    """A full window of three whose first message is pinned."""
    create_and_add("m", MessageWindow(3), users("my order is A-1182", "two", "three"))
    services.pin("m", 1, actor="ada")
    return "m"


def test_it_stays_while_others_leave(order):
    services.add(order, users("four", "five"))
    assert seqs() == [1, 4, 5]
    services.unpin(order, 1)
    services.add(order, users("six"))
    assert seqs() == [4, 5, 6]
    assert [seqs(at=step) for step in (3, 4, 5, 6)] == [[1, 2, 3], [1, 2, 3], [1, 3, 4], [1, 4, 5]]
    assert verify(order) is None


def test_it_is_a_step_with_an_actor_that_moves_nothing(order):
    step = Step.objects.get(n=4)
    assert (step.kind, step.actor, step.seq, step.count_after) == ("pin", "ada", 1, 3)
    first, again = Stay.objects.filter(seq=1).order_by("n")
    assert (first.reason, first.left_step, first.pinned) == ("MOVED", 4, False)
    assert (again.entered_step, again.rank, again.pinned) == (4, first.rank, True)
    change = steps.step(order, 4).change
    assert (change.evicted, change.arrived, change.seq) == ((), (), 1)
    assert captions.caption(change).summary == "Message #1 was pinned."
    assert services.pin(order, 1) is None


def test_a_result_is_pinned_with_its_call(db):
    create_and_add("m", MessageWindow(4), [*users("one"), CALL, RESULT, *users("two")])
    services.pin("m", 3)
    services.add("m", users("three", "four"))
    assert (seqs(), pinned_seqs()) == ([2, 3, 5, 6], [2, 3])
    assert verify("m") is None


def test_messages_that_cannot_be_pinned_are_named(order):
    services.add(order, users("four"))
    create_and_add("asked", MessageWindow(9), [BRIEF, CALL])
    services.create("theirs", None)
    protocol.update_messages("theirs", users("one"))
    services.create("measured", MessageWindow(9).metering())
    protocol.update_messages("measured", users("one"))
    for memory_id, seq, error, words in (
        (order, 2, NotPinnable, "#2 is not in memory"),
        (order, 9, LookupError, "no message #9"),
        ("asked", 1, NotPinnable, "a system message"),
        ("asked", 2, NotPinnable, "waits for its results"),
        ("theirs", 1, PolicyRequired, "the client decides"),
        ("measured", 1, PolicyRequired, "only measures memory"),
    ):
        with pytest.raises(error, match=words):
            services.pin(memory_id, seq)


def test_a_pin_and_its_end_under_a_lowered_limit_say_what_moves(db):
    """The model's windows before and after differ exactly as the preview shows."""
    create_and_add("m", MessageWindow(6), users("one", "two", "three", "four", "five", "six"))
    services.pin("m", 1)
    services.change("m", policy=MessageWindow(3))
    assert seqs() == [1, 5, 6]
    with pytest.raises(NotPinnable, match="#2 is hidden by a lowered limit"):
        services.pin("m", 2)
    preview = pin_preview(windows.outline("m"), 1)
    assert (preview.hidden, preview.shown) == ((1,), (4,))
    words = pinning(preview)
    assert "The lowered limit would then hide #1 too." in words
    assert "The lowered limit would no longer hide #4." in words
    services.unpin("m", 1)
    assert seqs() == [4, 5, 6]
    services.pin("m", 5)
    assert seqs() == [4, 5, 6]


def test_an_add_that_does_not_fit_beside_it_is_refused_whole(order, api):
    services.change(order, policy=MessageWindow(1))
    with pytest.raises(NoRoomBesidePins, match="1 for what is pinned = 2 of 1"):
        services.add(order, users("four"))
    body = {"format": "openai_chat", "messages": [{"role": "user", "content": "four"}]}
    response = api.post(URL, body)
    assert (response.status_code, response.json()["title"]) == (409, "No room beside pins")
    assert response.json()["field"] == "messages[0]"
    assert conversations.memory(order).last_seq == 3
    assert verify(order) is None


CALLED = [BRIEF, A, CALL]


@pytest.mark.parametrize("said", [CALLED, CALLED[1:]])
def test_a_result_whose_call_a_lowered_limit_hides_is_refused_beside_it(said):
    create_and_add("m", MessageWindow(9), said)
    services.pin("m", len(said) - 1)
    services.change("m", policy=MessageWindow(len(said) - 1))
    with pytest.raises(NoRoomBesidePins, match="1 for what is pinned"):
        services.add("m", [RESULT])
    assert conversations.memory("m").last_seq == len(said)


def test_one_that_an_earlier_version_took_is_explained_by_pins():
    create_and_add("m", MessageWindow(9), CALLED)
    services.pin("m", 2)
    services.change("m", policy=MessageWindow(2))
    with locked("m", actor="") as recorder:
        asked = recorder.window, Entry.of(RESULT, 1), recorder.policy
        recorder.record(admit_beside_pins(*asked))
    step = conversations.memory("m").last_step
    change = steps.step("m", step).change
    departure = change.eviction_of(4)
    assert reason_of(departure) == "no room beside pinned messages"
    assert why_no_fit(change, departure) == ("With the pinned messages, #4 needs 3 of 2 messages.")
    assert verify("m").what.startswith("tokens is 1")  # as they were made up here


def test_a_list_keeps_it_while_it_is_in_it(order):
    services.set_messages(order, users("three", "my order is A-1182", "new", "newer", "newest"))
    assert (seqs(), pinned_seqs()) == ([1, 5, 6], [1])
    protocol.update_messages(order, users("my order is A-1182", "newest"))
    assert pinned_seqs() == [1]
    protocol.update_messages(order, users("newest"))
    assert pinned_seqs() == []
    assert verify(order) is None


def test_it_ends_when_memory_is_cleared_and_can_be_taken_off_where_nothing_leaves(order):
    services.change(order, policy=MessageWindow(3, meters_only=True))
    services.unpin(order, 1)
    assert pin_preview(windows.outline(order), 1) is None
    services.change(order, policy=MessageWindow(3))
    services.pin(order, 1)
    services.clear_messages(order)
    services.set_messages(order, users("my order is A-1182"))
    assert (seqs(), pinned_seqs()) == ([1], [])
    assert verify(order) is None


def test_branches_and_memories_of_the_library_heed_it(order):
    services.add(order, users("four", "five"))
    services.branch(order, "b", users("six"))
    memory = MessageWindowChatMemory("b", 3, DjangoChatMemoryStore())
    assert memory.messages() == users("my order is A-1182", "five", "six")
    memory.add(UserMessage("seven"))
    assert memory.messages() == users("my order is A-1182", "six", "seven")
    assert verify("b") is None


def test_the_api_pins_and_unpins(order, api):
    response = api.post(f"{URL}2/pin/")
    assert (response.status_code, response.json()["pinned"]) == (200, True)
    assert api.get(URL).json()["pinned"] == [1, 2]
    assert api.delete(f"{URL}2/pin/").json()["pinned"] is False
    assert api.post(f"{URL}2/pin/", headers={"If-Match": '"3"'}).status_code == 412
    assert api.post(f"{URL}9/pin/").status_code == 404


def test_the_page_pins_and_says_what_it_would_do(order, operator_client):
    page = operator_client.get("/c/m/?msg=2").content.decode()
    assert (
        "With this pin, pinned messages would take 2 of 3 messages; there is room for 1 other"
        in page
    )
    assert "#3 would leave next, not #2." in page
    assert operator_client.post("/c/m/pin/2/").url == "/c/m/?msg=2"
    page = operator_client.get("/c/m/?msg=2").content.decode()
    assert "It is pinned." in page
    assert "Unpin #2" in page
    assert (
        "Without this pin, pinned messages would take 1 of 3 messages; there is room for 2 other"
        in page
    )
    assert operator_client.post("/c/m/pin/2/", {"pinned": "no"}).status_code == 302
    page = operator_client.get("/c/m/?msg=1").content.decode()
    assert "Without this pin, nothing would be pinned." in page
    assert pinned_seqs() == [1]
    assert operator_client.post("/c/m/pin/99/").status_code == 404
    services.add("m", [*users("four"), CALL])
    late = operator_client.post("/c/m/pin/2/", {"pinned": "yes"})
    assert late.status_code == 409
    assert "#2 is not in memory" in late.content.decode()
    assert "Pin #5" not in operator_client.get("/c/m/?msg=5").content.decode()
    services.add("m", [RESULT])
    assert "Pin #5" in operator_client.get("/c/m/?msg=5").content.decode()


@pytest.mark.django_db
def test_a_summary_cannot_be_unpinned(api, operator_client):
    create_and_add("m", MessageWindow(3), users("a", "b", "c"))
    services.compact("m", "In short.", keep_last=1)
    services.branch("m", "copy", users("d"))
    for memory_id in ("m", "copy"):
        (summary, *_) = windows.window(memory_id).seqs
        answer = api.delete(f"/api/v1/memories/{memory_id}/messages/{summary}/pin/")
        assert (answer.status_code, answer.json()["title"]) == (409, "Not pinnable")
        assert (
            "is a summary, which cannot be unpinned: it stays until a new summary replaces it"
            in answer.json()["detail"]
        )
        page = operator_client.get(f"/c/{memory_id}/?msg={summary}").content.decode()
        assert "It is a summary." in page
        assert "Unpin" not in page


@given(
    policy=policies,
    sequence=st.lists(changes, max_size=6),
    place=st.integers(0, 5),
)
@examples(25)
def test_pinned_messages_stay_and_the_room_beside_them_is_as_previewed(db, policy, sequence, place):
    with transaction.atomic():
        services.create("m", policy)
        for kind, value in sequence:
            before = set(pinned_seqs())
            make("m", kind, value)
            if kind in ("add", "policy"):
                assert set(pinned_seqs()) == before
        check_room(place)
        assert verify("m") is None
        transaction.set_rollback(True)


def check_room(place: int) -> None:
    """A message as large as the preview says fits beside the pins, and no larger one does."""
    window = windows.outline("m")
    seq = window.rows[place].seq if place < len(window.rows) else 0
    preview = pin_preview(window, seq)
    if preview is None:
        return
    largest, larger = around(preview)
    with transaction.atomic():
        try:
            change = services.unpin if preview.is_pinned else services.pin
            change("m", seq)
        except NotPinnable:
            return
        moved = {*preview.hidden, *preview.shown}
        assert moved == set(window.seqs) ^ set(windows.outline("m").seqs)
        assert largest is None or fits(largest)
        assert not (larger and fits(larger)) or is_kept_oversized(preview)
        transaction.set_rollback(True)


def around(preview: PinPreview) -> tuple[UserMessage | None, UserMessage | None]:
    """The largest message that the room holds, and the next larger one."""
    if preview.policy.unit in ("messages", "turns"):
        message = UserMessage("one more")
        return (message, None) if preview.room >= 1 else (None, message)
    estimator = estimator_for(preview.policy.estimator)
    least = estimator.estimate_token_count_in_message(A)
    words = preview.room - least
    larger = UserMessage("a" + " a" * max(0, words + 1))
    return (UserMessage("a" + " a" * words) if words >= 0 else None), larger


def is_kept_oversized(preview: PinPreview) -> bool:
    """Whether the next larger message is oversized without any pin, and the policy keeps those."""
    size = 1
    if preview.policy.unit == "tokens":
        size = estimator_for(preview.policy.estimator).estimate_token_count_in_message(
            UserMessage("a")
        )
    return (
        preview.policy.keeps_newest
        and max(size, preview.room + 1) > preview.room + preview.pinned_load
    )


def fits(message: UserMessage) -> bool:
    """Whether a message is in memory after it was added; the add is undone."""
    with transaction.atomic():
        try:
            services.add("m", [message])
            rows = windows.window("m").rows
            return bool(rows) and rows[-1].text == message.single_text()
        except (NoRoomBesidePins, OversizedMessage):
            return False
        finally:
            transaction.set_rollback(True)


def test_tool_calls_are_read_where_pins_leave_no_room_and_the_policy_recovers():
    long = UserMessage("a longer sentence " * 20)
    create_and_add("m", TokenWindow(115, auto_recover_orphaned_tool_messages=True), [long])
    services.add("m", [CALL, RESULT])
    services.pin("m", 1)
    with pytest.raises(NoRoomBesidePins):
        services.add("m", [long])
    assert verify("m") is None
