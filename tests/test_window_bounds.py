"""A stored window has bounds, and refuses a change that would leave more in it."""

from __future__ import annotations

import json

import pytest

from chatmemory import (
    MessageWindow,
    MessageWindowChatMemory,
    SystemMessage,
    UserMessage,
    WindowTooLarge,
    message_to_json,
    queries,
    services,
)
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory, Message
from chatmemory.stores.database import DjangoChatMemoryStore

pytestmark = [pytest.mark.django_db, pytest.mark.database]

MESSAGES, BYTES = "WINDOW_MESSAGES", "WINDOW_BYTES"
SAID = [UserMessage(f"message {n}") for n in range(5)]


@pytest.fixture(params=[MESSAGES, BYTES])
def setting(request, settings) -> str:
    """A bound that five messages fill, and the conversation "full" that they fill."""
    most = {MESSAGES: 5, BYTES: sum(len(message_to_json(each)) for each in SAID)}[request.param]
    settings.CHATMEMORY = {request.param: most}
    services.create("full", MessageWindow(6))
    services.add("full", SAID)
    name: str = request.param
    return name


def state() -> object:
    """Everything that is stored of all conversations."""
    return list(Memory.objects.order_by("pk").values()), Message.objects.count()


def test_an_add_is_refused_and_nothing_is_stored(setting):
    before = state()
    with pytest.raises(WindowTooLarge, match=rf'^the window would hold .+"{setting}"'):
        services.add("full", [UserMessage("one")])
    assert state() == before


def test_the_error_names_the_message_of_several(setting):
    services.create("wide", MessageWindow(7))
    with pytest.raises(WindowTooLarge, match=f"^message 6: .+{setting}") as error:
        services.add("wide", [*SAID, UserMessage("one"), UserMessage("two")])
    assert error.value.index == 5
    assert Message.objects.filter(memory_id="wide").count() == 0


def test_what_is_evicted_does_not_count(setting):
    services.change("full", policy=MessageWindow(5))
    services.add("full", [UserMessage("message 5")])
    assert queries.outline("full").totals.count == 5
    assert verify("full") is None


def test_a_list_is_refused(setting):
    before = state()
    with pytest.raises(WindowTooLarge, match=setting):
        services.set_messages("full", [*SAID, UserMessage("one")])
    with pytest.raises(WindowTooLarge, match=setting):
        DjangoChatMemoryStore().update_messages("theirs", [*SAID, UserMessage("one")])
    assert state() == before
    DjangoChatMemoryStore().update_messages("theirs", SAID)
    assert verify("theirs") is None


def test_a_memory_of_the_library_is_refused(setting):
    memory = MessageWindowChatMemory("full", 6, DjangoChatMemoryStore())
    with pytest.raises(WindowTooLarge, match=setting):
        memory.add(UserMessage("one"))
    in_process = MessageWindowChatMemory("in process", 6)
    in_process.add(*SAID, UserMessage("one"))
    assert len(in_process.messages()) == 6


@pytest.mark.parametrize("copies", [2, 200], ids=["at once", "in slices"])
def test_an_import_is_refused_and_nothing_is_stored(setting, copies):
    before = state()
    with pytest.raises(WindowTooLarge, match=f"^message 6: .+{setting}"):
        services.import_conversation("imported", SAID * copies, MessageWindow(2_000))
    assert state() == before


def test_an_import_without_bounds_of_its_history_is_stored(setting):
    services.import_conversation("imported", SAID * 200, MessageWindow(5))
    assert Memory.objects.get(pk="imported").said_count == 1_000


def test_a_branch_is_refused_and_nothing_is_stored(setting):
    before = state()
    with pytest.raises(WindowTooLarge, match=setting):
        services.branch("full", "branched", [UserMessage("one")])
    assert state() == before
    services.branch("full", "branched", [])
    assert queries.outline("branched").totals.count == 5


def test_a_simulation_tells_of_the_refusal(setting):
    for at in (None, 5):
        with pytest.raises(WindowTooLarge, match=setting):
            queries.simulate("full", [UserMessage("one")], at=at)
    queries.simulate("full", [UserMessage("one")], at=3)


def test_the_api_answers_422(setting, api):
    before = state()
    body = {"messages": [{"role": "user", "content": "one"}], "format": "openai_chat"}
    for path in ("messages", "simulate"):
        answer = api.post(f"/api/v1/memories/full/{path}/", body, format="json")
        problem = answer.json()
        assert (answer.status_code, problem["title"]) == (422, "Window too large")
        assert problem["field"] == "messages[0]"
        assert setting in problem["detail"]
    window = [json.loads(message_to_json(each)) for each in (*SAID, UserMessage("one"))]
    answer = api.put("/api/v1/store/full/", window, format="json")
    assert (answer.status_code, answer.json()["title"]) == (422, "Window too large")
    assert state() == before


def test_a_page_tells_of_the_refusal(setting, operator_client):
    trial = services.keep_trial("full", [UserMessage("one")])
    page = operator_client.get(f"/c/full/?trial={trial}").content.decode()
    assert f"CHATMEMORY[&quot;{setting}&quot;]" in page


def test_under_a_lowered_setting_a_full_window_can_be_read_lowered_and_cleared(setting, settings):
    settings.CHATMEMORY = {setting: 3}
    for refused in (lambda: services.add("full", SAID[:1]), lambda: services.pin("full", 1)):
        with pytest.raises(WindowTooLarge, match=setting):
            refused()
    assert len(queries.window("full").messages) == 5
    services.change("full", policy=MessageWindow(1))
    services.clear_messages("full")
    assert queries.outline("full").stored.count == 0
    assert verify("full") is None


def test_the_size_is_that_of_the_json_whatever_the_change():
    services.create("m", MessageWindow(4))
    services.add("m", [SystemMessage("Be brief: é."), *SAID])
    services.pin("m", 5)
    services.change("m", policy=MessageWindow(4, estimator="gpt-4"))
    services.set_messages("m", [SAID[4], UserMessage("new"), SAID[0]])
    sizes = [len(message_to_json(each).encode()) for each in queries.window("m").messages]
    assert Memory.objects.get().window_size == sum(sizes)
    assert verify("m") is None
