"""The settings of a conversation: policy with a preview, and labels."""

from __future__ import annotations

import logging

import pytest

from chatmemory import MessageWindow, TokenWindow, UserMessage, queries, services
from chatmemory.core.policies import KINDS
from chatmemory.services import protocol
from tests.test_policy_kinds import FrugalWindow

from .markup import tree

URL, SAVE = "/c/c/settings/", "/c/c/change/"
MESSAGES = {"kind": "message_window", "limit": "9", "estimator": "gpt-4o"}


@pytest.fixture(autouse=True)
def _conversation(db):
    services.create("c", MessageWindow(9), {"team": "support"})
    services.add("c", [UserMessage(f"message {n}") for n in range(9)])


def form(**typed: str) -> dict[str, object]:
    """What the page sends if nothing but `typed` is changed."""
    return MESSAGES | {"options_of": "message_window", "name": "team", "value": "support"} | typed


def page(client, **typed: str) -> str:
    return client.post(URL, form(**typed)).content.decode()


class TestThePage:
    def test_shows_the_policy_and_the_labels(self, operator_client):
        html = operator_client.get(URL).content.decode()
        assert '<option value="message_window" selected>Message window</option>' in html
        assert 'value="9"' in html
        assert "Limit in messages" in html
        assert 'value="team"' in html
        assert 'value="support"' in html

    def test_name_the_estimator_that_counts_for_a_client(self, operator_client):
        protocol.update_messages("theirs", [UserMessage("hello")])
        html = operator_client.get("/c/theirs/settings/").content.decode()
        assert 'name="estimator" value="gpt-4o"' in html

    def test_is_linked_from_the_conversation(self, operator_client):
        assert f'href="{URL}"' in operator_client.get("/c/c/").content.decode()

    def test_of_an_unknown_conversation_is_not_found(self, operator_client):
        assert operator_client.get("/c/nobody/settings/").status_code == 404
        assert operator_client.post("/c/nobody/change/", form()).status_code == 404

    def test_sends_no_secret_in_an_address(self, operator_client):
        assert 'method="get"' not in operator_client.get(URL).content.decode()


class TestTheLedger:
    def test_has_the_newest_digest_to_be_copied(self, operator_client):
        html = operator_client.get(URL).content.decode()
        assert f'<pre class="code" tabindex="0" dir="ltr">{queries.memory("c").head}</pre>' in html
        assert "of step 9" in html


class TestThePreview:
    def test_says_what_would_leave_and_changes_nothing(self, operator_client):
        html = page(operator_client, limit="2")
        assert "7 messages would leave at the next add: #1 to #7." in html
        assert "Message window 2: the model would see 2" in html
        assert "It sees 9 messages now." in html
        assert queries.memory("c").policy == MessageWindow(9)

    def test_tells_one_message_and_one_token(self, operator_client):
        assert "the model would see 1 message." in page(operator_client, limit="1")
        services.change("c", policy=MessageWindow(1))
        assert "It sees 1 message now." in page(operator_client, limit="2")

    def test_names_an_estimator_that_counts_instead(self, operator_client):
        html = page(operator_client, estimator="gpt-4")
        assert "Message window 9, counted as gpt-4: the model would see" in html

    def test_says_what_comes_back(self, operator_client):
        services.change("c", policy=MessageWindow(7))
        assert "2 messages come back: #1 and #2." in page(operator_client, limit="9")

    def test_counts_in_the_unit_of_another_kind(self, operator_client):
        html = page(operator_client, kind="token_window", limit="30")
        assert "Limit in tokens" in html
        assert "would leave at the next add" in html
        assert "It sees 9 messages now." in html

    def test_counts_very_many_messages_anew_only_if_asked(self, operator_client, monkeypatch):
        monkeypatch.setattr("chatmemory.queries.simulation.RECOUNTED_AT_ONCE", 8)
        html = page(operator_client, estimator="gpt-4", limit="2")
        assert "all 9 messages in memory are counted anew" in html
        assert "the model would see" not in html
        html = page(operator_client, estimator="gpt-4", limit="2", recount="1")
        assert "7 messages would leave at the next add" in html
        assert "counted anew" not in html
        assert "7 messages would leave" in page(operator_client, limit="2")

    def test_of_the_same_policy_says_so(self, operator_client):
        assert "The policy stays as it is." in page(operator_client)

    @pytest.mark.parametrize(
        ("typed", "problem"),
        [
            ({"limit": "0"}, "greater than or equal to 1"),
            ({"limit": "9" * 30}, "less than or equal to"),
            ({"kind": "nothing"}, "not one of the available choices"),
            ({"estimator": "nobody/knows"}, "nobody/knows"),
        ],
    )
    def test_says_what_is_wrong(self, operator_client, typed, problem):
        response = operator_client.post(URL, form(**typed))
        assert response.status_code == 422
        assert problem in response.content.decode()


class TestSaving:
    def test_stores_the_policy_in_a_step(self, operator_client, caplog):
        with caplog.at_level(logging.INFO, "chatmemory"):
            response = operator_client.post(SAVE, form(limit="4"))
        assert response["Location"] == "/c/c/"
        assert queries.memory("c").policy == MessageWindow(4)
        assert queries.memory("c").last_step == 10
        assert queries.step("c", 10).row.actor == "operator"

    def test_stores_the_labels(self, operator_client):
        labels = {"name": ["team", "", "shop: Lyon"], "value": ["sales", "lost", "a:b"]}
        operator_client.post(SAVE, form() | labels)
        assert queries.memory("c").labels == {"team": "sales", "shop: Lyon": "a:b"}
        assert queries.memory("c").policy == MessageWindow(9)

    def test_of_what_is_already_so_is_no_step(self, operator_client):
        operator_client.post(SAVE, form())
        assert queries.memory("c").last_step == 9

    def test_keeps_what_others_changed_meanwhile(self, operator_client):
        seen = operator_client.get(URL).context["form"].digest
        services.change("c", policy=MessageWindow(5))
        response = operator_client.post(SAVE, form(limit="4", seen=seen))
        assert response.status_code == 412
        assert "Someone changed these settings meanwhile." in response.content.decode()
        assert queries.memory("c").policy == MessageWindow(5)
        again = response.context["form"].digest
        operator_client.post(SAVE, form(limit="4", seen=again))
        assert queries.memory("c").policy == MessageWindow(4)

    def test_does_not_mind_messages_that_arrived_meanwhile(self, operator_client):
        seen = operator_client.get(URL).context["form"].digest
        services.add("c", [UserMessage("one more")])
        operator_client.post(SAVE, form(limit="4", seen=seen))
        assert queries.memory("c").policy == MessageWindow(4)

    def test_says_what_is_wrong_with_labels(self, operator_client):
        labels = {"name": [f"n{n}" for n in range(65)], "value": ["v"] * 65}
        response = operator_client.post(SAVE, form() | labels)
        assert response.status_code == 422
        assert "up to 64 labels" in response.content.decode()

    @pytest.mark.parametrize("address", [URL, SAVE])
    def test_refuses_two_labels_of_one_name_and_keeps_both_to_be_changed(
        self, operator_client, address
    ):
        labels = {"name": ["team", "team ", "", ""], "value": ["support", "sales", "", ""]}
        response = operator_client.post(address, form(limit="4") | labels)
        assert response.status_code == 422
        assert "The label “team” is there twice." in response.content.decode()
        typed = response.context["form"].label_rows
        assert typed[:2] == [("team", "support"), ("team", "sales")]
        assert queries.memory("c").labels == {"team": "support"}
        assert queries.policy("c") == MessageWindow(9)

    def test_needs_post(self, operator_client):
        assert operator_client.get(SAVE).status_code == 405


class TestOptions:
    def test_are_those_of_the_kind(self, operator_client):
        operator_client.post(SAVE, form(option_always_keep_system_message_first="on"))
        policy = queries.memory("c").policy
        assert policy == MessageWindow(9, always_keep_system_message_first=True)
        html = operator_client.get(URL).content.decode()
        assert "Always keep system message first" in html
        assert "checked" in html

    def test_that_change_what_leaves_are_previewed_and_kept(self, operator_client):
        typed = {"limit": "8", "option_low_water": "0.5", "option_oversized": "keep"}
        html = page(operator_client, **typed)
        assert "5 messages would leave at the next add" in html
        assert "Message window 8, down to 50%, keeps oversized messages" in html
        operator_client.post(SAVE, form(**typed))
        policy = queries.memory("c").policy
        assert policy == MessageWindow(8, low_water="0.5", oversized="keep")
        html = operator_client.get(URL).content.decode()
        assert 'value="0.5"' in html
        assert '<option value="keep" selected>' in html

    def test_that_do_not_go_together_are_named(self, operator_client):
        response = operator_client.post(SAVE, form(option_low_water="0.1"))
        assert response.status_code == 422
        assert "low_water 0.1 do not go together" in response.content.decode()

    def test_of_another_kind_begin_with_their_defaults(self, operator_client):
        KINDS.register(FrugalWindow.kind, FrugalWindow)
        try:
            html = page(operator_client, kind="frugal_window", option_surcharge="99")
            assert 'name="option_surcharge" value="5"' in html
            operator_client.post(
                SAVE, form(kind="frugal_window", options_of="frugal_window", option_surcharge="7")
            )
            assert queries.memory("c").policy == FrugalWindow(9, surcharge=7)
        finally:
            KINDS.unregister(FrugalWindow.kind)


def test_a_conversation_that_the_client_decides_takes_a_policy(operator_client):
    services.create("theirs", None)
    assert operator_client.get("/c/theirs/settings/").status_code == 200
    typed = MESSAGES | {"kind": "token_window", "options_of": "token_window", "limit": "500"}
    operator_client.post("/c/theirs/change/", typed)
    assert queries.memory("theirs").policy == TokenWindow(500)


def test_a_policy_whose_package_is_gone_can_be_replaced(operator_client):
    KINDS.register(FrugalWindow.kind, FrugalWindow)
    services.change("c", policy=FrugalWindow(60))
    KINDS.unregister(FrugalWindow.kind)
    assert operator_client.get(URL).status_code == 200
    operator_client.post(SAVE, form(limit="4"))
    assert queries.memory("c").policy == MessageWindow(4)


class TestWhatTheFormCannotShow:
    def test_where_the_client_decides_a_label_is_saved_alone(self, operator_client):
        services.create("free", None)
        html = operator_client.get("/c/free/settings/").content.decode()
        assert '<option value="" selected>The client decides</option>' in html
        typed = {"kind": "", "limit": "", "estimator": "", "name": "team", "value": "a"}
        assert operator_client.post("/c/free/change/", typed).status_code == 302
        row = queries.memory("free")
        assert (row.policy, row.labels) == (None, {"team": "a"})

    def test_a_policy_that_is_not_installed_stays_as_it_is(self, operator_client):
        KINDS.register(FrugalWindow.kind, FrugalWindow)
        services.change("c", policy=FrugalWindow(900, surcharge=7))
        KINDS.unregister(FrugalWindow.kind)
        before = queries.memory("c").policy
        html = operator_client.get(URL).content.decode()
        assert "As it is: frugal_window, not installed" in html
        typed = {"kind": "", "limit": "900", "estimator": "gpt-4o", "name": "team", "value": "b"}
        assert operator_client.post(SAVE, typed).status_code == 302
        row = queries.memory("c")
        assert (row.policy, row.labels) == (before, {"team": "b"})

    def test_a_policy_that_is_not_installed_has_no_limit_to_try(self, operator_client):
        KINDS.register(FrugalWindow.kind, FrugalWindow)
        services.change("c", policy=FrugalWindow(900, surcharge=7))
        KINDS.unregister(FrugalWindow.kind)
        html = operator_client.get("/c/c/").content.decode()
        (limit,) = tree(html).iterfind(".//input[@name='limit']")
        assert limit.get("value") == ""
        verdict = operator_client.post("/c/c/verdict/", {"text": "hello", "limit": ""})
        assert "is not installed" in verdict.content.decode()

    def test_the_label_of_an_import_is_not_in_the_form(self, operator_client, imported):
        html = operator_client.get(f"/c/{imported}/settings/").content.decode()
        assert "import_digest" not in html

    def test_another_policy_can_be_chosen_and_needs_a_limit(self, operator_client):
        services.create("free", None)
        typed = {"kind": "message_window", "limit": "", "estimator": "", "name": "", "value": ""}
        response = operator_client.post("/c/free/change/", typed)
        assert "Give the policy a limit." in response.content.decode()
        operator_client.post("/c/free/change/", typed | {"limit": "5"})
        assert queries.memory("free").policy == MessageWindow(5)
