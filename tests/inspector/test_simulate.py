from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from chatmemory import (
    SystemMessage,
    UserMessage,
    explain,
    queries,
    services,
)
from chatmemory.access.roles import GROUPS, Role
from chatmemory.core.policies import MessageWindow, TokenWindow
from chatmemory.core.texts import readable_text
from chatmemory.models import Trial
from chatmemory.services import protocol
from inspector.conversation.timeline.chart import HEIGHT

from .markup import said, tree

URL = "/c/order-7741/simulate/"
ADD = "/c/order-7741/add/"
BRANCH = "/c/order-7741/branch/"
VERDICT = "/c/order-7741/verdict/"


@pytest.fixture
def full(memory_id) -> str:
    services.add(memory_id, [UserMessage(word) for word in "abc"])
    return memory_id


def draft(client, url=URL, **values):
    return client.post(url, {"role": "user", "text": "d", **values})


def preview(client, **values):
    """Post the composer and return the page that simulates what was written."""
    return client.post(URL, {"role": "user", "text": "d", **values}, follow=True)


def sent_by(response, form: str) -> dict[str, str]:
    """What the fields that belong to a form by its id, but stand elsewhere, send with it."""
    fields = tree(response.content.decode()).iterfind(f".//input[@form='{form}']")
    return {field.get("name"): field.get("value") for field in fields}


def key_of(response) -> str:
    return response.context["page"].trial


def test_a_preview_shows_what_would_leave_and_saves_nothing(operator_client, full):
    page = preview(operator_client).context["page"]
    assert page.is_simulation
    assert [row.text for row in page.memory_pane.messages] == ["b", "c", "d"]
    assert [row.seq for row in page.memory_pane.just_evicted.rows] == [1]
    assert page.simulation.verdict.summary == "Would evict. 1 message: #1"
    assert queries.memory(full).last_step == 3


def test_a_preview_is_marked_as_a_simulation(operator_client, full):
    html = preview(operator_client).content.decode()
    assert "Simulation from step 3." in html
    assert "Nothing here is saved" in html
    assert "Would leave" in html
    assert "Your draft would arrive" in html


def test_the_panel_explains_each_draft(operator_client, full):
    html = preview(operator_client).content.decode()
    answer = html.partition("What would the draft push out?")[2].partition("Would providers")[0]
    assert "Draft 1 would arrive. 1 message would leave: #1 is the oldest." in answer


def test_adding_has_the_effect_of_the_preview(operator_client, full):
    script = "user: one\ncall: find(7)\nresult: found\nai: two"
    page = preview(operator_client, role="script", text=script).context["page"]
    foreseen = [row.text for row in page.memory_pane.messages]
    response = draft(operator_client, ADD, role="script", text=script)
    assert response["Location"] == "/c/order-7741/"
    assert [readable_text(row.message) for row in queries.window(full).rows] == foreseen
    assert queries.step(full, 7).row.actor == "operator"


def test_moving_the_limit_shows_what_would_leave(operator_client, full):
    page = preview(operator_client, text="", limit="1").context["page"]
    assert [row.text for row in page.memory_pane.messages] == ["c"]
    assert page.simulation.verdict.summary == "Would evict. 2 messages: #1 and #2"
    assert queries.memory(full).policy == MessageWindow(3)


def test_a_limit_alone_speaks_of_no_draft(operator_client, full):
    response = preview(operator_client, text="", limit="1")
    assert "What would this limit push out?" in said(response, "why")
    assert "draft" not in said(response, "why").lower()
    assert "Step 3 simulated" in said(response, "tape-bar")
    words = "With a limit of 1, 2 messages would leave at the next add: #1 and #2."
    assert words in said(response, "tape-bar")
    assert words in said(response, "why")
    assert "+ 0" not in response.content.decode()
    trial = key_of(response)
    why = said(operator_client.get(f"/c/order-7741/?trial={trial}&msg=1"), "why")
    assert "Would #1 still count? " in why
    assert "It would be over the limit. The model would no longer see it" in why


def test_a_lowered_limit_shows_what_leaves_at_the_next_add_as_a_draft_does(operator_client, full):
    response = preview(operator_client, text="", limit="1")
    assert "Would leave at the next add" in said(response, "just-evicted")
    page = response.context["page"]
    assert [row.seq for row in page.memory_pane.just_evicted.rows] == [1, 2]
    assert [row.row.seq for row in page.history_pane.rows if row.leaves_now] == [1, 2]
    leaving = [cell.seq for cell in page.timeline.cells if "is-leaving" in cell.css]
    assert leaving == [1, 2]
    assert "Already 2 over 3 " in said(response, "why")
    assert "In memory after 1 " in said(response, "why")


def test_a_lowered_limit_is_drawn_where_its_label_stands(operator_client, full):
    response = preview(operator_client, text="", limit="2")
    chart = response.context["page"].timeline.chart
    (label,) = [each for each in chart.labels if each.text == "limit 2"]
    assert chart.tried == f"M0 {round(label.y * HEIGHT / 100)}H3"
    assert f'd="{chart.tried}"' in response.content.decode()
    (bar,) = chart.drafts
    assert (bar.x, bar.memory) == (2, round(label.y * HEIGHT / 100))
    assert response.context["page"].timeline.is_simulated
    assert operator_client.get("/c/order-7741/").context["page"].timeline.chart.tried == ""


@pytest.mark.parametrize("limit", ["3", "9"])
def test_a_limit_under_which_nothing_leaves_shows_no_departures(operator_client, full, limit):
    services.change(full, policy=MessageWindow(2))
    response = preview(operator_client, text="", limit=limit)
    assert "Would leave" not in response.content.decode()
    assert f"With a limit of {limit}, 1 message comes back: #1." in said(response, "why")


def test_a_script_warns_of_a_word_that_is_no_role(operator_client, full):
    typed = {"role": "script", "text": "user: one\nassistant: two"}
    html = " ".join(operator_client.post(VERDICT, typed).content.decode().split())
    assert "“assistant:” is no role: line 2 goes on with the message before it." in html
    assert "Would evict" in html
    told = operator_client.post(VERDICT, typed | {"role": "user"}).content.decode()
    assert "is no role" not in told


def test_several_drafts_are_asked_about_as_several(operator_client, full):
    response = preview(operator_client, role="script", text="user: d\nai: e")
    assert "What would the drafts push out?" in said(response, "why")
    assert "Step 3 + 2 simulated" in said(response, "tape-bar")
    change = response.context["page"].state.change
    assert explain.caption(change).event == "2 drafts would arrive"


def test_a_limit_and_a_draft_are_put_in_force_together(operator_client, full):
    draft(operator_client, ADD, limit="2")
    assert queries.memory(full).policy == MessageWindow(2)
    assert [row.text for row in queries.window(full).rows] == ["c", "d"]


def test_an_equal_limit_is_not_a_change(operator_client, full):
    draft(operator_client, ADD, limit="3")
    assert [step.kind for step in queries.steps(full)] == ["add"] * 4


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"text": " "}, "Write a message"),
        ({"text": " ", "limit": "3", "shown": "3"}, "Write a message or choose another limit"),
        ({"role": "script", "text": "hello"}, "A script begins with"),
        ({"role": "script", "text": "[1]"}, "No conversation"),
        ({"limit": "0"}, "greater than or equal to 1"),
        ({"role": "robot"}, "valid choice"),
        ({"role": "script", "text": "user: x\n" * 1_001}, "1,001 messages are more than 1,000"),
    ],
)
def test_a_refused_draft_keeps_its_text_and_says_why(operator_client, full, values, words):
    response = draft(operator_client, ADD, **values)
    assert response.status_code == 422
    assert words in response.content.decode()
    assert queries.memory(full).last_step == 3


def test_a_line_break_is_one_character_however_a_browser_sends_it(operator_client, full):
    services.add(full, [SystemMessage("Be brief.\nBe kind.")])
    draft(operator_client, ADD, role="system", text="Be brief.\r\nBe kind.")
    assert queries.memory(full).last_step == 4
    draft(operator_client, ADD, text="one\r\ntwo")
    assert queries.window(full).rows[-1].text == "one\ntwo"


def test_text_that_cannot_be_stored_is_refused(operator_client, full):
    response = draft(
        operator_client, ADD, role="script", text='[{"role":"user","content":"\\u0000"}]'
    )
    assert response.status_code == 422
    assert "NUL" in response.content.decode()
    assert queries.memory(full).last_step == 3


def test_there_is_no_composer_if_the_client_decides(operator_client, db):
    protocol.update_messages("order-7741", [UserMessage("a")])
    assert b"data-composer" not in operator_client.get("/c/order-7741/").content
    assert draft(operator_client).status_code == 422


def test_drafts_gather_until_they_are_added(operator_client, full):
    trial = key_of(preview(operator_client, text="d"))
    page = preview(operator_client, text="e", role="ai", trial=trial).context["page"]
    assert [row.text for row in page.memory_pane.messages] == ["c", "d", "e"]
    assert page.caption.summary.startswith("Your 2 drafts would arrive.")
    draft(operator_client, ADD, text="", trial=trial)
    assert [row.text for row in queries.window(full).rows] == ["b", "c", "d"]


def test_a_refusal_keeps_the_drafts(operator_client, full):
    trial = key_of(preview(operator_client))
    response = draft(operator_client, role="script", text="hello", trial=trial)
    assert response.status_code == 422
    assert response.context["page"].is_simulation
    assert key_of(response) == trial
    assert response.context["form"]["text"].value() == "hello"
    assert response["HX-Push-Url"] == "false"


def test_a_simulation_has_an_address(operator_client, full):
    url = preview(operator_client).redirect_chain[-1][0]
    again = operator_client.get(url).context["page"]
    assert again.is_simulation
    assert [row.text for row in again.memory_pane.messages] == ["b", "c", "d"]
    assert queries.memory(full).last_step == 3


def test_the_address_of_a_simulation_can_be_shared(operator_client, django_user_model, full):
    viewer = django_user_model.objects.create_user("viewer")
    viewer.groups.add(Group.objects.get(name=GROUPS[Role.VIEWER]))
    viewer_client = Client()
    viewer_client.force_login(viewer)
    url = preview(operator_client).redirect_chain[-1][0]
    page = viewer_client.get(url).context["page"]
    assert [row.text for row in page.memory_pane.messages] == ["b", "c", "d"]


def test_equal_drafts_have_one_address(operator_client, full):
    assert key_of(preview(operator_client)) == key_of(preview(operator_client))
    assert Trial.objects.count() == 1
    assert key_of(preview(operator_client, text="e")) != key_of(preview(operator_client))


def test_a_trial_of_another_conversation_is_not_found(operator_client, full):
    services.create("other", MessageWindow(3))
    trial = key_of(preview(operator_client))
    response = operator_client.get(f"/c/other/?trial={trial}")
    assert response.status_code == 404
    assert "This simulation is no longer kept" in response.content.decode()


def test_a_draft_after_the_trial_is_gone_is_refused_with_its_text(operator_client, full):
    trial = key_of(preview(operator_client))
    Trial.objects.all().delete()
    response = draft(operator_client, text="e", trial=trial)
    assert response.status_code == 422
    assert "no longer kept" in response.content.decode()
    assert response.context["form"]["text"].value() == "e"


def test_links_inside_a_simulation_keep_it(operator_client, full):
    page = preview(operator_client, at="2", find="c").context["page"]
    for link in (page.link(1), page.link(2, msg=1), page.link(2, find="b"), page.live_url):
        assert operator_client.get(link).context["page"].drafts[0].text == "d"
    assert page.find == "c"
    assert "trial" not in page.stored_url


def test_a_simulation_is_stepped_through(operator_client, full):
    trial = key_of(preview(operator_client, at="2"))
    page = operator_client.get(f"/c/order-7741/?at=1&trial={trial}").context["page"]
    assert [row.text for row in page.memory_pane.messages] == ["a", "d"]


def test_nothing_is_simulated_where_the_client_decides(operator_client, db):
    protocol.update_messages("order-7741", [UserMessage("a")])
    services.change("order-7741", policy=MessageWindow(3))
    trial = key_of(preview(operator_client))
    response = operator_client.get(f"/c/order-7741/?at=1&trial={trial}")
    assert not response.context["page"].is_simulation
    assert "Nothing is simulated at step 1" in response.content.decode()


def test_a_draft_is_removed(operator_client, full):
    trial = key_of(preview(operator_client, role="script", text="user: d\nai: e\nuser: f"))
    page = preview(operator_client, text="", trial=trial, removed="2").context["page"]
    assert [draft.text for draft in page.drafts] == ["d", "f"]
    for _ in range(2):
        page = preview(operator_client, text="", trial=page.trial, removed="1").context["page"]
    assert not page.is_simulation
    assert not page.trial


def test_a_draft_is_edited_in_its_place(operator_client, full):
    trial = key_of(preview(operator_client, role="script", text="user: d\nai: e\nuser: f"))
    form = operator_client.get(f"/c/order-7741/?trial={trial}&edit=2").context["form"]
    assert (form["role"].value(), form["text"].value()) == ("ai", "e")
    page = preview(operator_client, role="ai", text="E", trial=trial, draft="2").context["page"]
    assert [draft.text for draft in page.drafts] == ["d", "E", "f"]


def test_drafts_have_numbers_of_their_own(operator_client, full):
    html = preview(operator_client, at="2").content.decode()
    assert "draft 1" in html
    assert "#-1" not in html
    assert "#4" not in html
    assert 'aria-label="Edit draft 1"' in html
    assert 'aria-label="Remove draft 1"' in html


def test_a_selected_draft_is_explained(operator_client, full):
    trial = key_of(preview(operator_client))
    response = operator_client.get(f"/c/order-7741/?trial={trial}&draft=1")
    why = response.context["page"].panel.why
    assert why.is_in
    assert why.explanation.question == "Why is draft 1 in memory?"
    assert "Redact" not in response.content.decode()
    assert operator_client.get(f"/c/order-7741/?trial={trial}&draft=2").status_code == 404


def test_a_message_that_a_draft_would_push_out_is_explained(operator_client, full):
    trial = key_of(preview(operator_client))
    page = operator_client.get(f"/c/order-7741/?trial={trial}&msg=1").context["page"]
    assert not page.panel.why.is_in
    assert page.panel.why.explanation.question == "Why would #1 leave?"
    assert page.panel.why.explanation.summary == (
        "There would be no room. With draft 1, memory would need 4 of 3 messages, and #1 is the "
        "oldest message that could leave."
    )
    stays = operator_client.get(f"/c/order-7741/?trial={trial}&msg=2").context["page"]
    assert stays.panel.why.is_in


def test_a_selected_message_stays_selected_in_a_preview_and_after_it(operator_client, full):
    page = preview(operator_client, msg="1").context["page"]
    assert page.msg == 1
    response = draft(operator_client, ADD, text="", trial=page.trial, msg="1")
    assert response["Location"] == "/c/order-7741/?msg=1"


def test_the_verdict_of_a_text_is_told_before_it_is_previewed(operator_client, full):
    response = draft(operator_client, VERDICT)
    html = response.content.decode()
    assert "Would evict" in html
    assert "#1" in html
    assert response.context["writing"].tokens == 5
    assert not Trial.objects.exists()
    trial = key_of(preview(operator_client))
    response = draft(operator_client, VERDICT, text="e", trial=trial)
    assert response.context["writing"].verdict.summary == "Would evict. 1 message: #2"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"text": "", "limit": "3"}, "Preview shows what would leave"),
        ({"text": "", "limit": "3", "shown": "3"}, "Preview shows what would leave"),
        ({"text": "", "limit": "1"}, "2 messages"),
        ({"role": "script", "text": "hello"}, "A script begins with"),
        ({"text": "word " * 20_000}, "Preview counts a text of this length"),
        ({"text": "x", "trial": "unknown"}, "no longer kept"),
    ],
)
def test_the_verdict_answers_every_text(operator_client, full, values, words):
    response = draft(operator_client, VERDICT, **values)
    assert response.status_code == 200
    assert words in response.content.decode()


def test_the_verdict_of_a_result_that_is_too_big(operator_client, db):
    services.create("order-7741", TokenWindow(40))
    services.add("order-7741", [UserMessage("a")])
    script = "call: f({})\nresult: " + "y " * 80
    response = draft(operator_client, VERDICT, role="script", text=script)
    assert (
        response.context["writing"].verdict.summary
        == "Would evict. 3 messages: #1, draft 1 and draft 2"
    )


def test_the_verdict_of_a_message_that_is_too_big(operator_client, db):
    services.create("order-7741", TokenWindow(10))
    html = draft(operator_client, VERDICT, text="word " * 20).content.decode()
    assert "Too big" in html
    assert "Draft 1 alone needs" in html


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (MessageWindow(1), "The system message alone fills the limit. It takes 1 of 1 messages"),
        (TokenWindow(4), "The system message alone is larger than the limit. It takes 13 of 4"),
    ],
)
def test_the_verdict_of_a_message_that_the_system_message_leaves_no_room(
    operator_client, db, policy, words
):
    services.create("order-7741", policy)
    services.add("order-7741", [SystemMessage("Be brief, and kind.")])
    verdict = draft(operator_client, VERDICT, text="hello").context["writing"].verdict
    assert verdict.event == "No room"
    assert verdict.detail.startswith(words)
    assert verdict.detail.endswith(": nothing else can stay.")


def test_a_simulation_can_start_at_a_past_step(operator_client, full):
    page = preview(operator_client, text="x", at="1").context["page"]
    assert [row.text for row in page.memory_pane.messages] == ["a", "x"]
    assert [row.row.text for row in page.history_pane.rows] == ["a", "x"]
    assert page.simulation.verdict.summary == "Fits. Nothing would leave."
    page = preview(operator_client, text="x", at="3").context["page"]
    assert [row.text for row in page.memory_pane.messages] == ["b", "c", "x"]
    empty = preview(operator_client, text="x", at="0").context["page"]
    assert [row.text for row in empty.memory_pane.messages] == ["x"]


def test_a_past_step_has_no_add_button(operator_client, full):
    live = operator_client.get("/c/order-7741/").content
    past = operator_client.get("/c/order-7741/?at=2").content
    assert b"data-composer" in live
    assert b"data-composer" in past
    assert b"/add/" in live
    assert b"/add/" not in past
    assert b"badge-sim" in past
    assert b"badge-sim" not in live


def test_the_history_shows_what_would_be_forgotten(operator_client, full):
    page = preview(operator_client).context["page"]
    assert page.history_pane.rows[0].tag == "would leave · capacity"
    assert page.history_pane.rows[0].leaves_now
    assert "is-draft" in page.history_pane.rows[-1].css
    assert next(cell for cell in page.timeline.cells if cell.is_head).is_draft


def test_a_simulation_is_saved_as_a_new_conversation(operator_client, full):
    services.set_messages(full, [UserMessage("c"), UserMessage("b")])
    foreseen = [
        row.text for row in preview(operator_client, at="4").context["page"].memory_pane.messages
    ]
    response = draft(operator_client, BRANCH, at="4", new_id="other/one")
    assert response["Location"] == "/c/other~2Fone/"
    assert [row.text for row in queries.window("other/one").rows] == foreseen == ["c", "b", "d"]
    assert [row.text for row in queries.history("other/one").rows] == ["a", "b", "c", "d"]
    assert queries.memory("other/one").labels == {"from": "order-7741 step 4"}
    assert queries.memory(full).last_step == 4


def test_it_is_saved_under_the_limit_that_was_tried(operator_client, full):
    draft(operator_client, BRANCH, new_id="two", limit="2")
    assert queries.memory("two").policy == MessageWindow(2)
    assert [row.text for row in queries.window("two").rows] == ["c", "d"]


def test_the_simulation_is_saved_as_it_is_shown(operator_client, full):
    """The bar of a simulation has a form of its own, which does not send the composer."""
    key = key_of(preview(operator_client, limit="2"))
    operator_client.post(BRANCH, {"trial": key, "new_id": "two"})
    assert queries.memory("two").policy == MessageWindow(2)
    assert [row.text for row in queries.window("two").rows] == ["c", "d"]


@pytest.mark.parametrize("at", [{}, {"at": "2"}])
def test_the_step_that_is_shown_is_saved_not_one_that_came_later(operator_client, full, at):
    response = preview(operator_client, **at)
    shown = response.context["page"].at
    services.add(full, [UserMessage("later")])
    saved = operator_client.post(BRANCH, sent_by(response, "branch") | {"new_id": "saved"})
    assert saved["Location"] == "/c/saved/"
    assert "later" not in [row.text for row in queries.history("saved").rows]
    assert queries.memory("saved").labels == {"from": f"order-7741 step {shown}"}


def test_a_refused_id_leaves_the_page_live(operator_client, full):
    sent = sent_by(preview(operator_client), "branch")
    refused = operator_client.post(BRANCH, sent | {"new_id": full})
    assert refused.status_code == 422
    assert refused.context["page"].is_live


def test_a_limit_that_nobody_touched_is_not_put_back(operator_client, full):
    """Somebody else raised it while the page was open."""
    services.change(full, policy=MessageWindow(24))
    draft(operator_client, ADD, limit="3", shown="3")
    assert queries.memory(full).policy == MessageWindow(24)
    draft(operator_client, ADD, limit="5", shown="3")
    assert queries.memory(full).policy == MessageWindow(5)


def test_a_page_sends_the_limit_that_it_shows(operator_client, full):
    page = tree(operator_client.get("/c/order-7741/").content.decode())
    assert [each.get("value") for each in page.iterfind(".//input[@name='shown']")] == ["3"]
    key = key_of(preview(operator_client, limit="2"))
    response = draft(operator_client, text="e", trial=key, limit="2", shown="2")
    assert Trial.objects.get(key=response["Location"].partition("trial=")[2]).limit == 2


def test_a_draft_is_not_changed_into_nothing(operator_client, full):
    key = key_of(preview(operator_client))
    response = draft(operator_client, text=" ", trial=key, draft="1")
    assert response.status_code == 422
    assert "Write the text of the draft, or remove the draft." in response.content.decode()


@pytest.mark.parametrize("edited", ["0", "7"])
def test_a_draft_that_is_not_there_is_not_edited(operator_client, full, edited):
    assert operator_client.get(f"/c/order-7741/?edit={edited}").status_code == 200


@pytest.mark.parametrize(
    ("new_id", "words"),
    [
        ("", "A memory id must be a string of 1 to 255 characters, not “”."),
        ("order-7741", "A conversation with the id “order-7741” already exists."),
    ],
)
def test_an_invalid_id_for_a_branch_is_refused_at_its_field(operator_client, full, new_id, words):
    trial = key_of(preview(operator_client))
    response = draft(operator_client, BRANCH, new_id=new_id, trial=trial)
    assert response.status_code == 422
    page = tree(response.content.decode())
    (field,) = page.iterfind(".//input[@name='new_id']")
    assert (field.get("value"), field.get("aria-invalid")) == (new_id, "true")
    assert said(response, field.get("aria-describedby")) == words
    assert response.content.decode().count("already exists") + (not new_id) == 1
    assert queries.count() == 1


def test_what_does_not_fit_beside_pins_is_told_in_a_sentence(operator_client, full):
    services.pin(full, 2)
    services.pin(full, 3)
    services.change(full, policy=MessageWindow(2))
    html = draft(operator_client, VERDICT).content.decode()
    assert "The message fits the limit, but not beside what is pinned" in html


def test_an_unknown_step_is_refused(operator_client, full):
    response = draft(operator_client, at="9")
    assert response.status_code == 422
    assert "no step 9" in response.content.decode()


@pytest.mark.parametrize("url", [URL, ADD, BRANCH, VERDICT])
def test_only_posts_of_signed_in_users_are_accepted(operator_client, full, url):
    assert operator_client.get(url).status_code == 405
    assert Client().post(url, {"role": "user", "text": "d"}).status_code == 302
    elsewhere = Client(enforce_csrf_checks=True)
    elsewhere.cookies = operator_client.cookies
    assert elsewhere.post(url).status_code == 403
    assert queries.memory(full).last_step == 3


def test_an_unknown_conversation_is_not_found(operator_client):
    assert operator_client.post("/c/nobody/add/", {"text": "x"}).status_code == 404


def test_the_cell_of_a_draft_leads_to_the_draft(operator_client, full):
    response = preview(operator_client)
    page = tree(response.content.decode())
    (cell,) = (each for each in page.iter("li") if each.get("id") == "cells-4")
    (link,) = cell.iter("a")
    assert link.get("hx-get") == f"/c/order-7741/?draft=1&trial={key_of(response)}"
    assert link.get("tabindex") is None
    why = said(operator_client.get(link.get("href")), "why")
    assert "Why is draft 1 in memory?" in why
