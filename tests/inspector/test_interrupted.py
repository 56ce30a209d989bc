"""Interrupted tool calls on the page of a conversation, before and after they leave."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)

from .markup import words

RECOVERS = MessageWindow(9, auto_recover_orphaned_tool_messages=True)
CALL = AiMessage(None, [ToolExecutionRequest(n, "track", "{}") for n in ("a", "b")])
SAID = [
    SystemMessage("Be brief."),
    UserMessage("Where is it?"),
    CALL,
    ToolExecutionResultMessage("a", "track", "in Dijon"),
]


@pytest.fixture
def m(db) -> str:
    services.create("m", RECOVERS)
    services.add("m", SAID)
    return "m"


@pytest.fixture
def open_page(operator_client):
    return lambda query="": operator_client.get(f"/c/m/{query}").context["page"]


def rows_of(page) -> list[tuple]:
    return [(row.seq, row.css, row.note) for row in page.memory_pane.messages]


def test_a_call_in_flight_stands_dimmed_in_its_place(m, open_page):
    page = open_page()
    (asked, call, result) = rows_of(page)
    assert asked[0] == 2
    assert (call[0], "is-unseen" in call[1], call[2]) == (3, True, "waiting for results")
    assert (result[0], "is-unseen" in result[1], result[2]) == (4, True, "result of #3")
    assert [row.tag for row in page.history_pane.rows] == [
        "",
        "",
        "waiting for results",
        "waiting for results",
    ]
    assert page.memory_pane.unseen == (
        "Tool call #3 waits for results: 1 of 2 results came. The model does not see them, and the "
        "next message that is no tool result removes them from memory."
    )
    assert (page.gauge.load, page.kept.load, page.interrupted.load) == (2, 2, 2)
    assert page.hidden is None


def test_one_behind_which_others_came_says_how_many_results_it_has(m, open_page):
    services.change(m, policy=MessageWindow(9))
    services.add(m, [UserMessage("Hello?")])
    services.change(m, policy=RECOVERS)
    page = open_page()
    assert [row[0] for row in rows_of(page)] == [2, 3, 4, 5]
    assert rows_of(page)[1][2] == "interrupted: 1 of 2 results came"
    assert page.memory_pane.unseen.startswith("Tool call #3 was interrupted: 1 of 2 results came.")
    why = open_page("?msg=4").panel.why.explanation
    assert why.question == "Why does the model not see #4?"
    assert why.summary == (
        "The tool call was not answered completely. #4 is a result of #3. 1 of 2 results came. "
        "The next message that is no tool result removes #4 from memory. History keeps #4."
    )


def test_why_says_that_there_is_no_answer_yet(m, open_page):
    assert open_page("?msg=3").panel.why.explanation.summary == (
        "The tool call waits for results. 1 of 2 results came. The policy hides #3 until all "
        "results have come. The next message that is no tool result removes #3 from memory. "
        "History keeps #3."
    )


def test_after_it_left_the_step_says_why(m, open_page, operator_client):
    services.add(m, [UserMessage("Hello?")])
    page = open_page("?msg=3")
    why = page.panel.why
    assert why.explanation.summary == (
        "The call was not answered completely. #5 arrived at step 5 without all results of #3 "
        "before it; the policy removes such a call."
    )
    lines = [(line.label, line.amount, line.sub) for line in why.explanation.receipt]
    assert lines == [
        ("In memory before", 4, False),
        ("#3 Tool call leaves: not answered", -1, False),
        ("#4, its result", -1, True),
        ("#5 User arrives", 1, False),
        ("In memory after", 3, False),
    ]
    assert open_page("?msg=4").panel.why.explanation.detail == "#4 answers #3; both left at step 5."
    assert [row.tag for row in page.history_pane.rows][2:4] == [
        "left memory at step 5 · tool call not answered"
    ] * 2
    assert "#3 and #4 belonged to a call that was not answered completely" in words(
        operator_client.get("/c/m/?at=5").content
    )


def test_the_api_names_them(m, api):
    window = api.get("/api/v1/memories/m/messages/").json()
    assert (window["seqs"], window["interrupted"], window["over_limit"]) == ([1, 2], [3, 4], [])
    assert window["totals"]["count"] == 2
    assert window["budget"]["used"] == window["totals"]["tokens"] + window["budget"]["overhead"]
    assert api.get("/api/v1/memories/m/messages/3/").json()["in_memory"] is True
    assert api.get("/api/v1/memories/m/").json()["window"]["count"] == 4
    services.add(m, [UserMessage("Hello?")])
    step = api.get("/api/v1/memories/m/steps/5/").json()
    assert [(each["seq"], each["reason"]) for each in step["evicted"]] == [
        (3, "INTERRUPTED"),
        (4, "INTERRUPTED"),
    ]


@pytest.mark.needs("doctor")
def test_the_doctor_finds_nothing_that_the_policy_leaves_out(m, operator_client):
    assert "is waiting" not in words(operator_client.get("/c/m/?msg=3&open=providers").content)
    services.change(m, policy=MessageWindow(9))
    assert "#3 is waiting" in words(operator_client.get("/c/m/?msg=3&open=providers").content)


def test_the_command_shows_them(m, capsys):
    call_command("show_memory", "m")
    assert "hidden, waiting for results" in " ".join(capsys.readouterr().out.split())


def test_a_conversation_over_its_limit_by_them_alone_has_no_flag(m, operator_client):
    policy = MessageWindow(3, auto_recover_orphaned_tool_messages=True)
    services.change(m, policy=policy)
    (row,) = operator_client.get("/").context["rows"]
    assert (row.memory.is_over_limit, row.over_limit) == (True, "")


def test_the_strip_calls_it_not_answered_and_not_left(m, open_page):
    timeline = open_page().timeline
    assert "not answered" in timeline.cells[2].words
    assert "is-unseen" in timeline.cells[3].css
    assert "left memory" not in {each.text for each in timeline.labels}
    services.add("m", [UserMessage("Hello?")])
    timeline = open_page().timeline
    assert "left memory at step 5" in timeline.cells[2].words
    assert "left memory" in {each.text for each in timeline.labels}
