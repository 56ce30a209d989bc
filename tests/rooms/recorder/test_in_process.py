"""`record(client)`: the calls of real clients in this process, without a proxy."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from inspector.rooms.calls.call import DropReason
from inspector.rooms.recorder import in_process, record, spool
from inspector.rooms.recorder.in_process import Writer, flush
from inspector.rooms.recorder.spool import call_of

from ...serving import ROOT, database
from .upstream import ANSWER, chunk

openai = pytest.importorskip("openai")
QUESTION = [{"role": "user", "content": "Where is A-1182?"}]
KEY = "sk-proj-0123456789abcdefghijklmnop"


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "spool"


def client_of(upstream, folder: Path, kind=openai.OpenAI, **options):
    client = kind(api_key=KEY, base_url=f"{upstream.url}/v1", max_retries=0, **options)
    return record(client, folder, is_storing=False)


def recorded(folder: Path) -> list[spool.RecordedExchange]:
    assert flush(30)
    paths = spool.waiting(folder) if folder.exists() else ()
    return [spool.exchange_of(each) for path in paths for each in spool.read(path)]


def ask(client, **options):
    return client.chat.completions.create(model="gpt-4o", messages=QUESTION, **options)


def test_a_call_is_recorded_as_it_was_sent_and_answered(upstream, folder):
    assert ask(client_of(upstream, folder)).choices[0].message.content == "Hallo"
    (found,) = recorded(folder)
    assert found.body == upstream.got[0].body
    assert json.loads(found.answer_body) == ANSWER
    call = spool.call_of(found)
    assert (call.model, call.sent.is_exact) == ("gpt-4o", True)
    assert (call.received.finish, call.received.error) == ("stop", "")
    assert call.received.usage is not None
    assert 0 < call.received.duration < 60


def test_no_secret_is_in_the_spool_and_the_provider_gets_it(upstream, folder):
    ask(client_of(upstream, folder))
    assert f"Bearer {KEY}" in [value for _, value in upstream.got[0].headers]
    assert flush(30)
    assert KEY.encode() not in b"".join(each.read_bytes() for each in folder.glob("*.call"))


def test_a_stream_is_passed_on_as_it_comes_and_recorded_whole(upstream, folder):
    released = threading.Event()

    def answer(handler, got) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for word in ("Hal", "lo"):
            delta = {"index": 0, "delta": {"role": "assistant", "content": word}}
            chunk(handler, b"data: %s\n\n" % json.dumps({"choices": [delta]}).encode())
            released.wait(20)
        chunk(handler, b"data: [DONE]\n\n")
        chunk(handler, b"")

    upstream.answer = answer
    words = []
    for piece in ask(client_of(upstream, folder), stream=True):
        words.append(piece.choices[0].delta.content)
        released.set()  # the second piece is sent when the first has been seen
    assert words == ["Hal", "lo"]
    (found,) = recorded(folder)
    received = spool.call_of(found).received
    assert (received.error, received.finish) == ("", "")
    assert received.response["choices"][0]["message"]["content"] == "Hallo"


def test_a_client_of_asyncio_is_recorded(upstream, folder):
    async def run() -> str:
        async with client_of(upstream, folder, openai.AsyncOpenAI) as client:
            return (await ask(client)).choices[0].message.content

    assert asyncio.run(run()) == "Hallo"
    assert [spool.call_of(each).model for each in recorded(folder)] == ["gpt-4o"]


def test_clients_of_anthropic_and_google_are_recorded(upstream, folder):
    anthropic = pytest.importorskip("anthropic")
    genai = pytest.importorskip("google.genai")
    message = {"type": "message", "role": "assistant", "id": "msg_1", "model": "claude"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    said = {"content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn", "usage": usage}
    candidate = {"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}
    answers = iter([{**message, **said}, {"candidates": [candidate]}])
    from .upstream import answer_json

    upstream.answer = lambda handler, got: answer_json(handler, next(answers))
    claude = record(anthropic.Anthropic(api_key=KEY, base_url=upstream.url), folder, False)
    claude.messages.create(model="claude", max_tokens=9, messages=QUESTION)
    options = genai.types.HttpOptions(base_url=upstream.url)
    gemini = record(genai.Client(api_key=KEY, http_options=options), folder, False)
    gemini.models.generate_content(model="gemini-3-pro", contents="Where is A-1182?")
    calls = [spool.call_of(each) for each in recorded(folder)]
    assert [call.format for call in calls] == ["anthropic", "gemini"]


def test_a_conversation_is_named_by_a_header_that_is_not_sent(upstream, folder):
    ask(client_of(upstream, folder), extra_headers={"X-Chatmemory-Conversation": "order-7741"})
    assert upstream.got[0].header("x-chatmemory-conversation") is None
    assert spool.call_of(recorded(folder)[0]).session == "order-7741"


def test_a_provider_that_is_down_is_recorded_as_a_call_without_an_answer(folder):
    client = openai.OpenAI(api_key=KEY, base_url="http://127.0.0.1:1", max_retries=0)
    record(client, folder, is_storing=False)
    with pytest.raises(openai.APIConnectionError):
        ask(client)
    (found,) = recorded(folder)
    assert found.answer is None
    assert "ConnectError" in spool.call_of(found).received.error


def test_what_is_no_call_of_a_model_passes_as_before(upstream, folder):
    client_of(upstream, folder).models.list()
    assert recorded(folder) == []


def test_what_passes_unrecorded_is_counted_by_its_name(upstream, folder):
    """Also a call whose body is a stream, which only the transport reads."""
    with record(httpx.Client(base_url=upstream.url), folder, is_storing=False) as client:
        client.post("/v1/embeddings", json={"input": "words"})
        client.post("/v1/chat/completions", content=iter([b"{", b"}"]))
    assert upstream.got[-1].body == b"{}"
    found = [call_of(each) for each in recorded(folder)]
    assert [(each.why, each.sender) for each in found] == [
        (DropReason.PASSED, "POST /v1/embeddings"),
        (DropReason.PASSED, "POST /v1/chat/completions"),
    ]


def test_recording_twice_changes_nothing(upstream, folder):
    client = record(client_of(upstream, folder), folder, is_storing=False)
    ask(client)
    assert len(recorded(folder)) == 1


def test_what_has_no_client_of_httpx_is_refused():
    with pytest.raises(TypeError, match="dict does not send its requests with httpx"):
        record({})


def test_calls_that_find_no_room_are_counted_and_not_waited_for(upstream, folder, monkeypatch):
    monkeypatch.setattr(in_process, "WAITING_CALLS", 1)
    monkeypatch.setattr(Writer, "_run", lambda self: None)  # a thread that does not keep up
    client = client_of(upstream, folder)
    for _ in range(4):
        ask(client)
    monkeypatch.undo()
    writer = in_process._writers[folder]
    writer._thread = None
    ask(client)
    told = [spool.call_of(each) for each in recorded(folder)]
    assert sum(each.count for each in told if isinstance(each, spool.Dropped)) in (3, 4)


def test_a_spool_that_cannot_be_written_does_not_fail_a_call(upstream, tmp_path):
    (tmp_path / "file").write_text("no folder")
    answer = ask(client_of(upstream, tmp_path / "file" / "spool"))
    assert answer.choices[0].message.content == "Hallo"


PROGRAM = """
import os, sys
from pathlib import Path
import openai
from inspector.rooms.recorder import record

url, folder, way = sys.argv[1:]
client = record(openai.OpenAI(api_key="sk-none", base_url=url), Path(folder))

def ask():
    header = {"X-Chatmemory-Conversation": "order-7741"}
    messages = [{"role": "user", "content": "q"}]
    client.chat.completions.create(model="gpt-4o", messages=messages, extra_headers=header)

if way == "site":
    import django
    django.setup()
    from inspector.rooms.calls.models import ModelCall
    from inspector.rooms.recorder import spool

    def is_stored():
        return ModelCall.objects.exists() and not spool.waiting(Path(folder))

ask()
while way == "site" and not is_stored():
    pass
if way == "fork":
    if os.fork() == 0:
        ask()
        sys.exit()
    os.wait()
"""


def run_program(upstream, folder: Path, way: str, **environment: str) -> None:
    command = [sys.executable, "-c", PROGRAM, f"{upstream.url}/v1", str(folder), way]
    given = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    subprocess.run(command, env=given, check=True, timeout=120)


@pytest.mark.parametrize(("way", "calls"), [("end", 1), ("fork", 2)])
def test_a_process_that_ends_has_written_its_calls(upstream, folder, way, calls):
    """Also one that was forked, whose thread is not copied, and which writes its own only."""
    run_program(upstream, folder, way)
    assert len(spool.waiting(folder)) == calls


def test_a_process_of_the_site_stores_its_calls(upstream, folder, template, tmp_path):
    with database(tmp_path, copy_of=template.url) as url:
        settings = "inspector.project.settings"
        run_program(upstream, folder, "site", DATABASE_URL=url, DJANGO_SETTINGS_MODULE=settings)
    assert spool.waiting(folder) == []
