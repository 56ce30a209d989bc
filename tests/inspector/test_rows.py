"""The rows of a conversation: tools by name, messages that leave next, and counts."""

from __future__ import annotations

import gc
import re
import tracemalloc
from itertools import product
from types import SimpleNamespace

import pytest
from django.utils.safestring import mark_safe

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.ledger import protocol
from chatmemory.models import Message
from chatmemory.reading import history as history_reads
from chatmemory.reading import steps, windows
from chatmemory.reading.feed import feed
from chatmemory.reading.history import Part, message
from chatmemory.windows.eviction import CannotFit
from inspector import demo
from inspector.conversation.page import ConversationPage
from inspector.conversation.state import beginnings, calls_in, conversation_state
from inspector.rooms.simulation.showing import simulated_state
from inspector.rooms.simulation.trials import WhatIf
from inspector.shell.state import ConversationQuery
from inspector.templatetags.inspector import drawn_row, drawn_rows

from ..conversations import create_and_add, numbered, users
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
BRIEF = SystemMessage("Be brief.")
SAID = [BRIEF, UserMessage("where is it?"), CALL, *RESULTS, UserMessage("ok")]


@pytest.fixture
def shop(db) -> None:
    create_and_add("c", MessageWindow(9), SAID)


def html_of(client, query: str = "", memory_id: str = "c") -> str:
    return client.get(f"/c/{memory_id}/?{query}").content.decode()


def page(client, query: str = ""):
    return client.get(f"/c/c/?{query}").context["page"]


def memory_texts(page) -> dict[int, str]:
    return {row.seq: row.text for row in page.memory_pane.messages}


def test_rows_that_differ_in_words_only_have_their_own(operator_client, shop):
    create_and_add("other", MessageWindow(9), [BRIEF, UserMessage("where is <b>?"), *SAID[2:]])
    assert html_of(operator_client).count("where is it?") == 2
    other = html_of(operator_client, memory_id="other")
    assert other.count("where is &lt;b&gt;?") == 2
    assert "where is it?" not in other
    services.redact("other", 2)
    assert "where is" not in html_of(operator_client, memory_id="other")


def test_calls_and_results_are_readable_in_both_panes(operator_client, shop):
    shown = page(operator_client)
    texts = memory_texts(shown)
    assert texts[3] == 'find_order(order: "A-1182")\nlist_stores(city: "Lyon")'
    assert texts[4] == 'find_order {"state": "shipped"}'
    history = {row.row.seq: row.row.readable for row in shown.history_pane.rows}
    assert history[5] == 'list_stores ["Lyon 3"]'
    elsewhere = memory_texts(page(operator_client, "before=3"))
    assert (elsewhere[3], elsewhere[5]) == (texts[3], history[5])
    assert "<b>Tool result #4</b> · find_order ·" in html_of(operator_client, "msg=4")
    assert "<b>Tool call #3</b> · 2 calls ·" in html_of(operator_client, "msg=3")


def test_a_corrupt_row_still_shows_its_text(operator_client, shop):
    Message.objects.filter(memory_id="c", seq=4).update(frame="{")
    assert memory_texts(page(operator_client, "before=3"))[4] == '{"state": "shipped"}'
    for query in ("", "?msg=2"):
        assert operator_client.get(f"/c/c/{query}").status_code == 200


FIND = ToolExecutionRequest("1", "find", '{"order": "A-1"}')


def test_beginnings_of_messages_are_readable(db):
    said = [
        BRIEF,
        UserMessage("where is it?"),
        AiMessage('"toolExecutionRequests":[{ is what I say'),
        AiMessage("I look.", (FIND,)),
        AiMessage(None, (None, ToolExecutionRequest())),
        ToolExecutionResultMessage("1", "find", "sent"),
    ]
    create_and_add("m", MessageWindow(20), said)
    assert beginnings("m", range(1, 7), 30) == {
        1: "Be brief.",
        2: "where is it?",
        3: '"toolExecutionRequests":[{ is ',
        4: 'I look.\nfind(order: "A-1")',
        5: "()",
        6: "find sent",
    }


def test_long_texts_are_not_read_whole(db):
    words = "word " * 100_000
    said = [SystemMessage(words), UserMessage(words), AiMessage(words)]
    result = ToolExecutionResultMessage("1", "find", words)
    create_and_add("m", MessageWindow(20), [*said, result])
    tracemalloc.start()
    found = beginnings("m", (1, 2, 3, 4), 80)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == dict.fromkeys((1, 2, 3), words[:80]) | {4: f"find {words}"[:80]}
    assert peak < 250_000


def test_the_calls_of_a_window_are_recognized_by_their_ids(db):
    entries = [None, ToolExecutionRequest(), ToolExecutionRequest("1", "look", '{"a": [{}, {}]}')]
    lists = [each for n in (1, 2, 3) for each in product(entries, repeat=n)]
    said = [AiMessage("said [null", each) for each in lists]
    services.import_conversation("calls", said, MessageWindow(100))
    rows = windows.outline("calls").rows
    ids = {n: tuple(getattr(call, "id", None) for call in each) for n, each in enumerate(lists, 1)}
    assert calls_in("calls", rows) == ids
    Message.objects.filter(memory_id="calls", seq=4).update(frame="{")
    assert calls_in("calls", rows)[4] == (None,), "one that cannot be read"


def next_to_leave(client, query: str = "") -> list[int]:
    return [row.seq for row in page(client, query).memory_pane.messages if row.soon]


@pytest.mark.parametrize(
    ("policy", "messages", "leaving", "words"),
    [
        (MessageWindow(9), SAID, [2], "first to leave"),
        (MessageWindow(4), SAID[2:], [1, 2, 3], "Leaves next: #1 with #2 and #3, 3 messages."),
        (TokenWindow(400), SAID[2:], [1, 2, 3], "First to leave: #1 with #2 and #3, {} tokens."),
        (MessageWindow(1), [], [], ""),
        (MessageWindow(1), [BRIEF], [], ""),
    ],
)
def test_messages_that_leave_next_are_marked_and_named(
    operator_client, db, policy, messages, leaving, words
):
    create_and_add("c", policy, messages)
    assert next_to_leave(operator_client) == leaving
    tokens = sum(row.tokens for row in windows.outline("c").rows if row.seq in leaving)
    why = said(operator_client.get("/c/c/?open=sums"), "why")
    assert words.format(tokens) in f"{why} {html_of(operator_client)}"


def test_the_next_departures_are_marked_at_a_past_step(operator_client, shop):
    services.change("c", policy=MessageWindow(5))
    services.add("c", users("and now?"))
    services.change("c", policy=MessageWindow(9))
    assert windows.outline("c").seqs[:3] == [1, 6, 7]
    assert next_to_leave(operator_client, "at=6") == [2]


def test_the_number_of_messages_elsewhere_is_shown(operator_client, db):
    def counts(query: str) -> list[str]:
        html = html_of(operator_client, query)
        return re.findall(r'<span class="more__count">([\d,]+)</span>', html)

    create_and_add("c", MessageWindow(3), numbered(1300))
    assert counts("") == ["1,240"]
    assert counts("before=101") == ["40", "1,200"]


@pytest.mark.parametrize("edge", ["after=999", "before=1", "after=30&at=20", "before=0&msg=2"])
def test_behind_an_edge_with_nothing_is_the_usual_part(operator_client, db, edge):
    create_and_add("c", MessageWindow(3), numbered(40))

    def rows(query: str):
        return [vars(row) for row in page(operator_client, query).history_pane.rows]

    assert rows(edge) == rows(edge.partition("&")[2]) != []


def test_injected_messages_are_not_counted(db):
    said = numbered(30)
    create_and_add("c", MessageWindow(300), said[:20])
    protocol.update_messages("c", [UserMessage("a summary"), *said[:20]])
    services.add("c", said[20:])
    page = history_reads.history("c", Part(before=26, size=8))
    assert [row.seq for row in page.rows] == [*range(17, 21), *range(22, 26)]
    assert (page.earlier, page.later) == (16, 6)


@pytest.mark.parametrize(
    ("query", "spans", "ends"),
    [("at=50&msg=25", ((24, 18),), [42]), ("at=30&msg=25", ((24, 6),), [])],
)
def test_the_life_of_a_message_ends_where_it_left(operator_client, db, query, spans, ends):
    demo.load()
    life = operator_client.get(f"/c/order-7741/?{query}").context["page"].panel.why.life
    assert (life.spans, life.ends) == (spans, ends)


HINDI = [UserMessage(f"नमस्ते, मेरा ऑर्डर कहाँ है? यह {n} दिन पहले आना चाहिए था।") for n in range(12)]
MORE = UserMessage("और कब?")
NOTE = "In history, left memory: counted by each step’s estimator"


class TestAnotherEstimator:
    """What was said before is counted otherwise in memory."""

    @pytest.fixture(autouse=True)
    def _hindi(self, db) -> None:
        """Messages counted by gpt-4o; gpt-4 counts more, so that the next one evicts some."""
        create_and_add("c", TokenWindow(400), HINDI)
        services.change("c", policy=TokenWindow(400, estimator="gpt-4"))

    def shown(self, **query) -> ConversationPage:
        return ConversationPage(conversation_state("c", ConversationQuery(**query)))

    def original_tokens(self, seqs) -> int:
        return sum(message("c", seq).tokens for seq in seqs)

    def test_forgotten_messages_count_their_original_tokens(self):
        assert self.shown().hidden, "what the limit hides is not forgotten"
        assert [self.shown(at=at).forgotten.load for at in (0, 12, 13)] == [0] * 3
        simulated = simulated_state("c", ConversationQuery(), WhatIf((MORE,)))
        services.add("c", [MORE])
        page = self.shown()
        for each in (page, ConversationPage(simulated)):
            gone = [said.row.seq for said in each.history_pane.rows if not said.is_in]
            assert len(gone) > 3
            assert each.forgotten.load == self.original_tokens(gone)
        assert page.history.load == self.original_tokens(range(1, 14)) + 3

    def test_a_window_of_messages_tells_its_tokens_so_too(self):
        services.change("c", policy=MessageWindow(3, estimator="gpt-4"))
        services.add("c", [MORE])
        assert self.shown().forgotten.tokens == self.original_tokens(range(1, 11))  # of 13

    def test_history_counts_a_message_as_memory_does(self):
        page = self.shown()
        in_memory = {row.seq: row.amount for row in page.memory_pane.messages}
        assert {s.row.seq: s.tokens for s in page.history_pane.rows if s.is_in} == in_memory
        before = {said.row.seq: said.tokens for said in self.shown(at=12).history_pane.rows}
        assert before == {seq: self.original_tokens([seq]) for seq in before}

    def test_the_page_names_messages_that_count_differently(self, operator_client):
        page = operator_client.get("/c/c/?msg=12")
        now, then = self.shown().window.rows[-1].tokens, self.original_tokens([12])
        assert NOTE in said(page, "tape-read")
        assert f"{now} tok, {then} when it was said" in said(page, "why")
        before = operator_client.get("/c/c/?msg=12&at=12")
        assert NOTE not in said(before, "tape-read")
        assert f"· {then} tok" in said(before, "why")
        assert "when it was said" not in said(before, "why")


def test_history_and_step_name_one_cause_for_what_had_no_room_beside_a_pin(db):
    create_and_add("c", TokenWindow(60), users("word " * 30))
    services.pin("c", 1)
    services.change("c", policy=TokenWindow(20))
    services.add("c", users("word " * 48))
    (left,) = steps.step("c", 4).change.evicted
    (stay,) = message("c", 2).stays
    (item,) = feed()
    assert stay.misfit is item.last.misfit is left.misfit is CannotFit.TOO_BIG


def test_a_kept_row_has_no_text_and_is_not_mistaken_for_another():
    """Rows are kept by their fields: equal words that are safe are other words."""

    def drawn(text, note):
        fields = {"note": note, "amount": 1}
        row = SimpleNamespace(drawn=tuple(fields), text=text, **fields)
        return drawn_rows("inspector/conversation/_led.html", [row])

    before = drawn("secret <i>", "<b>")
    assert "secret &lt;i&gt;" in before
    assert drawn("other", "<b>") == before.replace("secret &lt;i&gt;", "other")
    assert drawn("", "<b>") == before.replace("secret &lt;i&gt;", "")
    assert drawn(mark_safe("<mark>"), "<b>") == before.replace("secret &lt;i&gt;", "<mark>")
    assert drawn("", mark_safe("<b>")) == drawn("", "<b>").replace("&lt;b&gt;", "<b>")


@pytest.mark.needs("search")
def test_no_word_of_a_search_is_kept_with_rows(operator_client, db):
    """It may be a word of a message that is redacted later. A URL has it."""
    services.create("m", MessageWindow(2))
    services.add("m", users("QUOKKA one", "two", "three"))
    page = operator_client.get("/c/m/?find=QUOKKA&at=3").content.decode()
    assert 'href="?at=1&amp;msg=1&amp;find=QUOKKA"' in page
    kept = repr([[*each] for each in gc.get_referents(drawn_row) if isinstance(each, dict)])
    assert "left memory at step 3" in kept
    assert "QUOKKA" not in kept
