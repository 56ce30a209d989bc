from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest

from chatmemory import UserMessage, services
from chatmemory.formats import read_transcripts
from chatmemory.ledger.validation import LABELS_MAX
from chatmemory.reading import conversations, overview, steps
from chatmemory.reading.overview import overview_page
from chatmemory.windows.policies import MessageWindow, TokenWindow
from inspector.forms import actions

from ..conversations import create_and_add, users
from .markup import tree, words

URL = "/bulk/"
NASTY = "acme/<b>7"


@pytest.fixture
def three(db) -> list[str]:
    ids = ["one", "two", NASTY]
    for memory_id in ids:
        create_and_add(memory_id, MessageWindow(2), users(*"abc"), {"kept": "yes"})
    return ids


def test_exported_conversations_can_be_imported(operator_client, three):
    response = operator_client.post(URL, {"action": "export", "id": ["two", NASTY, "two"]})
    assert "conversations.jsonl" in response["Content-Disposition"]
    exported = response.getvalue()
    assert [json.loads(line)["id"] for line in exported.decode().splitlines()] == ["two", NASTY]
    reading = read_transcripts(exported)
    assert [each.name for each in reading.transcripts] == ["two", NASTY]
    assert reading.transcripts[0].messages == tuple(UserMessage(word) for word in "abc")


def test_a_label_is_added_to_the_existing_ones(operator_client, three):
    page = tree(operator_client.get("/?q=o").content.decode())
    buttons = page.iterfind(".//form[@id='bulk']//button[@name='action']")
    free = {each.get("value"): "formnovalidate" in each.attrib for each in buttons}
    assert free == {"export": True, "label": False, "delete": True}, "others need no label"
    back = "?" + urlencode({"q": "o", "label": "订" * 60})
    form = {"action": "label", "id": three[:2], "label_as_text": "team: blue", "next": back}
    response = operator_client.post(URL, form)
    assert response["Location"] == f"/{back}"
    assert conversations.memory("one").labels == {"kept": "yes", "team": "blue"}
    assert conversations.memory(NASTY).labels == {"kept": "yes"}
    assert steps.step("one", 4).row.actor == "operator"


def test_nothing_is_deleted_before_it_is_confirmed(operator_client, three):
    form = {"action": "delete", "id": [NASTY, "one"]}
    page = operator_client.post(URL, form).content.decode()
    assert "Delete 2 conversations?" in page
    assert "This also deletes 6 messages" in page
    assert "acme/&lt;b&gt;7" in page
    assert overview.count() == 3
    form["id"] += ["gone", "nul\0"]
    assert operator_client.post(URL, form | {"confirmed": "1"})["Location"] == "/"
    assert [row.memory.id for row in overview_page().rows] == ["two"]


def test_conversations_outside_the_search_are_named_before_their_deletion(operator_client, three):
    form = {"action": "delete", "id": "two", "also": '["one"]', "next": "?q=tw"}
    page = operator_client.post(URL, form).content.decode()
    assert "Delete 2 conversations?" in page
    assert "1 of these conversations is not in this search" in page
    listed = "one · 3 messages · not in this search two · 3 messages"
    assert listed in words(page.encode())
    assert ">Delete 2 conversations</button>" in page
    for query in ("", "?sort=said", "?q=o"):
        page = operator_client.post(URL, form | {"next": query}).content.decode()
        assert "not in this search" not in page


def test_it_counts_how_many_of_the_chosen_the_search_does_not_show(operator_client, three):
    form = {"action": "count", "also": json.dumps([*three, "gone"]), "next": "?q=o"}
    assert operator_client.post(URL, form).json() == {"outside": 2}
    form = {"action": "count", "also": json.dumps(three), "next": "?policy=token_window"}
    assert operator_client.post(URL, form).json() == {"outside": 3}


def test_text_that_is_too_long_to_count_is_not_counted(operator_client, three, monkeypatch):
    monkeypatch.setattr("chatmemory.reading.finding.FEW", 0)
    services.add("one", [UserMessage("a word that many say")])
    form = {"action": "count", "also": '["one"]', "next": "?q=word"}
    assert operator_client.post(URL, form).json() == {"outside": None}


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"action": "delete"}, "Choose at least one"),
        ({"action": "label", "id": "one", "label_as_text": " :x"}, "name:value"),
        ({"action": "label", "id": "one", "label_as_text": "a:\0"}, "Null characters"),
        ({"action": "burn", "id": "one"}, "valid choice"),
        ({"action": "delete", "also": "[" * 9_000}, "cannot be read"),
        ({"action": "delete", "every": "1", "next": "?q=nothing+like+it"}, "Choose at least one"),
    ],
)
def test_an_invalid_action_is_refused_with_a_reason(operator_client, three, form, reason):
    response = operator_client.post(URL, {"next": "?q=o"} | form)
    assert response.status_code == 422
    assert reason in response.content.decode()
    assert f'href="/{form.get("next", "?q=o")}"' in response.content.decode()


def test_too_many_labels_are_refused_for_all_conversations(operator_client, three):
    services.change("two", labels={f"label {n}": "" for n in range(LABELS_MAX)})
    form = {"action": "label", "id": ["one", "two"], "label_as_text": "team:blue"}
    response = operator_client.post(URL, form)
    assert response.status_code == 422
    assert f"at most {LABELS_MAX} labels" in response.content.decode()
    assert "team" not in conversations.memory("one").labels


def test_it_redirects_to_no_other_site(operator_client, three):
    form = {"action": "label", "id": "one", "label_as_text": "a:b", "next": "//evil.example"}
    assert operator_client.post(URL, form)["Location"] == "/"


def test_choices_on_other_pages_are_kept(operator_client, three):
    form = {"action": "label", "id": "one", "also": '["two", "nul\\u0000", 7]'}
    operator_client.post(URL, form | {"label_as_text": "team:blue"})
    assert [conversations.memory(memory_id).labels.get("team") for memory_id in three] == [
        "blue",
        "blue",
        None,
    ]


def test_everything_that_matches_the_filter_is_chosen_at_once(operator_client, three):
    services.change("two", policy=TokenWindow(100))
    form = {"action": "label", "every": "1", "label_as_text": "a:b"}
    operator_client.post(URL, form | {"next": "?policy=message_window"})
    labelled = [memory_id for memory_id in three if "a" in conversations.memory(memory_id).labels]
    assert labelled == ["one", NASTY]


def test_a_confirmation_applies_to_the_shown_conversations(operator_client, three):
    page = operator_client.post(URL, {"action": "delete", "every": "1", "next": "?q=o"})
    services.create("newcomer", MessageWindow(2))
    assert "Delete 2 conversations?" in page.content.decode()
    form = {"action": "delete", "confirmed": "1", "also": page.context["ids"], "next": "?q=o"}
    operator_client.post(URL, form)
    assert sorted(row.memory.id for row in overview_page().rows) == [NASTY, "newcomer"]


@pytest.mark.parametrize("form", [{"also": '["one", "two", "acme/<b>7"]'}, {"every": "1"}])
def test_too_many_at_once_are_refused_and_not_cut(operator_client, three, monkeypatch, form):
    monkeypatch.setattr(actions, "MAX_CONVERSATIONS", 2)
    response = operator_client.post(URL, {"action": "delete", "confirmed": "1"} | form)
    assert response.status_code == 422
    assert "at most 2 conversations" in response.content.decode()
    assert overview.count() == 3
