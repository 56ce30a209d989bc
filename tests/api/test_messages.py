"""The window over HTTP: show, add, replace and clear, and the store protocol."""

from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    UserMessage,
    services,
)
from chatmemory.api.responses import ChangeSerializer, EvictedSerializer
from chatmemory.ledger import protocol
from chatmemory.messages.codec import message_to_dict
from chatmemory.messages.message import with_attributes
from chatmemory.reading import conversations, windows
from chatmemory.reading.conversations import any_memory
from chatmemory.reading.history import history

from ..conversations import numbered
from .messages import URL, add, user

BLANK = {"role": "system", "content": ""}
CALL = {"from": "function_call", "value": '{"name": "find", "arguments": {}}'}
STORE = "/api/v1/store/order-7741/"
WITH_MESSAGES = [("post", "messages/"), ("put", "messages/"), ("post", "simulate/")]


def openai_message(text: str) -> dict:
    return {"role": "user", "content": text}


def openai(*messages: dict, **more) -> dict:
    return {"messages": list(messages), "format": "openai_chat", **more}


def texts_and_client_ids(memory_id: str) -> list[tuple[str, str | None]]:
    return [(row.text, row.client_id) for row in history(memory_id).rows]


def test_it_shows_the_window_now_and_at_a_step(api, memory_id):
    assert add(api, "a", "b", "c", "d").status_code == 201
    now = api.get(f"{URL}messages/").json()
    assert (now["seqs"], now["load"], now["limit"]) == ([2, 3, 4], 3, 3)
    assert now["messages"][0] == user("b")
    budget = now["budget"]
    assert budget["user"] == now["totals"]["tokens"]
    assert budget["used"] == budget["user"] + budget["overhead"]
    assert api.get(f"{URL}messages/?at=2").json()["seqs"] == [1, 2]
    assert api.get(f"{URL}messages/?at=0").json()["messages"] == []


def test_a_window_that_is_read_in_parts_is_the_same(api, memory_id):
    """Of several megabytes, one is in memory at a time."""
    services.change(memory_id, policy=MessageWindow(9))
    protocol.update_messages(memory_id, [UserMessage(f"{n} " + "word " * 90_000) for n in range(4)])
    sent = [with_attributes(each, {"a": 1}) for each in protocol.get_messages(memory_id)]
    protocol.update_messages(memory_id, sent)
    services.change(memory_id, policy=MessageWindow(3))
    whole = windows.window(memory_id)
    now, then = (api.get(f"{URL}messages/{at}").json() for at in ("", "?at=3"))
    assert now["seqs"] == whole.seqs == [2, 3, 4]
    assert now["messages"] == list(map(message_to_dict, whole.messages))
    assert now["messages"][0]["attributes"] == {"a": 1}
    assert then["messages"] == list(map(message_to_dict, sent))
    assert api.get(STORE).json() == then["messages"]


def test_it_writes_openai_messages_and_lists_losses(api, memory_id):
    services.add(memory_id, [AiMessage("hi", thinking="hm")])
    answer = api.get(f"{URL}messages/?as=openai_chat").json()
    assert answer["messages"] == [{"role": "assistant", "content": "hi"}]
    assert answer["lost"] == [{"where": "message 1", "what": "thinking"}]


def test_a_window_is_linted_and_repaired_before_it_is_sent(api, memory_id):
    call = AiMessage(None, [ToolExecutionRequest("1", "find", "{}")])
    services.add(memory_id, [SystemMessage("Be brief."), call, UserMessage("Well?")])
    stored = api.get(f"{URL}messages/").json()
    assert "findings" not in stored
    linted = api.get(f"{URL}messages/?as=openai_chat&lint=openai").json()
    (finding,) = (each for each in linted.pop("findings") if each["severity"] == "refused")
    assert (finding["rule"], finding["severity"]) == ("dangling_call", "refused")
    assert (finding["positions"], finding["repairs"]) == ([1], ["add_placeholder"])
    assert finding["error"].endswith("did not have response messages: 1")
    assert linted == api.get(f"{URL}messages/?as=openai_chat").json()

    repaired = api.get(f"{URL}messages/?as=openai_chat&lint=openai&repair=openai").json()
    assert {each["severity"] for each in repaired["findings"]} <= {"conditional"}
    assert repaired["repair"] == {
        "provider": "openai",
        "seqs": [1, 2, None, 3],
        "done": [
            {
                "repair": "add_placeholder",
                "seq": 2,
                "what": "Tool call #2: a placeholder result was added.",
            }
        ],
    }
    assert repaired["messages"][2]["tool_call_id"] == "1"
    assert api.get(f"{URL}messages/").json() == stored
    of_another = api.get(f"{URL}messages/?lint=anthropic&repair=openai").json()["findings"]
    assert [each["rule"] for each in of_another] == ["first_not_user"]
    assert api.get(f"{URL}messages/?lint=x").data["field"] == "lint"


def test_values_beside_the_messages_are_members_of_their_own(api, memory_id, object_format):
    services.add(memory_id, [UserMessage("hi")])
    answer = api.get(f"{URL}messages/?as={object_format}").json()
    assert (answer["messages"], answer["lost"]) == ([{"said": "hi"}], [])
    assert "beside" not in answer
    services.add(memory_id, [SystemMessage("Be brief.")])
    answer = api.get(f"{URL}messages/?as={object_format}").json()
    assert (answer["messages"], answer["beside"]) == ([{"said": "hi"}], {"about": "Be brief."})
    sent = {"messages": [answer["beside"], {"said": "ho"}], "format": object_format}
    assert api.put(f"{URL}messages/", sent).status_code == 200
    assert [row.text for row in windows.window(memory_id).rows] == ["Be brief.", "ho"]


def test_a_format_for_people_is_no_format_of_the_api(api, memory_id):
    answer = api.get(f"{URL}messages/?as=markdown")
    assert (answer.status_code, answer.data["field"]) == (422, "as")


def test_clearing_twice_changes_nothing(api, memory_id):
    add(api, "a")
    assert api.put(f"{URL}messages/", {"messages": [user("b"), user("c")]}).status_code == 200
    cleared, again = (api.delete(f"{URL}messages/").data["changes"][0] for _ in range(2))
    assert [left["reason"] for left in cleared["evicted"]] == ["CLEARED"] * 2
    assert (again["ignored"], again["step"]) == (True, None)
    assert conversations.memory(memory_id).said_count == 3


def test_it_needs_a_policy(api, db):
    protocol.update_messages("order-7741", [UserMessage("a")])
    body = {"messages": [user("b")]}
    for answer, advice in (
        (add(api, "b"), "set a policy before adding to it"),
        (api.put(f"{URL}messages/", body), "set a policy before replacing its messages"),
        (api.post(f"{URL}messages/1/pin/"), "set a policy before pinning"),
        (
            api.post(f"{URL}simulate/", body),
            "set a policy before simulating, or give a policy to try",
        ),
    ):
        assert (answer.status_code, answer.data["title"]) == (409, "Policy required")
        assert answer.data["detail"].endswith(f"'order-7741': {advice}")


def test_a_change_is_answered_as_its_fields_say(memory_id):
    """It is made without asking each field, and its document is made of the fields."""
    (*_, change) = services.add(memory_id, numbered(5))
    told = ChangeSerializer(change).data
    assert list(told) == list(ChangeSerializer().fields)
    assert told["evicted"] == EvictedSerializer(change.evicted, many=True).data


# What is refused


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([user("fine"), {"type": "USER"}], "messages[1]"),
        ([user("fine"), "text"], "messages[1]"),
        ([None], "messages[0]"),
        ("no list", "messages"),
        ([{"type": "SYSTEM", "text": "x", "foo": 1}], "messages[0]"),
        ([user("fine"), user("nul \0")], None),
    ],
)
def test_an_invalid_message_is_named_and_none_is_stored(api, memory_id, messages, field):
    response = api.post(f"{URL}messages/", {"messages": messages})
    assert (response.status_code, response.data.get("field")) == (422, field)
    assert conversations.memory(memory_id).last_step == 0


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        ({"role": "user"}, "content is missing"),
        ({"role": "assistant", "content": [{"type": "tool_use"}]}, "no part of its content"),
    ],
)
@pytest.mark.parametrize(("method", "path"), WITH_MESSAGES)
def test_a_message_of_which_nothing_can_be_read_is_refused(api, memory_id, method, path, turn, why):
    answer = getattr(api, method)(URL + path, openai(openai_message("a"), turn))
    assert (answer.status_code, answer.data["field"]) == (422, "messages[1]")
    assert why in answer.data["detail"]
    assert texts_and_client_ids(memory_id) == []


@pytest.mark.parametrize(
    ("sent", "format"),
    [(openai_message("a"), "openai_chat"), ({"from": "human", "value": "a"}, "sharegpt")],
)
def test_messages_of_another_format_are_refused_with_its_name(api, memory_id, sent, format):
    answer = api.post(f"{URL}messages/", {"messages": [sent]})
    assert (answer.status_code, answer.data["field"]) == (422, "messages[0]")
    assert f'"format": "{format}"' in answer.data["detail"]
    answer = api.put(STORE, [sent])
    assert (answer.status_code, answer.data["field"]) == (422, "[0]")
    assert "format" not in answer.data["detail"]


@pytest.mark.parametrize(("method", "path"), WITH_MESSAGES[::2])
def test_a_message_that_is_too_large_is_named_as_it_was_sent(api, db, method, path):
    services.create("order-7741", TokenWindow(30, oversized="reject"))
    answer = getattr(api, method)(URL + path, openai(BLANK, openai_message("word " * 99)))
    assert (answer.status_code, answer.data["title"]) == (422, "Oversized message")
    assert answer.data["field"] == "messages[1]"
    assert answer.data["detail"].startswith("message 2: ")


@pytest.mark.parametrize(
    ("method", "path", "setting", "can", "then"),
    [
        ("post", f"{URL}messages/", "ADDED_MESSAGES", "add", ": send several requests"),
        ("put", f"{URL}messages/", "LISTED_MESSAGES", "have", ""),
        ("post", f"{URL}simulate/", "LISTED_MESSAGES", "have", ""),
        ("put", STORE, "LISTED_MESSAGES", "have", ""),
    ],
)
def test_too_many_messages_are_refused(api, memory_id, settings, method, path, setting, can, then):
    settings.CHATMEMORY = {setting: 2}
    three, two = ([user(word) for word in words] for words in ("abc", "ab"))
    answer = getattr(api, method)(path, three if path == STORE else {"messages": three})
    assert answer.status_code == 422
    why = f'a request can {can} at most 2 messages, the limit of CHATMEMORY["{setting}"]{then}'
    assert answer.data["detail"] == why
    assert conversations.memory(memory_id).last_step == 0
    answer = getattr(api, method)(path, two if path == STORE else {"messages": two})
    assert answer.status_code < 300


# Client ids and losses, which count what was sent


def test_client_ids_make_a_retry_harmless(api, memory_id):
    for _ in range(2):
        assert add(api, "a", "b", client_ids=["1", None]).status_code == 201
    assert texts_and_client_ids(memory_id) == [("a", "1"), ("b", None), ("b", None)]
    assert add(api, "other", client_ids=["1"]).data["title"] == "Duplicate client id"


def test_a_retry_after_a_redaction_adds_nothing(api, memory_id):
    add(api, "secret", "b", client_ids=["1", "2"])
    services.redact(memory_id, 1)
    again = add(api, "secret", "b", client_ids=["1", "2"]).data["changes"]
    assert [(each["seq"], each["ignored"]) for each in again] == [(1, True), (2, True)]
    assert texts_and_client_ids(memory_id) == [("[redacted #1]", "1"), ("b", "2")]
    other = openai({"role": "assistant", "content": "secret"}, client_ids=["1"])
    assert api.post(f"{URL}messages/", other).data["title"] == "Duplicate client id"


def test_client_ids_are_taken_as_they_are(api, memory_id):
    added = add(api, "yes", "yes", client_ids=["turn 1", "turn 1 "])
    assert [each["ignored"] for each in added.data["changes"]] == [False, False]


@pytest.mark.parametrize(
    ("format", "sent", "client_ids", "kept"),
    [
        (
            "openai_chat",
            [BLANK, openai_message("a"), BLANK, openai_message("b")],
            ["s", "1", None, "2"],
            [("a", "1"), ("b", "2")],
        ),
        (
            "sharegpt",
            [{"from": "gpt", "value": "I look."}, CALL, {"from": "human", "value": "ok"}],
            ["1", "2", "3"],
            [("I look.\nfind({})", "1"), ("ok", "3")],
        ),
    ],
)
def test_a_client_id_belongs_to_the_message_that_it_was_sent_for(
    api, memory_id, format, sent, client_ids, kept
):
    body = {"messages": sent, "format": format, "client_ids": client_ids}
    for _ in range(2):
        assert api.post(f"{URL}messages/", body).status_code == 201
    assert texts_and_client_ids(memory_id) == kept


@pytest.mark.parametrize(
    ("client_ids", "field", "why"),
    [
        (["s"], "client_ids", "one client id, or null, for each of the 2 messages"),
        ([], "client_ids", "for each of the 2 messages"),
        ({}, "client_ids", "must be a list of strings and nulls"),
        (["x", "y" * 256], "client_ids[1]", "255"),
    ],
)
def test_invalid_client_ids_are_refused(api, memory_id, client_ids, field, why):
    answer = api.post(f"{URL}messages/", openai(BLANK, openai_message("a"), client_ids=client_ids))
    assert (answer.status_code, answer.data["field"]) == (422, field)
    assert why in answer.data["detail"]
    assert texts_and_client_ids(memory_id) == []


@pytest.mark.parametrize(("method", "path"), WITH_MESSAGES[1:])
def test_client_ids_are_refused_where_none_are_stored(api, memory_id, method, path):
    answer = getattr(api, method)(URL + path, openai(openai_message("a"), client_ids=["1"]))
    assert (answer.status_code, answer.data["field"]) == (400, "client_ids")
    assert answer.data["detail"].startswith("unknown member")


@pytest.mark.parametrize(("method", "path"), WITH_MESSAGES)
def test_what_could_not_be_read_is_answered(api, memory_id, method, path):
    body = openai(openai_message("a"), BLANK)
    assert getattr(api, method)(URL + path, body).json()["lost"] == [
        {"where": "message 2", "what": "a blank system message"},
    ]
    assert getattr(api, method)(URL + path, openai(openai_message("b"))).json()["lost"] == []


@pytest.mark.parametrize(("method", "path"), WITH_MESSAGES[:2])
def test_details_that_only_the_format_has_come_back(api, memory_id, method, path):
    parts = [{"type": "text", "text": "look"}, {"type": "video", "x": 1}]
    sent = [{"role": "user", "content": parts}, {"role": "assistant", "content": "x", "n": 1}]
    assert getattr(api, method)(URL + path, openai(*sent)).json()["lost"] == []
    answer = api.get(f"{URL}messages/?as=openai_chat").json()
    assert (answer["messages"], answer["lost"]) == (sent, [])
    lost = [each["what"] for each in api.get(f"{URL}messages/?as=sharegpt").json()["lost"]]
    assert lost == ["attributes.openai_chat", "attributes.openai_chat"]


def test_of_very_many_losses_the_first_are_answered(api, memory_id):
    answer = api.post(f"{URL}messages/", openai(*[BLANK] * 300, openai_message("a")))
    assert len(answer.json()["lost"]) == 200


# The store protocol


def test_the_store_protocol(api, db):
    assert api.get(STORE).json() == []
    assert not any_memory()
    messages = [{"text": "Be brief.", "type": "SYSTEM"}, user("hello")]
    assert api.put(STORE, messages).status_code == 204
    assert api.get(STORE).json() == messages
    assert protocol.get_messages("order-7741") == [
        SystemMessage("Be brief."),
        UserMessage("hello"),
    ]
    assert api.delete(STORE).status_code == 204
    assert api.get(STORE).json() == []
    assert conversations.memory("order-7741").said_count == 2


@pytest.mark.parametrize("method", ["get", "put", "delete"])
@pytest.mark.parametrize(
    "path",
    [
        "store/support",
        "store/acme/7/",
        "store/a b/",
        "store/ü/",
        "store/a~2/",
        "store/suppor~74/",
        "memories/support",
    ],
)
def test_an_id_as_it_is_leads_to_no_conversation(api, db, method, path):
    """A client cuts `support#7/` to `support`, which must not be the conversation `support`."""
    protocol.update_messages("support", [UserMessage("hello")])
    response = getattr(api, method)(f"/api/v1/{path}", [])
    assert response.status_code == 404
    assert "such as order~237 for order#7" in response.json()["detail"]
    assert protocol.get_messages("support") == [UserMessage("hello")]
