"""What would have kept a message: the answer beside why it left."""

from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    policy_from_dict,
    queries,
    services,
)
from chatmemory.core.policies import KINDS, Policy
from chatmemory.queries import ConversationQuery
from chatmemory.services import protocol
from inspector import demo
from tests.test_policy_kinds import FrugalWindow

CALL = AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),))
RESULT = ToolExecutionResultMessage("1", "find", "found")


LONG_WORDS = [UserMessage("übergrößenträger " * n) for n in range(1, 7)]
GPT_4 = {"kind": "token_window", "estimator": "gpt-4"}


def asked(memory_id: str, at: int | None, msg: int, **more):
    state = queries.conversation_state(memory_id, ConversationQuery(at=at, msg=msg, **more))
    return state.would_keep


def limit(memory_id: str, at: int | None, msg: int) -> int | None:
    answer = asked(memory_id, at, msg)
    assert answer is not None
    assert answer.keeping is not None
    return answer.keeping.limit


def conversation(policy: Policy, *messages) -> str:
    services.create("c", policy)
    services.add("c", messages)
    return "c"


def words(count: int) -> list[UserMessage]:
    return [UserMessage(f"message {n}") for n in range(count)]


def test_the_order_number_of_the_demo_needed_855_tokens(operator_client, db):
    demo.load()
    assert limit("order-7741", 43, 25) == 855
    html = operator_client.get("/c/order-7741/?at=43&msg=25").content.decode()
    assert "What would have kept it?" in html
    assert "<b>855 tokens or more.</b>" in html
    assert "A higher limit now does not bring it back." in html


@pytest.mark.parametrize("too_small", [True, False])
def test_the_limit_named_is_the_one_that_a_real_conversation_needs(db, too_small):
    demo.load()
    policy = TokenWindow(854 if too_small else 855)
    services.create("again", policy)
    services.add("again", queries.said("order-7741", 43))
    assert (25 in {row.seq for row in queries.outline("again").rows}) is not too_small


def test_nothing_is_said_of_a_message_in_memory(operator_client, db):
    demo.load()
    html = operator_client.get("/c/order-7741/?at=30&msg=25").content.decode()
    assert "What would have kept it?" not in html


@pytest.mark.django_db
class TestLimits:
    def test_a_message_window_is_answered_in_messages(self, operator_client):
        c = conversation(MessageWindow(2), *words(5))
        assert limit(c, None, 2) == 4
        html = operator_client.get("/c/c/?msg=2").content.decode()
        assert "<b>4 messages or more.</b>" in html

    def test_the_system_message_in_force_counts_even_if_it_is_much_older(self):
        c = conversation(MessageWindow(2), SystemMessage("be brief"), *words(9))
        assert limit(c, None, 8) == 4

    def test_a_result_needs_room_for_its_call(self):
        c = conversation(MessageWindow(2), UserMessage("hi"), CALL, RESULT, RESULT, *words(2))
        assert limit(c, None, 3) == 5
        assert limit(c, 5, 4) == 4

    def test_a_lowered_limit_is_no_part_of_the_replay(self):
        c = conversation(MessageWindow(9), *words(5))
        services.change(c, policy=MessageWindow(1))
        services.add(c, [UserMessage("one more")])
        assert limit(c, None, 3) == 4

    def test_tokens_are_counted_again_where_the_estimator_changed(self):
        c = conversation(TokenWindow(20), *LONG_WORDS)
        services.change(c, policy=policy_from_dict(GPT_4 | {"max_tokens": 20}))
        services.add(c, LONG_WORDS)
        needed = limit(c, None, 4)
        for tried, stays in ((needed, True), (needed - 1, False)):
            services.create(f"under {tried}", policy_from_dict(GPT_4 | {"max_tokens": tried}))
            services.add(f"under {tried}", queries.said(c))
            rows = queries.outline(f"under {tried}").rows
            assert (4 in {row.seq for row in rows}) is stays

    def test_a_kind_with_a_rule_of_its_own_is_replayed(self):
        KINDS.register(FrugalWindow.kind, FrugalWindow)
        try:
            c = conversation(FrugalWindow(60), *words(8))
            needed = limit(c, None, 3)
            assert needed is not None
            for tried, stays in ((needed, True), (needed - 1, False)):
                services.create(f"under {tried}", FrugalWindow(tried))
                services.add(f"under {tried}", words(8))
                rows = queries.outline(f"under {tried}").rows
                assert (3 in {row.seq for row in rows}) is stays
        finally:
            KINDS.unregister(FrugalWindow.kind)


@pytest.mark.django_db
class TestNoAnswer:
    def test_of_a_message_that_was_cleared(self):
        c = conversation(MessageWindow(9), *words(3))
        services.clear_messages(c)
        assert asked(c, None, 2) is None

    def test_of_a_replaced_system_message(self):
        c = conversation(MessageWindow(9), SystemMessage("brief"), SystemMessage("kind"))
        assert asked(c, None, 1) is None

    def test_of_a_list_that_a_client_decided(self):
        protocol.update_messages("c", words(3))
        protocol.update_messages("c", words(3)[1:])
        assert asked("c", None, 1) is None

    @pytest.mark.parametrize("policy", [MessageWindow(3).metering(), MessageWindow(3)])
    def test_of_a_message_that_a_client_left_out_beside_a_policy(self, policy):
        services.create("c", policy)
        for first in range(3):
            protocol.update_messages("c", words(5)[first : first + 3])
        assert queries.window("c").seqs == [3, 4, 5]
        assert asked("c", None, 1) is None


@pytest.mark.django_db
def test_a_limit_that_was_enforced_is_replayed_where_it_is_only_measured_since(operator_client):
    c = conversation(MessageWindow(2), *words(5))
    services.change(c, policy=MessageWindow(2).metering())
    assert limit(c, None, 2) == 4
    html = operator_client.get("/c/c/?msg=2").content.decode()
    assert "?policy=message_window%3A2&amp;policy=message_window%3A4" in html


def test_a_clear_in_between_is_left_out_and_said(operator_client, db):
    c = conversation(MessageWindow(2), *words(4))
    services.clear_messages(c)
    services.add(c, words(1))
    html = operator_client.get("/c/c/?msg=2").content.decode()
    assert "<b>4 messages or more.</b>" in html
    assert "cleared or set as a whole" in html


def test_pins_are_left_out_and_said(operator_client, db):
    """With a limit of 3, nothing could be added beside three pinned messages."""
    c = conversation(MessageWindow(5), *words(3))
    for seq in (1, 2, 3):
        services.pin(c, seq)
    services.add(c, words(3))
    html = operator_client.get("/c/c/?msg=4").content.decode()
    assert "memory needed 6 of 5 messages" in html
    assert "<b>The same limit, with nothing pinned.</b> With 3 messages or more from the" in html
    assert "Compare with this limit" not in html
    assert "This leaves out that messages were pinned" in html
    before = operator_client.get("/c/c/?at=9&msg=4").content.decode()
    assert "with nothing pinned" in before


def test_a_limit_that_is_in_force_by_now_is_not_compared_with_a_lower_one(operator_client, db):
    c = conversation(MessageWindow(2), *words(5))
    services.change(c, policy=MessageWindow(4))
    html = operator_client.get("/c/c/?msg=2").content.decode()
    assert "<b>The same limit from the first message on.</b> With 4 messages or more" in html
    assert "Compare with this limit" not in html


def test_pins_that_came_later_are_not_left_out(operator_client, db):
    c = conversation(MessageWindow(2), *words(4))
    services.pin(c, 4)
    assert "pinned.</b>" not in operator_client.get("/c/c/?at=4&msg=2").content.decode()
    assert "pinned.</b>" in operator_client.get("/c/c/?msg=2").content.decode()


def test_a_long_history_is_replayed_when_asked(operator_client, db):
    c = conversation(TokenWindow(20), *words(520))
    services.change(c, policy=policy_from_dict(GPT_4 | {"max_tokens": 20}))
    html = operator_client.get("/c/c/?msg=2").content.decode()
    assert "It takes a replay of 519 messages." in html
    assert "/c/c/?msg=2&amp;replay=1" in html
    html = operator_client.get("/c/c/?at=521&msg=2&replay=1").content.decode()
    assert "tokens or more.</b>" in html
    assert "Replay</a>" not in html
