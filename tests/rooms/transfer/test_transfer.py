"""Exporting a conversation, and importing files."""

from __future__ import annotations

import json
from html import unescape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from chatmemory import AiMessage, SystemMessage, UserMessage, policy_kinds, services
from chatmemory.converters import address
from chatmemory.formats import read_transcripts, readable_formats, writable_formats
from chatmemory.reading import conversations, steps, windows
from chatmemory.reading.conversations import any_memory
from chatmemory.windows.policies import MessageWindow, TokenWindow
from inspector.rooms.transfer.exports import archive_lines
from inspector.rooms.transfer.forms import ExportForm, ImportForm

from ...formats.test_agents import database

pytestmark = pytest.mark.django_db

URL = "/c/order-7741/export/"
SAID = [
    SystemMessage("Be brief."),
    UserMessage("a"),
    AiMessage("b", thinking="hm"),
    UserMessage("c"),
]


@pytest.fixture
def said(memory_id) -> str:
    services.add(memory_id, SAID)
    return memory_id


def download(client, query: str = ""):
    return client.get(f"{URL}?download=1{query}")


def test_an_export_can_be_imported_without_changes(operator_client, said):
    response = download(operator_client)
    (transcript,) = read_transcripts(response.content).transcripts
    assert list(transcript.messages) == SAID


def test_a_window_at_a_step(operator_client, said):
    value = json.loads(download(operator_client, "&what=window&at=4").content)
    assert [message["type"] for message in value] == ["SYSTEM", "AI", "USER"]
    value = json.loads(download(operator_client, "&what=history&at=2").content)
    assert len(value) == 2
    assert json.loads(download(operator_client, "&what=window&at=0").content) == []


def test_the_page_says_what_a_format_loses(operator_client, said):
    page = operator_client.get(f"{URL}?format=openai_chat").content.decode()
    assert "thinking" in page
    assert "loses nothing of these messages" in operator_client.get(URL).content.decode()


def test_a_format_that_is_an_object_is_downloaded_whole(operator_client, said, object_format):
    services.set_messages(said, [SystemMessage("Be brief."), UserMessage("a"), UserMessage("b")])
    response = download(operator_client, f"&what=window&format={object_format}")
    assert json.loads(response.content) == {
        "about": "Be brief.",
        "lines": [{"said": "a"}, {"said": "b"}],
    }
    (transcript,) = read_transcripts(response.content).transcripts
    assert list(transcript.messages) == windows.window(said).messages


def test_markdown_is_downloaded_as_text(operator_client, said):
    response = download(operator_client, "&format=markdown")
    assert response["Content-Type"] == "text/markdown; charset=utf-8"
    assert response["Content-Disposition"].endswith('-history.md"')
    assert response.content.decode().startswith("## System\n\n> Be brief.\n\n## User\n\n> a\n")


@pytest.mark.parametrize("awkward", ["a/../b", 'x"; filename="y', "new\nline", "ü" * 200])
def test_file_names_are_harmless(operator_client, awkward):
    services.create(awkward, MessageWindow(3))
    response = operator_client.get(f"/c/{address(awkward)}/export/?download=1")
    name = response["Content-Disposition"].removeprefix('attachment; filename="').removesuffix('"')
    assert set(name) <= set(address(awkward) + "-history.json")
    assert "/" not in name
    assert len(name) < 200


@pytest.mark.parametrize("query", ["?format=xml", "?what=all", "?at=99", "?at=-1", "?at=x"])
def test_an_impossible_export_is_not_found(operator_client, said, query):
    assert operator_client.get(URL + query).status_code == 404


def test_all_that_is_stored_can_be_downloaded(operator_client, said):
    url = f"{URL}?format=chatmemory"
    assert f'href="{url}"' in operator_client.get(URL).content.decode()
    response = operator_client.get(url)
    assert response["Content-Disposition"] == 'attachment; filename="order-7741.jsonl"'
    assert response.content.decode().splitlines() == list(archive_lines([said]))
    assert operator_client.get("/c/nobody/export/?format=chatmemory").status_code == 404


CHAT = [{"role": "user", "content": "hi"}, {"role": "robot"}]


def post(client, content: bytes | str, name: str = "chats.json", **fields: str):
    content = content if isinstance(content, bytes) else content.encode()
    values = {"format": "auto", "kind": "message_window", "limit": "20", **fields}
    return client.post("/import/", {**values, "file": SimpleUploadedFile(name, content)})


def test_it_imports_and_reports_like_the_command(operator_client):
    response = post(operator_client, json.dumps([CHAT[:1], CHAT]), kind="token_window", limit="99")
    page = " ".join(response.content.decode().split())
    assert (
        "1 conversation imported (format: openai_chat), 0 conversations already stored, 1 "
        "conversation refused." in page
    )
    assert "robot" in page
    assert conversations.memory("chats-1").policy == TokenWindow(99)
    assert steps.step("chats-1", 1).row.actor == "operator"


def test_the_report_lists_what_was_lost(operator_client):
    blank, said = {"role": "system", "content": " "}, {"role": "user", "content": "hi"}
    page = post(operator_client, json.dumps([blank, said])).content.decode()
    assert "1 conversation imported" in page
    assert "<h2>Lost in this import</h2>" in page
    assert "<li>a blank system message, first at .[0]</li>" in page
    page = post(operator_client, json.dumps([blank, blank, said]), begin="b/").content.decode()
    assert "<li>a blank system message, first at .[0] · 2 times</li>" in page


def test_a_reader_that_fails_ends_one_conversation_and_the_next_file_is_imported(
    operator_client, failing, caplog
):
    lines = [{"lines": [{"said": "no"}, {"said": said}]} for said in ("no", "oops", "no")]
    page = unescape(post(operator_client, json.dumps(lines)).content.decode())
    assert "2 conversations imported (format: failing)" in " ".join(page.split())
    refused = page.partition("<h2>Refused conversations</h2>")[2].partition("</section>")[0]
    assert "conversation 2, .[1].lines[1]: chatmemory failed to read this (KeyError)" in refused
    assert "please report" in refused
    assert "Traceback" not in page
    (logged,) = [each for each in caplog.records if each.exc_info]
    assert logged.exc_info[0] is KeyError
    assert "conversation 2, .[1].lines[1]" in logged.getMessage()
    page = post(operator_client, json.dumps(CHAT[:1]), "next.json").content.decode()
    assert "1 conversation imported" in page


def test_a_file_in_which_a_reader_fails_to_find_conversations_is_refused(
    operator_client, failing, caplog
):
    response = post(operator_client, json.dumps({"lines": 5}), format="failing")
    assert response.status_code == 422
    assert "please report" in response.content.decode()
    assert "Traceback" in caplog.text
    assert not any_memory()
    assert post(operator_client, json.dumps(CHAT[:1])).status_code == 200


def test_a_database_of_an_agent_is_imported(operator_client, tmp_path):
    """A browser offers the files whose endings the page names."""
    page = operator_client.get("/import/").content.decode()
    assert ".db," in page.partition(' accept="')[2].partition('"')[0]
    content = database(tmp_path / "opencode.db").read_bytes()
    page = post(operator_client, content, "opencode.db").content.decode()
    assert "imported (format: opencode)" in " ".join(page.split())


def test_the_prefix_can_be_chosen(operator_client):
    post(operator_client, json.dumps(CHAT[:1]), begin="team/")
    assert conversations.memory("team/1").said_count == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\xff", "UTF-8"), (b"{", "JSON"), (b"[" * 50_000, "JSON"), (b"{}", "No conversation")],
)
def test_an_unreadable_file_says_why(operator_client, content, words):
    response = post(operator_client, content)
    assert response.status_code == 422
    assert words in response.content.decode()
    assert not any_memory()


@pytest.mark.parametrize("fields", [{"limit": "0"}, {"kind": "x"}, {"format": "xml"}])
def test_bad_fields_say_why(operator_client, fields):
    assert post(operator_client, json.dumps(CHAT[:1]), **fields).status_code == 422
    assert not any_memory()


def test_a_large_file_is_sent_to_the_command(operator_client, settings):
    settings.INSPECTOR = {"UPLOAD_BYTES": 10, "WHOLE_SITE": True}
    response = post(operator_client, json.dumps(CHAT[:1]))
    assert response.status_code == 422
    told = unescape(response.content.decode())
    assert 'larger than 10 bytes, the limit of INSPECTOR["UPLOAD_BYTES"]' in told
    assert "import_transcripts" in told
    assert not any_memory()


def test_an_export_with_all_steps_is_sent_to_the_command(operator_client, said):
    content = operator_client.get(f"{URL}?format=chatmemory").content
    response = post(operator_client, content, "order-7741.jsonl")
    assert response.status_code == 422
    words = (
        "which this page cannot import. Import the file with python manage.py import_transcripts."
    )
    assert words in response.content.decode()


def test_the_form_offers_every_kind_of_policy_and_every_format():
    fields = ImportForm().fields
    assert list(dict(fields["kind"].choices)) == list(policy_kinds())
    auto, *formats = fields["format"].choices
    assert auto[0] == "auto"
    assert {*dict(formats)} == {*readable_formats()}
    assert formats == sorted(formats, key=lambda each: each[1].casefold())
    assert dict(formats)["claude_code"] == "Claude Code session (claude_code)"
    assert {*dict(ExportForm().fields["format"].choices)} == {*writable_formats()}


def test_options_of_the_policy_can_be_chosen(operator_client):
    chat = json.dumps([{"role": "user", "content": str(n)} for n in range(5)])
    fields = {"limit": "4", "low_water": "0.5", "oversized": "keep", "snap_to_user": "on"}
    post(operator_client, chat, **fields)
    policy = conversations.memory("chats-1").policy
    assert policy == MessageWindow(4, low_water="0.5", oversized="keep", snap_to_user=True)
    assert len(windows.window("chats-1").rows) == 2
    page = post(operator_client, chat, limit="4", low_water="0.1").content.decode()
    assert "max_messages 4 and low_water 0.1 do not go together" in page


def test_importing_again_is_safe(operator_client):
    for _ in range(2):
        response = post(operator_client, json.dumps(CHAT[:1]))
    page = response.content.decode()
    assert "1 conversation already stored" in page
    assert (
        '<a class="link" href="/c/chats-1/"'
        in page.partition("<h2>Already stored conversations</h2>")[2]
    )
    assert conversations.memory("chats-1").last_step == 1
