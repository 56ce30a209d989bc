"""When a page says a message leaves, it leaves: neither before, nor after."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    MessageWindow,
    NoRoomBesidePins,
    OversizedMessage,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.explain.reasons import room_before, why_in
from chatmemory.messages.estimators import estimator_for
from chatmemory.reading import simulation, windows
from chatmemory.reading.windows import MessageView, WindowView
from chatmemory.windows.stored_policies import can_decide

from ..conversations import create_and_add, users
from ..properties import examples
from .test_receipts import changes, conversation, policies

CALL = AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),))
RESULT = ToolExecutionResultMessage("1", "find", "found " * 100)


def test_a_system_message_behind_others_stays(db):
    services.create("m", MessageWindow(3))
    services.set_messages("m", [UserMessage("one"), SystemMessage("Be brief."), UserMessage("two")])
    window = windows.outline("m")
    assert why_in(window, 2).cause == "It is the system message."
    assert [room_before(window, position) for position in (0, 2)] == [1, 2]
    services.add("m", [UserMessage("three"), UserMessage("four")])
    assert windows.window("m").messages == [
        SystemMessage("Be brief."),
        UserMessage("three"),
        UserMessage("four"),
    ]


KEPT = ("It is too big for the limit.", "There is no room for it.")


def test_an_oversized_message_that_is_kept_is_the_newest(db):
    create_and_add(
        "m",
        TokenWindow(40, oversized="keep"),
        [SystemMessage("Be brief."), UserMessage("word " * 100)],
    )
    why = why_in(windows.outline("m"), 2)
    assert why.summary == "It is too big for the limit. It stays while it is the newest message."
    services.add("m", users("one", "two"))
    assert why_in(windows.outline("m"), 3).cause == "There is room for it."
    services.set_messages("m", [CALL, RESULT])
    why = why_in(windows.outline("m"), 5)
    assert why.cause in KEPT
    assert why.detail == "It stays with #6 while that is the newest message."


@given(policy=policies, sequence=st.lists(changes, min_size=1, max_size=6))
@examples(40)
def test_a_message_leaves_when_it_is_said_to(db, policy, sequence):
    with conversation(policy, sequence):
        window = windows.outline("m")
        if can_decide(window.policy) and not window.policy.meters_only:
            for position, row in enumerate(window.rows):
                check(window, position, row)


def check(window: WindowView, position: int, row: MessageView) -> None:
    answer = why_in(window, row.seq).cause
    event(answer)
    if answer in KEPT:
        gone = evicted_by(window, 1 if window.policy.unit == "messages" else 10)
        assert gone is NEVER or row.seq in gone
        return
    if answer != "There is room for it.":
        assert row.seq not in evicted_by(window, window.policy.limit)
        return
    room = room_before(window, position)
    assert row.seq not in evicted_by(window, room - 1)
    gone = evicted_by(window, room)
    assert gone is NEVER or row.seq in gone or window.policy.has_window_options


NEVER: frozenset[int] = frozenset()


def evicted_by(window: WindowView, room: int) -> frozenset[int]:
    """Return the messages that leave if this much is added, or [] if no messages are that large."""
    added = of_size(window, room)
    try:
        made = simulation.simulate("m", added).changes if added else ()
    except (NoRoomBesidePins, OversizedMessage):
        return NEVER
    return frozenset(message.seq for change in made for message in change.evicted) or NEVER


def of_size(window: WindowView, size: int) -> list[UserMessage]:
    if window.policy.unit == "messages":
        return [UserMessage("more")] * size
    least = estimator_for(window.policy.estimator).estimate_token_count_in_message(UserMessage("a"))
    return [UserMessage("a" + " a" * (size - least))] if size >= least else []
