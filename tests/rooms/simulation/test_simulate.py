"""The composer and its simulations. Its words are tested in tests/golden and tests/explain."""

from __future__ import annotations

import pytest

from chatmemory import SystemMessage, services
from chatmemory.ledger import protocol
from chatmemory.messages.texts import readable_text
from chatmemory.reading import conversations, overview, steps, windows
from chatmemory.reading import history as history_reads
from chatmemory.windows.policies import MessageWindow, TokenWindow
from inspector.conversation.timeline.chart import HEIGHT
from inspector.rooms.simulation.models import Trial
from inspector.rooms.simulation.presenting import SimulationView
from tests.conversations import create_and_add, users
from tests.inspector.markup import said, tree

PAGE = "/c/order-7741/"
URL, ADD, BRANCH, VERDICT = (f"{PAGE}{name}/" for name in ("simulate", "add", "branch", "verdict"))


@pytest.fixture
def full(memory_id) -> str:
    services.add(memory_id, users(*"abc"))
    return memory_id


def draft(client, url=URL, **values):
    return client.post(url, {"role": "user", "text": "d", **values})


def preview(client, **values):
    """Post the composer and return the page of the simulation."""
    return client.post(URL, {"role": "user", "text": "d", **values}, follow=True)


def sent_by(response, form: str) -> dict[str, str]:
    """The values of fields that are outside of a form, and belong to it by its id."""
    fields = tree(response.content.decode()).iterfind(f".//input[@form='{form}']")
    return {field.get("name"): field.get("value") for field in fields}


def key_of(response) -> str:
    return response.context["page"].tried.get("trial", "")


def texts_in_memory(response) -> list[str]:
    """The texts that the model would see."""
    return [row.text for row in response.context["page"].memory_pane.messages]


def window(memory_id: str) -> list[str]:
    return [row.text for row in windows.window(memory_id).rows]


class TestAPreview:
    def test_shows_what_would_leave_and_saves_nothing(self, operator_client, full):
        response = preview(operator_client)
        page = response.context["page"]
        assert page.is_simulation
        assert texts_in_memory(response) == ["b", "c", "d"]
        assert [row.seq for row in page.memory_pane.just_evicted.rows] == [1]
        assert SimulationView(page.state).verdict.summary == "Would evict. 1 message: #1"
        assert page.history_pane.rows[0].tag == "would leave · memory was full"
        assert page.history_pane.rows[0].leaves_now
        assert "is-draft" in page.history_pane.rows[-1].css
        assert next(cell for cell in page.timeline.cells if cell.is_head).is_draft
        assert "Nothing here is saved" in response.content.decode()
        assert conversations.memory(full).last_step == 3

    def test_foretells_what_adding_does(self, operator_client, full):
        script = "user: one\ncall: find(7)\nresult: found\nai: two"
        foreseen = texts_in_memory(preview(operator_client, role="script", text=script))
        response = draft(operator_client, ADD, role="script", text=script)
        assert response["Location"] == PAGE
        assert [readable_text(row.message) for row in windows.window(full).rows] == foreseen
        assert steps.step(full, 7).row.actor == "operator"

    def test_starts_at_a_past_step_too(self, operator_client, full):
        response = preview(operator_client, text="x", at="1")
        assert texts_in_memory(response) == ["a", "x"]
        history = response.context["page"].history_pane.rows
        assert [row.row.text for row in history] == ["a", "x"]
        assert texts_in_memory(preview(operator_client, text="x", at="0")) == ["x"]
        assert b"/add/" not in response.content
        assert b"/add/" in operator_client.get(PAGE).content
        trial = key_of(response)
        assert texts_in_memory(operator_client.get(f"{PAGE}?at=2&trial={trial}")) == ["a", "b", "x"]

    def test_keeps_the_selected_message(self, operator_client, full):
        page = preview(operator_client, msg="1").context["page"]
        assert page.msg == 1
        response = draft(operator_client, ADD, text="", trial=page.tried.get("trial", ""), msg="1")
        assert response["Location"] == f"{PAGE}?msg=1"

    def test_is_refused_where_the_client_decides(self, operator_client, db):
        protocol.update_messages("order-7741", users("a"))
        assert b"data-composer" not in operator_client.get(PAGE).content
        assert draft(operator_client).status_code == 422
        services.change("order-7741", policy=MessageWindow(3))
        trial = key_of(preview(operator_client))
        response = operator_client.get(f"{PAGE}?at=1&trial={trial}")
        assert not response.context["page"].is_simulation
        assert "Nothing is simulated at step 1" in response.content.decode()

    def test_of_a_message_that_does_not_fit_beside_pins_says_so(self, operator_client, full):
        services.pin(full, 2)
        services.pin(full, 3)
        services.change(full, policy=MessageWindow(2))
        html = draft(operator_client, VERDICT).content.decode()
        assert "The message fits the limit, but not beside what is pinned" in html


class TestALimit:
    def test_alone_speaks_of_no_draft(self, operator_client, full):
        response = preview(operator_client, text="", limit="1")
        page, why = response.context["page"], said(response, "why")
        assert texts_in_memory(response) == ["c"]
        assert conversations.memory(full).policy == MessageWindow(3)
        words = "With a limit of 1, 2 messages would leave at the next add: #1 and #2."
        assert words in said(response, "tape-bar")
        assert words in why
        assert "draft" not in why.lower()
        assert "+ 0" not in response.content.decode()
        assert [row.seq for row in page.memory_pane.just_evicted.rows] == [1, 2]
        assert [row.row.seq for row in page.history_pane.rows if row.leaves_now] == [1, 2]
        assert [cell.seq for cell in page.timeline.cells if "is-leaving" in cell.css] == [1, 2]
        why = said(operator_client.get(f"{PAGE}?trial={page.tried['trial']}&msg=1"), "why")
        assert "Would the model still see #1? " in why
        assert "No, it would be over the limit. The model would no longer see the message" in why

    def test_is_drawn_where_its_label_stands(self, operator_client, full):
        timeline = preview(operator_client, text="", limit="2").context["page"].timeline
        (label,) = [each for each in timeline.chart.labels if each.text == "limit 2"]
        assert timeline.chart.tried == f"M0 {round(label.y * HEIGHT / 100)}H3"
        (bar,) = timeline.chart.drafts
        assert (bar.x, bar.memory) == (2, round(label.y * HEIGHT / 100))
        assert operator_client.get(PAGE).context["page"].timeline.chart.tried == ""

    def test_and_a_draft_are_put_in_force_together(self, operator_client, full):
        draft(operator_client, ADD, limit="2")
        assert conversations.memory(full).policy == MessageWindow(2)
        assert window(full) == ["c", "d"]

    def test_that_is_in_force_or_that_nobody_touched_is_not_a_change(self, operator_client, full):
        """Somebody else may have raised it while the page was open."""
        draft(operator_client, ADD, limit="3")
        assert [step.kind for step in steps.steps(full)] == ["add"] * 4
        services.change(full, policy=MessageWindow(24))
        draft(operator_client, ADD, limit="3", shown="3")
        assert conversations.memory(full).policy == MessageWindow(24)
        draft(operator_client, ADD, limit="5", shown="3")
        assert conversations.memory(full).policy == MessageWindow(5)

    def test_is_kept_by_the_trial_that_shows_it(self, operator_client, full):
        page = tree(operator_client.get(PAGE).content.decode())
        assert [each.get("value") for each in page.iterfind(".//input[@name='shown']")] == ["3"]
        key = key_of(preview(operator_client, limit="2"))
        response = draft(operator_client, text="e", trial=key, limit="2", shown="2")
        assert Trial.objects.get(key=response["Location"].partition("trial=")[2]).limit == 2


REFUSED = [
    ({"text": " "}, "Write a message"),
    ({"text": " ", "limit": "3", "shown": "3"}, "Write a message or choose another limit"),
    ({"role": "script", "text": "hello"}, "The first line must begin with"),
    ({"role": "script", "text": "[1]"}, "No conversation"),
    ({"role": "script", "text": '[{"role":"user","content":"\\u0000"}]'}, "NUL"),
    ({"limit": "0"}, "greater than or equal to 1"),
    ({"role": "robot"}, "valid choice"),
    ({"role": "script", "text": "user: x\n" * 1_001}, "can add at most 1,000 messages"),
    ({"at": "9"}, "no step 9"),
    ({"trial": "unknown"}, "has expired"),
]


class TestDrafts:
    @pytest.mark.parametrize(("values", "words"), REFUSED)
    def test_are_refused_with_the_reason_and_keep_their_text(
        self, operator_client, full, values, words
    ):
        url = URL if "at" in values else ADD
        response = draft(operator_client, url, **values)
        assert response.status_code == 422
        assert words in response.content.decode()
        assert response.context["composer"].entered.text == values.get("text", "d")
        assert response["HX-Push-Url"] == "false"
        assert conversations.memory(full).last_step == 3

    def test_gather_until_they_are_added_also_over_a_refusal(self, operator_client, full):
        trial = key_of(preview(operator_client, text="d"))
        refused = draft(operator_client, role="script", text="hello", trial=trial)
        assert key_of(refused) == trial
        response = preview(operator_client, text="e", role="ai", trial=trial)
        assert texts_in_memory(response) == ["c", "d", "e"]
        summary = response.context["page"].caption.summary
        assert summary.startswith("Your 2 drafts would arrive.")
        draft(operator_client, ADD, text="", trial=trial)
        assert window(full) == ["b", "c", "d"]

    def test_are_removed_and_edited_in_their_place(self, operator_client, full):
        trial = key_of(preview(operator_client, role="script", text="user: d\nai: e\nuser: f"))
        form = operator_client.get(f"{PAGE}?trial={trial}&edit=2").context["form"]
        assert (form["role"].value(), form["text"].value()) == ("ai", "e")
        page = preview(operator_client, role="ai", text="E", trial=trial, draft="2").context["page"]
        assert [each.text for each in page.drafts] == ["d", "E", "f"]
        for left in (["d", "f"], ["d"], []):
            removed = "2" if len(page.drafts) > 1 else "1"
            page = preview(
                operator_client, text="", trial=page.tried.get("trial", ""), removed=removed
            ).context["page"]
            assert [each.text for each in page.drafts] == left
        assert not page.tried.get("trial")
        response = draft(operator_client, text=" ", trial=trial, draft="1")
        assert response.status_code == 422
        assert "Write the text of the draft, or remove the draft." in response.content.decode()
        for absent in ("0", "7"):
            assert operator_client.get(f"{PAGE}?edit={absent}").status_code == 200

    def test_are_explained_as_what_they_push_out(self, operator_client, full):
        trial = key_of(preview(operator_client))
        response = operator_client.get(f"{PAGE}?trial={trial}&draft=1")
        why = response.context["page"].panel.why
        assert (why.is_in, why.explanation.question) == (True, "Why is draft 1 in memory?")
        assert "Redact" not in response.content.decode()
        why = operator_client.get(f"{PAGE}?trial={trial}&msg=1").context["page"].panel.why
        assert (why.is_in, why.explanation.question) == (False, "Why would #1 leave?")
        assert operator_client.get(f"{PAGE}?trial={trial}&draft=2").status_code == 404

    def test_have_a_cell_that_leads_to_them(self, operator_client, full):
        response = preview(operator_client)
        page = tree(response.content.decode())
        (cell,) = (each for each in page.iter("li") if each.get("id") == "cells-4")
        (link,) = cell.iter("a")
        assert link.get("hx-get") == f"{PAGE}?draft=1&trial={key_of(response)}"
        assert "Why is draft 1 in memory?" in said(operator_client.get(link.get("href")), "why")

    def test_have_line_breaks_of_one_character_however_a_browser_sends_them(
        self, operator_client, full
    ):
        services.add(full, [SystemMessage("Be brief.\nBe kind.")])
        draft(operator_client, ADD, role="system", text="Be brief.\r\nBe kind.")
        assert conversations.memory(full).last_step == 4
        draft(operator_client, ADD, text="one\r\ntwo")
        assert window(full)[-1] == "one\ntwo"


class TestItsAddress:
    def test_is_not_found_in_another_conversation(self, operator_client, full):
        services.create("other", MessageWindow(3))
        response = operator_client.get(f"/c/other/?trial={key_of(preview(operator_client))}")
        assert response.status_code == 404
        assert "This simulation has expired" in response.content.decode()

    def test_is_kept_by_links_inside(self, operator_client, full):
        page = preview(operator_client, at="2", find="c").context["page"]
        for link in (page.link(1), page.link(2, msg=1), page.link(2, find="b"), page.live_url):
            assert operator_client.get(link).context["page"].drafts[0].text == "d"
        assert page.marks.kept == {"find": "c"}
        assert "trial" not in page.stored_url


class TestTheVerdict:
    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ({"text": "", "limit": "3"}, "Preview shows what would leave"),
            ({"text": "", "limit": "3", "shown": "3"}, "Preview shows what would leave"),
            ({"text": "", "limit": "1"}, "2 messages"),
            ({"role": "script", "text": "hello"}, "The first line must begin with"),
            ({"text": "word " * 20_000}, "Press Preview to count a text of this length"),
            ({"text": "x", "trial": "unknown"}, "has expired"),
        ],
    )
    def test_answers_every_text(self, operator_client, full, values, words):
        response = draft(operator_client, VERDICT, **values)
        assert response.status_code == 200
        assert words in response.content.decode()

    def test_warns_of_a_word_in_a_script_that_is_no_role(self, operator_client, full):
        typed = {"role": "script", "text": "user: one\nassistant: two"}
        html = " ".join(operator_client.post(VERDICT, typed).content.decode().split())
        assert "“assistant:” is no role, so line 2 continues the message before." in html
        assert "Would evict" in html
        told = operator_client.post(VERDICT, typed | {"role": "user"}).content.decode()
        assert "is no role" not in told

    def test_after_a_preview_nothing_is_counted_until_more_is_written(self, operator_client, full):
        key = key_of(preview(operator_client))
        empty = draft(operator_client, VERDICT, text="", trial=key)
        assert empty.context["writing"].verdict.summary == "Would evict. 1 message: #1"
        assert "tok" not in empty.content.decode().partition("<output")[2]
        more = draft(operator_client, VERDICT, text="hello", trial=key).content.decode()
        assert "</b> tok" in more.partition("<output")[2]

    def test_names_the_message_that_is_too_big(self, operator_client, db):
        create_and_add("order-7741", TokenWindow(40), users("a"))
        script = "call: f({})\nresult: " + "y " * 80
        response = draft(operator_client, VERDICT, role="script", text=script)
        told = response.context["writing"].verdict.summary
        assert told == "Would evict. 3 messages: #1, draft 1 and draft 2"
        html = draft(operator_client, VERDICT, text="word " * 50).content.decode()
        assert "Too large for the limit" in html
        assert "Draft 1 alone needs" in html

    @pytest.mark.parametrize(
        ("policy", "words"),
        [
            (MessageWindow(1), "The system message alone fills the limit. It takes 1 of 1 mess"),
            (TokenWindow(4), "The system message alone is larger than the limit. It takes 13 of 4"),
        ],
    )
    def test_tells_where_the_system_message_leaves_no_room(
        self, operator_client, db, policy, words
    ):
        create_and_add("order-7741", policy, [SystemMessage("Be brief, and kind.")])
        verdict = draft(operator_client, VERDICT, text="hello").context["writing"].verdict
        assert verdict.event == "No room"
        assert verdict.detail.startswith(words)
        assert verdict.detail.endswith(": nothing else can stay.")


class TestSavingAsANewConversation:
    def test_saves_the_shown_window(self, operator_client, full):
        services.set_messages(full, users("c", "b"))
        foreseen = texts_in_memory(preview(operator_client, at="4"))
        response = draft(operator_client, BRANCH, at="4", new_id="other/one")
        assert response["Location"] == "/c/other~2Fone/"
        assert window("other/one") == foreseen == ["c", "b", "d"]
        said = [row.text for row in history_reads.history("other/one").rows]
        assert said == ["a", "b", "c", "d"]
        assert conversations.memory("other/one").labels == {"from": "step 4"}
        assert conversations.memory(full).last_step == 4

    def test_saves_the_limit_that_was_tried(self, operator_client, full):
        """The bar of a simulation has a form of its own, which does not send the composer."""
        key = key_of(preview(operator_client, limit="2"))
        operator_client.post(BRANCH, {"trial": key, "new_id": "two"})
        assert conversations.memory("two").policy == MessageWindow(2)
        assert window("two") == ["c", "d"]

    @pytest.mark.parametrize("at", [{}, {"at": "2"}])
    def test_saves_the_step_that_is_shown_not_one_that_came_later(self, operator_client, full, at):
        response = preview(operator_client, **at)
        shown = response.context["page"].at
        services.add(full, users("later"))
        saved = operator_client.post(BRANCH, sent_by(response, "branch") | {"new_id": "saved"})
        assert saved["Location"] == "/c/saved/"
        assert "later" not in [row.text for row in history_reads.history("saved").rows]
        assert conversations.memory("saved").labels == {"from": f"step {shown}"}

    @pytest.mark.parametrize(
        ("new_id", "words"),
        [
            ("", "A memory id must be a string of 1 to 255 characters, not “”."),
            ("order-7741", "A conversation with the id “order-7741” already exists."),
        ],
    )
    def test_refuses_an_invalid_id_at_its_field(self, operator_client, full, new_id, words):
        sent = sent_by(preview(operator_client), "branch")
        response = operator_client.post(BRANCH, sent | {"new_id": new_id})
        assert response.status_code == 422
        assert response.context["page"].is_live
        (field,) = tree(response.content.decode()).iterfind(".//input[@name='new_id']")
        assert (field.get("value"), field.get("aria-invalid")) == (new_id, "true")
        assert said(response, field.get("aria-describedby")) == words
        assert response.content.decode().count("already exists") + (not new_id) == 1
        assert overview.count() == 1
