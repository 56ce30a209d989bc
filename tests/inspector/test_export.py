from __future__ import annotations

import json

import pytest

from chatmemory import AiMessage, SystemMessage, UserMessage, queries, services
from chatmemory.converters import address
from chatmemory.core.policies import MessageWindow
from chatmemory.formats import read_transcripts

URL = "/c/order-7741/export/"
SAID = [
    SystemMessage("Be brief."),
    UserMessage("a"),
    AiMessage("b", thinking="hm"),
    UserMessage("c"),
]


@pytest.fixture(autouse=True)
def _said(memory_id):
    services.add(memory_id, SAID)


def download(client, query: str = ""):
    return client.get(f"{URL}?download=1{query}")


def test_an_export_can_be_imported_without_changes(operator_client):
    response = download(operator_client)
    (transcript,) = read_transcripts(response.content).transcripts
    assert list(transcript.messages) == SAID


def test_a_window_at_a_step(operator_client):
    value = json.loads(download(operator_client, "&what=window&at=4").content)
    assert [message["type"] for message in value] == ["SYSTEM", "AI", "USER"]
    value = json.loads(download(operator_client, "&what=history&at=2").content)
    assert len(value) == 2
    assert json.loads(download(operator_client, "&what=window&at=0").content) == []


def test_the_page_says_what_a_format_loses(operator_client):
    page = operator_client.get(f"{URL}?format=openai_chat").content.decode()
    assert "thinking" in page
    assert "nothing is lost" in operator_client.get(URL).content.decode()


@pytest.mark.parametrize("awkward", ["a/../b", 'x"; filename="y', "new\nline", "ü" * 200])
def test_file_names_are_harmless(operator_client, awkward):
    services.create(awkward, MessageWindow(3))
    response = operator_client.get(f"/c/{address(awkward)}/export/?download=1")
    name = response["Content-Disposition"].removeprefix('attachment; filename="').removesuffix('"')
    assert set(name) <= set(address(awkward) + "-history.json")
    assert "/" not in name
    assert len(name) < 200


@pytest.mark.parametrize("query", ["?format=xml", "?what=all", "?at=99", "?at=-1", "?at=x"])
def test_an_impossible_export_is_not_found(operator_client, query):
    assert operator_client.get(URL + query).status_code == 404


def test_an_unknown_conversation_is_not_found(operator_client):
    assert operator_client.get("/c/nobody/export/").status_code == 404


def test_exporting_changes_nothing(operator_client, memory_id):
    download(operator_client)
    assert queries.memory(memory_id).last_step == 4
    assert operator_client.post(URL).status_code == 405
