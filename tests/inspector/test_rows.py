"""What the rows of a conversation say: tools by name, what leaves next, how much is elsewhere."""

from __future__ import annotations

import re

import pytest

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    queries,
    services,
)
from chatmemory.models import Message
from chatmemory.queries import ConversationQuery
from chatmemory.services import protocol
from inspector import demo

from .markup import said

CALL = AiMessage(
    None,
    (
        ToolExecutionRequest("1", "find_order", '{"order": "A-1182"}'),
        ToolExecutionRequest("2", "list_stores", '{"city": "Lyon"}'),
    ),
)
RESULTS = [
    ToolExecutionResultMessage("1", "find_order", '{"state": "shipped"}'),
    ToolExecutionResultMessage("2", "list_stores", '["Lyon 3"]'),
]
SAID = [SystemMessage("Be brief."), UserMessage("where is it?"), CALL, *RESULTS, UserMessage("ok")]


@pytest.fixture
def shop(db) -> str:
    services.create("c", MessageWindow(9))
    services.add("c", SAID)
    return "c"


def page(client, query: str = ""):
    return client.get(f"/c/c/?{query}").context["page"]


def memory_texts(page) -> dict[int, str]:
    return {row.seq: row.text for row in page.memory_pane.messages}


def test_rows_that_differ_in_words_only_have_their_own(operator_client, shop):
    """Their markup around the words is drawn once, and kept for both."""
    services.create("other", MessageWindow(9))
    services.add("other", [SAID[0], UserMessage("where is <b>?"), *SAID[2:]])
    assert operator_client.get("/c/c/").content.count(b"where is it?") == 2
    other = operator_client.get("/c/other/").content.decode()
    assert other.count("where is &lt;b&gt;?") == 2
    assert "where is it?" not in other
    services.redact("other", 2)
    assert "where is" not in operator_client.get("/c/other/").content.decode()


class TestTools:
    def test_calls_and_results_are_readable_in_both_panes(self, operator_client, shop):
        shown = page(operator_client)
        texts = memory_texts(shown)
        assert texts[3] == 'find_order(order: "A-1182")\nlist_stores(city: "Lyon")'
        assert texts[4] == 'find_order {"state": "shipped"}'
        assert {row.row.seq: row.row.readable for row in shown.history_pane.rows}[5] == (
            'list_stores ["Lyon 3"]'
        )

    def test_memory_reads_those_that_the_history_does_not_show(self, operator_client, shop):
        texts = memory_texts(page(operator_client, "before=3"))
        assert texts[3].startswith('find_order(order: "A-1182")')
        assert texts[5] == 'list_stores ["Lyon 3"]'

    def test_why_names_the_tool_and_the_number_of_calls(self, operator_client, shop):
        html = operator_client.get("/c/c/?msg=4").content.decode()
        assert "<b>Tool result #4</b> · find_order ·" in html
        html = operator_client.get("/c/c/?msg=3").content.decode()
        assert "<b>Tool call #3</b> · 2 calls ·" in html

    def test_a_corrupt_row_still_shows_its_text(self, operator_client, shop):
        Message.objects.filter(memory_id="c", seq=4).update(frame="{")
        texts = memory_texts(page(operator_client, "before=3"))
        assert texts[4] == '{"state": "shipped"}'
        for query in ("", "?msg=2"):
            assert operator_client.get(f"/c/c/{query}").status_code == 200


class TestNextToLeave:
    def next(self, client, query: str = "") -> list[int]:
        rows = page(client, query).memory_pane.messages
        return [row.seq for row in rows if row.soon]

    def test_is_the_oldest_message_below_the_system_message(self, operator_client, shop):
        assert self.next(operator_client) == [2]
        assert "first to leave" in operator_client.get("/c/c/").content.decode()

    def test_takes_the_results_of_its_calls_along(self, operator_client, shop):
        services.change("c", policy=MessageWindow(5))
        services.add("c", [UserMessage("and now?")])
        services.change("c", policy=MessageWindow(9))
        assert [row.seq for row in queries.outline("c").rows][:3] == [1, 6, 7]
        assert self.next(operator_client, "at=6") == [2]

    def test_takes_a_call_with_its_results(self, operator_client, db):
        services.create("c", MessageWindow(4))
        services.add("c", [CALL, *RESULTS, UserMessage("ok")])
        assert self.next(operator_client) == [1, 2, 3]
        why = said(operator_client.get("/c/c/"), "why")
        assert "Leaves next: #1 with #2 and #3, 3 messages." in why

    def test_is_told_in_tokens_where_they_are_the_limit(self, operator_client, db):
        services.create("c", TokenWindow(400))
        services.add("c", [CALL, *RESULTS, UserMessage("ok")])
        tokens = sum(row.tokens for row in queries.outline("c").rows[:3])
        why = said(operator_client.get("/c/c/"), "why")
        assert f"First to leave: #1 with #2 and #3, {tokens} tokens." in why

    @pytest.mark.parametrize("messages", [[], [SystemMessage("Be brief.")]])
    def test_is_nothing_where_nothing_can_leave(self, operator_client, db, messages):
        services.create("c", MessageWindow(1))
        services.add("c", messages)
        assert self.next(operator_client) == []

    def test_is_what_the_next_message_evicts(self, db):
        demo.load()
        for step in range(30, 58):
            state = queries.conversation_state("order-7741", ConversationQuery(at=step))
            change = queries.step("order-7741", step + 1).change
            if change.evicted:
                first = state.window.next_to_leave
                assert [each.seq for each in change.evicted][: len(first)] == list(first)


def counts(html: str) -> list[str]:
    return re.findall(r'<span class="more__count">([\d,]+)</span>', html)


class TestEarlier:
    def test_says_how_many_messages_there_are(self, operator_client, db):
        services.create("c", MessageWindow(3))
        services.add("c", [UserMessage(f"message {n}") for n in range(1300)])
        assert counts(operator_client.get("/c/c/").content.decode()) == ["1,240"]
        assert counts(operator_client.get("/c/c/?before=101").content.decode()) == ["40", "1,200"]

    @pytest.mark.parametrize("edge", ["after=999", "before=1", "after=30&at=20", "before=0&msg=2"])
    def test_behind_an_edge_with_nothing_is_the_usual_part(self, operator_client, db, edge):
        services.create("c", MessageWindow(3))
        services.add("c", [UserMessage(f"message {n}") for n in range(40)])
        usual = page(operator_client, edge.partition("&")[2]).history_pane.rows
        assert page(operator_client, edge).history_pane.rows == usual != []

    def test_does_not_count_what_nobody_said(self, db):
        said = [UserMessage(f"message {n}") for n in range(30)]
        services.create("c", MessageWindow(300))
        services.add("c", said[:20])
        protocol.update_messages("c", [UserMessage("a summary"), *said[:20]])
        services.add("c", said[20:])
        page = queries.history("c", queries.Part(before=26, size=8))
        assert [row.seq for row in page.rows] == [*range(17, 21), *range(22, 26)]
        assert (page.earlier, page.later) == (16, 6)


class TestLife:
    def life(self, client, query: str):
        return client.get(f"/c/order-7741/?{query}").context["page"].panel.why.life

    def test_has_an_end_where_the_message_left(self, operator_client, db):
        demo.load()
        life = self.life(operator_client, "at=50&msg=25")
        assert life.spans == ((24, 18),)
        assert life.ends == [42]

    def test_has_none_while_the_message_is_in_memory(self, operator_client, db):
        demo.load()
        life = self.life(operator_client, "at=30&msg=25")
        assert life.spans == ((24, 6),)
        assert life.ends == []
