"""The settings of a conversation: policy with a preview, and labels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chatmemory import MessageWindow, TokenWindow, UserMessage, services
from chatmemory.reading import conversations, steps
from chatmemory.windows.policies import KINDS
from tests.test_policy_kinds import FrugalWindow

from ...conversations import create_and_add, numbered
from ...inspector.markup import tree

URL, SAVE = "/c/c/settings/", "/c/c/change/"
MESSAGES = {"kind": "message_window", "limit": "9", "estimator": "gpt-4o"}


@pytest.fixture(autouse=True)
def _conversation(db):
    create_and_add("c", MessageWindow(9), numbered(9), {"team": "support"})


@pytest.fixture
def frugal() -> Iterator[None]:
    """A kind of policy that a package registers."""
    KINDS.register(FrugalWindow.kind, FrugalWindow)
    yield
    KINDS.unregister(FrugalWindow.kind)


@pytest.fixture
def not_installed() -> None:
    """The policy of the conversation is of a kind whose package is gone."""
    KINDS.register(FrugalWindow.kind, FrugalWindow)
    services.change("c", policy=FrugalWindow(900, surcharge=7))
    KINDS.unregister(FrugalWindow.kind)


def form(**typed: object) -> dict[str, object]:
    """What the page sends if nothing but `typed` is changed."""
    return MESSAGES | {"options_of": "message_window", "name": "team", "value": "support"} | typed


def page(client, **typed: str) -> str:
    return client.post(URL, form(**typed)).content.decode()


def test_the_page_shows_the_policy_the_labels_and_the_newest_digest(operator_client):
    html = operator_client.get(URL).content.decode()
    assert '<option value="message_window" selected>Message window</option>' in html
    assert "Limit in messages" in html
    assert 'value="team"' in html
    assert (
        f'<pre class="code" tabindex="0" dir="ltr">{conversations.memory("c").head}</pre>' in html
    )


def test_the_label_of_an_import_is_not_in_the_form(operator_client, imported):
    html = operator_client.get(f"/c/{imported}/settings/").content.decode()
    assert "import_digest" not in html


class TestThePreview:
    def test_says_what_would_leave_and_changes_nothing(self, operator_client):
        html = page(operator_client, limit="2")
        assert "7 messages would leave at the next add: #1 to #7." in html
        assert "Message window 2: the model would see 2" in html
        assert "Now the model sees 9 messages." in html
        assert "The policy would not change." in page(operator_client)
        assert "nothing comes back" in page(operator_client, limit="12")
        assert conversations.memory("c").policy == MessageWindow(9)

    def test_the_options_of_another_kind_can_be_changed_at_once(self, operator_client):
        """They begin with their defaults, whatever options of the kind before were sent."""
        html = page(operator_client, kind="token_window", option_snap_to_user="on")
        fields = {each.get("name"): each for each in tree(html).iter("input")}
        snaps, clears = (fields[f"option_{n}"] for n in ("snap_to_user", "clear_tool_results"))
        assert (snaps.get("disabled"), clears.get("disabled")) == (None, None)
        assert (snaps.get("checked"), clears.get("value")) == (None, "0")

    def test_counts_in_the_unit_of_another_kind(self, operator_client):
        html = page(operator_client, kind="token_window", limit="30")
        assert "Limit in tokens" in html
        assert "would leave at the next add" in html
        assert "Now the model sees 9 messages." in html

    def test_counts_very_many_messages_anew_only_if_asked(self, operator_client, monkeypatch):
        monkeypatch.setattr("chatmemory.reading.simulation.RECOUNTED_AT_ONCE", 8)
        html = page(operator_client, estimator="gpt-4", limit="2")
        assert "recount all 9 messages in memory" in html
        assert "the model would see" not in html
        html = page(operator_client, estimator="gpt-4", limit="2", recount="1")
        assert "7 messages would leave at the next add" in html
        assert "counted anew" not in html
        assert "7 messages would leave" in page(operator_client, limit="2")

    @pytest.mark.parametrize(
        ("typed", "problem"),
        [
            ({"limit": "0"}, "greater than or equal to 1"),
            ({"limit": "9" * 30}, "less than or equal to"),
            ({"kind": "nothing"}, "not one of the available choices"),
            ({"estimator": "nobody/knows"}, "nobody/knows"),
            ({"option_low_water": "0.1"}, "low_water 0.1 do not go together"),
        ],
    )
    def test_says_what_is_wrong(self, operator_client, typed, problem):
        response = operator_client.post(URL, form(**typed))
        assert response.status_code == 422
        assert problem in response.content.decode()


class TestSaving:
    def test_stores_the_policy_in_a_step(self, operator_client):
        response = operator_client.post(SAVE, form(limit="4"))
        assert response["Location"] == "/c/c/"
        assert conversations.memory("c").policy == MessageWindow(4)
        assert conversations.memory("c").last_step == 10
        assert steps.step("c", 10).row.actor == "operator"
        assert operator_client.get(SAVE).status_code == 405

    def test_stores_the_labels(self, operator_client):
        operator_client.post(SAVE, form())
        assert conversations.memory("c").last_step == 9, "what is already so is no step"
        labels = {"name": ["team", "", "shop: Lyon"], "value": ["sales", "lost", "a:b"]}
        operator_client.post(SAVE, form(**labels))
        assert conversations.memory("c").labels == {"team": "sales", "shop: Lyon": "a:b"}
        assert conversations.memory("c").policy == MessageWindow(9)

    def test_keeps_what_others_changed_meanwhile(self, operator_client):
        seen = operator_client.get(URL).context["form"].digest
        services.change("c", policy=MessageWindow(5))
        response = operator_client.post(SAVE, form(limit="4", seen=seen))
        assert response.status_code == 412
        assert "Someone changed these settings meanwhile." in response.content.decode()
        assert conversations.memory("c").policy == MessageWindow(5)
        again = response.context["form"].digest
        services.add("c", [UserMessage("a message changes no settings")])
        operator_client.post(SAVE, form(limit="4", seen=again))
        assert conversations.memory("c").policy == MessageWindow(4)

    @pytest.mark.parametrize("address", [URL, SAVE])
    def test_refuses_two_labels_of_one_name_and_keeps_both_to_be_changed(
        self, operator_client, address
    ):
        labels = {"name": ["team", "team ", "", ""], "value": ["support", "sales", "", ""]}
        response = operator_client.post(address, form(limit="4", **labels))
        assert response.status_code == 422
        assert "The label “team” appears twice." in response.content.decode()
        typed = response.context["form"].label_rows
        assert typed[:2] == [("team", "support"), ("team", "sales")]
        assert conversations.memory("c").labels == {"team": "support"}
        assert conversations.policy("c") == MessageWindow(9)


class TestOptions:
    def test_are_previewed_and_kept(self, operator_client):
        typed = {"limit": "8", "option_low_water": "0.5", "option_oversized": "keep"}
        typed["option_always_keep_system_message_first"] = "on"
        html = page(operator_client, **typed)
        assert "5 messages would leave at the next add" in html
        assert "trimmed to 50 % when full" in html
        operator_client.post(SAVE, form(**typed))
        options = {"low_water": "0.5", "oversized": "keep"}
        policy = MessageWindow(8, always_keep_system_message_first=True, **options)
        assert conversations.memory("c").policy == policy
        html = operator_client.get(URL).content.decode()
        assert 'value="0.5"' in html
        assert '<option value="keep" selected>' in html
        assert "Keep the system message first in memory" in html
        assert "checked" in html

    def test_of_another_kind_begin_with_their_defaults(self, operator_client, frugal):
        html = page(operator_client, kind="frugal_window", option_surcharge="99")
        assert 'name="option_surcharge" value="5"' in html
        typed = {"kind": "frugal_window", "options_of": "frugal_window", "option_surcharge": "7"}
        operator_client.post(SAVE, form(**typed))
        assert conversations.memory("c").policy == FrugalWindow(9, surcharge=7)


class TestWhatTheFormCannotShow:
    def test_where_the_client_decides_labels_are_saved_alone_or_a_policy_is_chosen(
        self, operator_client
    ):
        services.create("free", None)
        html = operator_client.get("/c/free/settings/").content.decode()
        assert '<option value="" selected>The client decides memory</option>' in html
        typed = {"kind": "", "limit": "", "estimator": "", "name": "team", "value": "a"}
        assert operator_client.post("/c/free/change/", typed).status_code == 302
        row = conversations.memory("free")
        assert (row.policy, row.labels) == (None, {"team": "a"})
        typed |= {"kind": "token_window", "options_of": "token_window"}
        refused = operator_client.post("/c/free/change/", typed)
        assert "Give the policy a limit." in refused.content.decode()
        operator_client.post("/c/free/change/", typed | {"limit": "500"})
        assert conversations.memory("free").policy == TokenWindow(500)

    def test_a_policy_that_is_not_installed_stays_or_is_replaced(
        self, operator_client, not_installed
    ):
        before = conversations.memory("c").policy
        html = operator_client.get(URL).content.decode()
        assert "Keep frugal_window, which is not installed" in html
        typed = {"kind": "", "limit": "900", "estimator": "gpt-4o", "name": "team", "value": "b"}
        assert operator_client.post(SAVE, typed).status_code == 302
        row = conversations.memory("c")
        assert (row.policy, row.labels) == (before, {"team": "b"})
        operator_client.post(SAVE, form(limit="4"))
        assert conversations.memory("c").policy == MessageWindow(4)

    def test_a_policy_that_is_not_installed_has_no_limit_to_try(
        self, operator_client, not_installed
    ):
        html = operator_client.get("/c/c/").content.decode()
        (limit,) = tree(html).iterfind(".//input[@name='limit']")
        assert limit.get("value") == ""
        verdict = operator_client.post("/c/c/verdict/", {"text": "hello", "limit": ""})
        assert "is not installed" in verdict.content.decode()
