from __future__ import annotations

from datetime import datetime

import pytest

from chatmemory import (
    AiMessage,
    ImageContent,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    queries,
    services,
)
from chatmemory.core.contents import Image
from chatmemory.core.policies import MessageWindow, TokenWindow
from chatmemory.services import protocol

from . import markup
from .markup import tree

HOSTILE = [
    "<script>alert(1)</script>",
    "</script></title>",
    "{{ 7|add:7 }}{% debug %}",
    "\u202ereversed\u202c",
    "control \x07\x1b[31m characters",
    "x" * 100_000,
    '"><img src=x onerror=alert(1)>',
]


@pytest.fixture
def support(db) -> str:
    services.create("support", MessageWindow(4))
    services.add(
        "support",
        [
            SystemMessage("Be brief."),
            UserMessage("Where is order A-1182?"),
            AiMessage(None, (ToolExecutionRequest("1", "find", '{"id":"A-1182"}'),)),
            ToolExecutionResultMessage("1", "find", "in Dijon"),
            AiMessage("It is in Dijon."),
            UserMessage("Thank you."),
        ],
    )
    return "support"


def page(client, query: str = "") -> str:
    response = client.get(f"/c/support/{query}")
    assert response.status_code == 200
    return response.content.decode()


def test_it_shows_history_beside_memory(operator_client, support):
    context = operator_client.get("/c/support/").context["page"]
    assert [said.row.seq for said in context.history_pane.rows] == [1, 2, 3, 4, 5, 6]
    assert [row.seq for row in [*context.memory_pane.system, *context.memory_pane.messages]] == [
        1,
        5,
        6,
    ]
    assert context.kept.load == 3


def test_evicted_messages_have_their_step_and_reason(operator_client, support):
    context = operator_client.get("/c/support/?at=6").context["page"]
    tags = {said.row.seq: said.frame.tag for said in context.history_pane.rows}
    assert tags[2] == "forgotten at step 5 · capacity"
    assert tags[3] == "forgotten at step 6 · capacity"
    assert tags[4] == "forgotten at step 6 · left with its call"
    assert tags[6] == ""


def test_memory_starts_at_the_horizon(operator_client, support):
    said = operator_client.get("/c/support/").context["page"].history_pane.rows
    assert [row.row.seq for row in said if row.is_horizon] == [5]


def test_messages_that_just_left_are_shown_above_memory(operator_client, support):
    html = page(operator_client, "?at=6")
    assert "Just left" in html
    assert "with #3" in html


def test_every_step_has_a_page(operator_client, support):
    for step in range(7):
        html = page(operator_client, f"?at={step}")
        assert f"Step <b>{step}</b> of 6" in html


def test_step_links_stop_at_both_ends(operator_client, support):
    assert 'aria-label="Step back"' in page(operator_client, "?at=3")
    first = operator_client.get("/c/support/?at=0").context["page"]
    last = operator_client.get("/c/support/").context["page"]
    assert (first.previous_step, last.next_step) == (None, None)


def test_why_shows_the_cause_and_the_arithmetic(operator_client, support):
    html = page(operator_client, "?at=6&msg=2")
    assert "Why did #2 leave?" in html
    assert "There was no room." in html
    assert "When #5 arrived, memory needed 5 of 4 messages" in html
    assert "Needed, 1 over" in html


def test_why_explains_why_a_message_stays(operator_client, support):
    html = page(operator_client, "?msg=5")
    assert "Why is #5 still in memory?" in html
    assert "It leaves when 2 more messages arrive." in html
    assert "It is the system message." in page(operator_client, "?msg=1")


def test_why_shows_that_a_message_is_not_said_yet(operator_client, support):
    assert "It arrives at step 6." in page(operator_client, "?at=2&msg=6")


def test_a_message_leaves_when_why_predicts_it(operator_client, support):
    """A message leaves after as many adds as the page predicts."""
    from chatmemory import explain, queries

    window = queries.window("support")
    for position, row in enumerate(window.rows[1:], 1):
        room = explain.room_before(window, position)
        filler = [UserMessage("filler")] * room
        outcomes = queries.simulate("support", filler).changes
        leaves_at = [i for i, o in enumerate(outcomes, 1) if row.seq in [e.seq for e in o.evicted]]
        assert leaves_at == [room]


def test_messages_over_a_lowered_limit_are_marked(operator_client, support):
    services.change("support", policy=MessageWindow(2))
    html = page(operator_client)
    assert "1 message over the limit will leave at the next add" in html
    assert "Does #5 still count?" in page(operator_client, "?msg=5")


def test_hostile_text_shows_as_text(operator_client, db):
    services.create("support", TokenWindow(10**6))
    services.add("support", [UserMessage(text) for text in HOSTILE])
    for query in ("", "?msg=1", "?msg=7", "?msg=3"):
        html = page(operator_client, query)
        assert "<script>alert" not in html
        assert "<img src=x" not in html
        assert "{{ 7|add:7 }}" in html


@pytest.mark.parametrize(
    "query",
    ["?at=99", "?msg=99", "?at=x", "?at=-1", "?msg=9999999999999999999", "?with=99", "?with=x"],
)
def test_unknown_steps_and_messages_are_not_found(operator_client, support, query):
    response = operator_client.get(f"/c/support/{query}")
    assert response.status_code == 404
    assert b"Page not found" in response.content


def test_an_unknown_conversation_is_not_found(operator_client):
    response = operator_client.get("/c/nobody/")
    assert response.status_code == 404
    assert b"nobody" in response.content
    assert b'name="q"' in response.content


def test_a_page_writes_nothing(operator_client, support):
    assert operator_client.post("/c/support/").status_code == 405


def test_any_id_has_a_page(operator_client, db):
    for memory_id in ("..", "a/b?c#d", "ümläut ~ %2F", "<b>"):
        services.create(memory_id, MessageWindow(3))
        page = operator_client.get("/").content.decode()
        assert "<b><b>" not in page
    from chatmemory.converters import address

    assert operator_client.get(f"/c/{address('a/b?c#d')}/").status_code == 200


def test_htmx_gets_the_fragment(operator_client, support):
    response = operator_client.get("/c/support/?at=3", headers={"HX-Request": "true"})
    assert markup.roots(response) == [("title", None), ("main", "main")]
    assert "HX-Request" in response["Vary"]


def test_the_history_pages_both_ways(operator_client, db):
    services.create("support", MessageWindow(10))
    services.add("support", [UserMessage(f"said {n}") for n in range(200)])
    last = operator_client.get("/c/support/").context["page"].state.history
    assert (len(last.rows), last.has_earlier, last.has_later) == (60, True, False)
    before = (
        operator_client.get(f"/c/support/?before={last.rows[0].seq}").context["page"].state.history
    )
    assert before.rows[-1].seq == last.rows[0].seq - 1
    for shown in ("msg=7", "find=said"):
        page = operator_client.get(f"/c/support/?{shown}&before=61").context["page"]
        assert page.state.history.rows[-1].seq == 60
    around = operator_client.get("/c/support/?msg=7").context["page"].history_pane.rows
    assert [said.row.seq for said in around if "is-sel" in said.frame.css] == [7]


@pytest.mark.parametrize("query", ["", "?at=600", "?at=600&msg=3", "?at=1400"])
def test_it_takes_a_bounded_number_of_queries(
    operator_client, db, django_assert_max_num_queries, query
):
    services.create("support", MessageWindow(50))
    services.add("support", [UserMessage(f"said {n}") for n in range(1_500)])
    with django_assert_max_num_queries(28):
        html = page(operator_client, query)
    assert html.count('<li class="cell') <= 400


def test_a_call_and_its_result_belong_together(operator_client, support):
    def marked(seq: int) -> list[int]:
        pane = operator_client.get(f"/c/support/?msg={seq}").context["page"].history_pane
        return [each.row.seq for each in pane.rows if "is-rel" in each.frame.css]

    assert (marked(3), marked(4), marked(2)) == ([4], [3], [])


def test_properties_that_are_not_text_are_shown(operator_client, db):
    picture = Image(base64_data="QQ==", mime_type="image/png")
    services.create("support", MessageWindow(4))
    services.add(
        "support",
        [
            AiMessage("hi", thinking="hm <b>", attributes={"model": "m-1"}),
            UserMessage([ImageContent(picture), ImageContent("https://example.org/x.png")]),
        ],
    )
    html = page(operator_client, "?msg=1")
    assert "hm &lt;b&gt;" in html
    assert "m-1" in html
    html = page(operator_client, "?msg=2")
    assert 'src="data:image/png;base64,QQ=="' in html
    assert 'src="https://example.org' not in html


def test_the_tape_is_labelled_in_words(operator_client, db):
    services.create("support", MessageWindow(12))
    services.add("support", [SystemMessage("Be brief.")])
    services.add("support", [UserMessage(f"said {n}") for n in range(59)])
    labels = operator_client.get("/c/support/?at=40").context["page"].timeline.labels
    names = [label.text for label in labels if not label.text.isdigit()]
    assert names == ["system", "window", "not said yet", "forgotten"]


def test_a_system_message_that_nobody_pinned_has_no_pin(operator_client, db):
    services.create("support", MessageWindow(12))
    services.add("support", [SystemMessage("Be brief.")])
    html = operator_client.get("/c/support/").content.decode()
    assert "i-pin" not in html.partition('id="pinned"')[2].partition("</ol>")[0]


def test_a_long_window_is_shown_from_its_end(operator_client, db):
    services.create("long", MessageWindow(1_000))
    services.add("long", [SystemMessage("Be brief."), *(UserMessage(f"m{n}") for n in range(300))])
    page = operator_client.get("/c/long/").context["page"]
    assert [row.text for row in page.memory_pane.system] == ["Be brief."]
    assert [row.text for row in page.memory_pane.messages] == [f"m{n}" for n in range(200, 300)]
    assert (page.memory_pane.messages[0].past, page.memory_pane.messages[-1].past) == (201, 300)
    assert page.memory_pane.earlier.count == 200
    assert page.memory_pane.later is None


def test_a_long_window_is_shown_around_the_chosen_message(operator_client, db):
    services.create("long", MessageWindow(1_000))
    services.add("long", [UserMessage(f"m{n}") for n in range(300)])
    page = operator_client.get("/c/long/?msg=101").context["page"]
    assert "m100" in [row.text for row in page.memory_pane.messages]
    assert (
        page.memory_pane.earlier.count
        + len(page.memory_pane.messages)
        + page.memory_pane.later.count
        == 300
    )
    following = operator_client.get(f"/c/long/?msg={page.memory_pane.earlier.seq}").context["page"]
    assert page.memory_pane.messages[0].seq - 1 in [
        row.seq for row in following.memory_pane.messages
    ]


def test_it_says_whether_providers_would_accept_the_window(operator_client, support):
    accepted = operator_client.get("/c/support/?at=4").context["page"].panel.verdicts
    assert [verdict.accepts for verdict in accepted] == [True, True]
    openai, anthropic = operator_client.get("/c/support/").context["page"].panel.verdicts
    assert openai.accepts
    assert anthropic.problem == "No. The first message after system is AI (#5); it must be User."
    assert "is AI (#5); it must be User." in page(operator_client, "?at=6")


def test_a_waiting_call_is_shown(operator_client, support):
    assert "Tool call #3 is waiting for its results." in page(operator_client, "?at=3")


def test_a_long_text_is_folded(operator_client, support):
    services.add("support", [UserMessage("long " * 30_000)])
    html = page(operator_client, "?msg=7")
    assert "All 150,000 characters" in html
    assert "50,000 more characters are in the" in html
    assert "All 20 characters" not in page(operator_client, "?msg=2")


def test_json_is_indented(operator_client, support):
    html = page(operator_client, "?msg=3")
    assert "{\n  &quot;id&quot;: &quot;A-1182&quot;\n}" in html
    assert "As JSON" not in page(operator_client, "?msg=4")


def test_a_sum_of_very_many_lines_is_shortened(operator_client, db):
    services.create("long", MessageWindow(100))
    services.add("long", [UserMessage(f"m{n}") for n in range(100)])
    services.change("long", policy=MessageWindow(1))
    services.add("long", [UserMessage("the last")])
    html = operator_client.get("/c/long/").content.decode()
    assert "more lines" in html
    assert html.count("<th scope") < 60


def test_links_lead_to_the_neighbours_of_the_selected_message(operator_client, support):
    context = operator_client.get("/c/support/?msg=3").context["page"]
    assert context.history_pane.around == (2, 4)
    assert operator_client.get("/c/support/?msg=1").context["page"].history_pane.around == (None, 2)
    assert operator_client.get("/c/support/?msg=6").context["page"].history_pane.around == (5, None)


def test_what_a_list_of_the_client_left_out_is_tagged_so(operator_client, db):
    said = [UserMessage(f"message {n}") for n in range(3)]
    protocol.update_messages("theirs", said)
    protocol.update_messages("theirs", [*said[1:], UserMessage("one more")])
    page = operator_client.get("/c/theirs/").context["page"]
    assert page.history_pane.rows[0].frame.tag == "forgotten at step 2 · left out"


def test_an_empty_conversation_offers_no_step_forward(operator_client, db):
    services.create("empty", MessageWindow(3))
    html = operator_client.get("/c/empty/").content.decode()
    assert "Nothing has been said yet. The first message will show here." in html
    services.add("empty", [UserMessage("hello")])
    html = operator_client.get("/c/empty/?at=0").content.decode()
    assert "Nothing has been said yet. Step forward to see the first message." in html


def test_the_time_of_a_step_names_its_zone(operator_client, support):
    page = tree(operator_client.get("/c/support/?at=1").content.decode())
    (time,) = page.iterfind(".//aside//time")
    at = queries.step("support", 1).row.at
    assert datetime.fromisoformat(time.get("datetime")) == at.replace(microsecond=0)
    assert time.findtext("text").endswith(f"{at:%H:%M:%S} UTC")


@pytest.mark.parametrize(
    ("first", "name"),
    [
        (MessageWindow(3), "Policy not recorded"),
        (None, "Policy not recorded"),
        ("later", "Client decides"),
    ],
)
def test_the_page_of_step_0_names_no_policy_that_was_not_in_force(operator_client, db, first, name):
    if first == "later":
        protocol.update_messages("m", [UserMessage("a")])
    else:
        services.create("m", first)
    services.change("m", policy=TokenWindow(99))
    page = operator_client.get("/c/m/?at=0").context["page"]
    assert page.policy_name == name
    assert operator_client.get("/c/m/").context["page"].policy_name == "Token window"
