from __future__ import annotations

import pytest

from chatmemory import AiMessage, SystemMessage, UserMessage, queries, services
from chatmemory.core.policies import MessageWindow

URL = "/api/v1/memories/order-7741/"


def user(text: str) -> dict:
    return {"type": "USER", "contents": [{"type": "TEXT", "text": text}]}


def add(api, *words: str, **more):
    return api.post(f"{URL}messages/", {"messages": [user(word) for word in words], **more})


def test_it_adds_and_answers_each_change(api, memory_id):
    response = add(api, "a", "b", "c", "d")
    assert response.status_code == 201
    assert response.data["version"] == 4
    last = response.data["changes"][-1]
    assert last["seq"] == 4
    assert last["evicted"] == [
        {"seq": 1, "type": "USER", "tokens": 5, "reason": "CAPACITY", "because_seq": None}
    ]
    assert last["after"] == {"count": 3, "tokens": 15}


def test_it_says_what_was_ignored(api, memory_id):
    system = {"type": "SYSTEM", "text": "Be brief."}
    response = api.post(f"{URL}messages/", {"messages": [system, system]})
    assert [each["ignored"] for each in response.data["changes"]] == [False, True]


def test_it_reads_openai_messages(api, memory_id):
    body = {"messages": [{"role": "user", "content": "hi"}], "format": "openai_chat"}
    assert api.post(f"{URL}messages/", body).status_code == 201
    assert queries.window(memory_id).messages == [UserMessage("hi")]


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([user("fine"), {"type": "USER"}], "messages[1]"),
        ([user("fine"), "text"], "messages[1]"),
        ([None], "messages[0]"),
        ("no list", "messages"),
        ([{"type": "SYSTEM", "text": "x", "foo": 1}], "messages[0]"),
    ],
)
def test_it_names_the_message_at_fault_and_stores_none(api, memory_id, messages, field):
    response = api.post(f"{URL}messages/", {"messages": messages})
    assert response.status_code == 422
    assert response.data["field"] == field
    assert queries.memory(memory_id).last_step == 0


@pytest.mark.parametrize("bad", ["nul \x00", "\ud800"])
def test_it_refuses_text_that_no_database_holds(api, memory_id, bad):
    raw = '{"messages":[{"type":"USER","contents":[{"type":"TEXT","text":%s}]}]}'
    escaped = "".join(f"\\u{ord(c):04x}" for c in bad)
    response = api.generic(
        "POST", f"{URL}messages/", raw % f'"{escaped}"', content_type="application/json"
    )
    assert response.status_code == 422
    assert queries.memory(memory_id).last_step == 0


def test_it_needs_a_policy(api, db):
    services.update_window("order-7741", [UserMessage("a")])
    assert add(api, "b").status_code == 409
    assert api.post(f"{URL}simulate/", {"messages": [user("b")]}).status_code == 409


def test_it_checks_the_version(api, memory_id):
    body = {"messages": [user("a")]}
    headers = {"If-Match": '"3"'}
    answer = api.post(f"{URL}messages/", body, headers=headers)
    assert answer.status_code == 412
    version = queries.memory(memory_id).version
    assert answer["ETag"] == f'"{version}"'
    assert answer.data["current"]["version"] == version
    assert answer.data["current"]["window"]["count"] == queries.memory(memory_id).window.count
    headers = {"If-Match": '"0"'}
    assert api.post(f"{URL}messages/", body, headers=headers).status_code == 201
    headers = {"If-Match": "three"}
    assert api.post(f"{URL}messages/", body, headers=headers).status_code == 422


CHANGES = [
    ("patch", URL, {"labels": {"a": "b"}}),
    ("delete", URL, None),
    ("post", f"{URL}messages/", {"messages": []}),
    ("put", f"{URL}messages/", {"messages": []}),
    ("delete", f"{URL}messages/", None),
    ("post", f"{URL}messages/1/redact/", None),
    ("put", "/api/v1/store/order-7741/", []),
    ("delete", "/api/v1/store/order-7741/", None),
]


@pytest.mark.parametrize(("method", "url", "body"), CHANGES)
def test_every_change_checks_the_version(api, memory_id, method, url, body):
    add(api, "a")
    answer = getattr(api, method)(url, body, headers={"If-Match": '"7"'})
    assert answer.status_code == 412
    assert answer.data["current"]["version"] == queries.memory(memory_id).version == 1
    assert getattr(api, method)(url, body, headers={"If-Match": '"1"'}).status_code < 300


def test_a_version_of_what_is_not_there(api):
    url, headers = "/api/v1/store/nobody/", {"If-Match": '"7"'}
    answer = api.put(url, [], headers=headers)
    assert (answer.status_code, answer.data["current"]) == (412, None)
    assert api.delete(url, headers=headers).status_code == 404
    assert api.get("/api/v1/memories/nobody/").status_code == 404


def test_client_ids_make_a_retry_harmless(api, memory_id):
    for _ in range(2):
        assert add(api, "a", "b", client_ids=["1", None]).status_code == 201
    assert [row.text for row in queries.history(memory_id).rows] == ["a", "b", "b"]
    assert add(api, "other", client_ids=["1"]).status_code == 409
    assert add(api, "c", "d", client_ids=["1"]).status_code == 422


def test_it_shows_the_window_now_and_then(api, memory_id):
    add(api, "a", "b", "c", "d")
    now = api.get(f"{URL}messages/").data
    assert now["seqs"] == [2, 3, 4]
    assert (now["load"], now["limit"]) == (3, 3)
    assert now["messages"][0] == user("b") | {"contents": [{"text": "b", "type": "TEXT"}]}
    then = api.get(f"{URL}messages/?at=2").data
    assert then["seqs"] == [1, 2]
    assert api.get(f"{URL}messages/?at=0").data["messages"] == []


@pytest.mark.parametrize(("query", "status"), [("?at=9", 404), ("?at=x", 422), ("?as=x", 422)])
def test_it_refuses_steps_and_formats_that_are_none(api, memory_id, query, status):
    assert api.get(f"{URL}messages/{query}").status_code == status


def test_it_writes_openai_messages_and_says_what_is_lost(api, memory_id):
    services.add(memory_id, [AiMessage("hi", thinking="hm")])
    answer = api.get(f"{URL}messages/?as=openai_chat").data
    assert answer["messages"] == [{"role": "assistant", "content": "hi"}]
    assert answer["lost"] == [{"where": "message 1", "what": "thinking"}]


def test_it_sets_and_clears(api, memory_id):
    add(api, "a")
    response = api.put(f"{URL}messages/", {"messages": [user(word) for word in "wxyz"]})
    assert response.data["changes"][0]["after"]["count"] == 3
    response = api.delete(f"{URL}messages/")
    assert [left["reason"] for left in response.data["changes"][0]["evicted"]] == ["CLEARED"] * 3
    assert api.delete(f"{URL}messages/").data["changes"][0]["ignored"]
    assert queries.memory(memory_id).said_count == 5


def test_a_message_tells_its_life(api, memory_id):
    add(api, "a", "b", "c", "d")
    gone = api.get(f"{URL}messages/1/").data
    assert gone["in_memory"] is False
    assert gone["stays"] == [{"entered_step": 1, "left_step": 4, "reason": "CAPACITY", "tokens": 5}]
    assert gone["why"]["summary"] == (
        "There was no room. When #4 arrived, memory needed 4 of 3 messages, "
        "and #1 was the oldest message that could leave."
    )
    assert [line["amount"] for line in gone["why"]["receipt"]] == [3, 1, 4, -1, 3]
    assert api.get(f"{URL}messages/4/").data["why"] is None
    assert api.get(f"{URL}messages/9/").status_code == 404


def test_the_history_pages_both_ways(api, memory_id):
    add(api, *"abcdefg")
    last = api.get(f"{URL}history/?size=3").data
    assert [row["seq"] for row in last["messages"]] == [5, 6, 7]
    assert last["later"] is None
    middle = api.get(last["earlier"]).data
    assert [row["seq"] for row in middle["messages"]] == [2, 3, 4]
    assert [row["seq"] for row in api.get(middle["earlier"]).data["messages"]] == [1]
    assert [row["seq"] for row in api.get(middle["later"]).data["messages"]] == [5, 6, 7]
    then = api.get(f"{URL}history/?at=2").data
    assert [row["seq"] for row in then["messages"]] == [1, 2]
    around = api.get(f"{URL}history/?around=4&size=3").data
    assert 4 in [row["seq"] for row in around["messages"]]


def test_the_ledger_lists_and_explains(api, memory_id):
    add(api, "a", "b", "c", "d")
    page = api.get(f"{URL}steps/?size=3").data
    assert [step["n"] for step in page["steps"]] == [1, 2, 3]
    assert [step["n"] for step in api.get(page["later"]).data["steps"]] == [4]
    step = api.get(f"{URL}steps/4/").data
    assert step["summary"] == "User message #4 arrived. 1 message left: #1 was the oldest."
    assert step["arrived"] == [4]
    assert step["actor"] == "token:tests"
    assert api.get(f"{URL}steps/5/").status_code == 404


def test_a_simulation_changes_nothing(api, memory_id):
    add(api, "a", "b", "c")
    body = {"messages": [user("d")], "policy": {"kind": "message_window", "max_messages": 2}}
    answer = api.post(f"{URL}simulate/", body).data
    assert [left["seq"] for left in answer["changes"][0]["evicted"]] == [1, 2]
    assert answer["window"] == {"count": 2, "tokens": 10}
    assert queries.memory(memory_id).last_step == 3
    assert queries.memory(memory_id).policy == MessageWindow(3)


def test_a_simulation_may_begin_at_any_step(api, memory_id):
    api.post(f"{URL}messages/", {"messages": [user("a"), user("b")]})
    body = {"messages": [user("x")], "at": 1}
    assert api.post(f"{URL}simulate/", body).data["window"]["count"] == 2
    assert api.post(f"{URL}simulate/", body | {"at": 0}).data["window"]["count"] == 1
    assert api.post(f"{URL}simulate/", body | {"at": 3}).status_code == 404


def test_the_store_protocol(api, db):
    url = "/api/v1/store/support/"
    assert api.get(url).data == []
    assert not queries.any_memory()
    messages = [{"text": "Be brief.", "type": "SYSTEM"}, user("hello")]
    assert api.put(url, messages).status_code == 204
    assert api.get(url).data[0] == messages[0]
    assert queries.open_messages("support") == [SystemMessage("Be brief."), UserMessage("hello")]
    assert api.delete(url).status_code == 204
    assert api.get(url).data == []
    assert queries.memory("support").said_count == 2
    assert api.put(url, [messages[0], {"type": "X"}]).data["field"] == "[1]"


def test_adding_takes_a_bounded_number_of_queries(api, memory_id, django_assert_max_num_queries):
    add(api, *(str(n) for n in range(200)))
    with django_assert_max_num_queries(16):
        add(api, "one more")
    with django_assert_max_num_queries(16):
        add(api, *(str(n) for n in range(100)))


@pytest.mark.parametrize(
    "path", ["messages/", "messages/?at=100", "history/", "steps/", "steps/50/", "messages/7/"]
)
def test_reading_takes_a_bounded_number_of_queries(
    api, memory_id, django_assert_max_num_queries, path
):
    add(api, *(str(n) for n in range(200)))
    with django_assert_max_num_queries(10):
        assert api.get(URL + path).status_code == 200
