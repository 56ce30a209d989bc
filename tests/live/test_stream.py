"""The stream of a conversation, over real HTTP from a real server process."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
import requests
from asgiref.sync import async_to_sync, sync_to_async

from chatmemory.access.roles import Role
from chatmemory.access.tokens import create_token, revoke_token, tokens
from chatmemory.live import ALL_CONVERSATIONS, Watcher
from inspector.live import stream

SECONDS = 10


@contextmanager
def following(served, memory_id: str, session=None, **headers: str) -> Iterator[Iterator[int]]:
    """The step numbers of a stream, as they arrive."""
    session = session or served.session()
    url = f"{served.url}/c/{memory_id}/live/"
    with session.get(url, stream=True, timeout=SECONDS, headers=headers) as response:
        response.raise_for_status()
        assert response.headers["Content-Type"] == "text/event-stream"
        lines = response.iter_lines(chunk_size=1, decode_unicode=True)
        yield (int(line.removeprefix("id: ")) for line in lines if line.startswith("id: "))


def test_a_reader_is_sent_each_step(served):
    served.create("told")
    with following(served, "told") as steps:
        served.say("told", "hello")
        assert next(steps) == 1
        served.say("told", "again")
        assert next(steps) == 2


def test_a_late_reader_is_sent_the_newest_step(served):
    served.create("late")
    served.say("late", "one", "two")
    with following(served, "late") as steps:
        assert next(steps) == 2


def test_a_reader_who_reconnects_is_sent_only_newer_steps(served):
    served.create("back")
    served.say("back", "one", "two")
    with following(served, "back", **{"Last-Event-ID": "2"}) as steps:
        served.say("back", "three")
        assert next(steps) == 3


def test_two_readers_are_sent_the_same_step(served):
    served.create("both")
    with following(served, "both") as one, following(served, "both") as other:
        served.say("both", "hello")
        assert (next(one), next(other)) == (1, 1)


def test_other_conversations_send_nothing_to_a_reader(served):
    served.create("mine")
    served.create("theirs")
    with following(served, "mine") as steps:
        served.say("theirs", "a", "b", "c")
        served.say("mine", "hello")
        assert next(steps) == 1


def test_a_step_made_by_another_process_is_sent(served):
    served.create("elsewhere")
    with following(served, "elsewhere") as steps:
        served.manage(
            "shell",
            "-c",
            "from chatmemory import UserMessage, services;"
            "services.add('elsewhere', [UserMessage('from another process')])",
        )
        assert next(steps) == 1


@pytest.mark.own_server
def test_a_restart_loses_nothing(served):
    served.create("restart")
    session = served.session()
    with following(served, "restart", session) as steps:
        served.say("restart", "one")
        assert next(steps) == 1
    served.stop()
    served.manage(
        "shell",
        "-c",
        "from chatmemory import UserMessage, services;"
        "services.add('restart', [UserMessage('while it was down')])",
    )
    served.start()
    with following(served, "restart", session, **{"Last-Event-ID": "1"}) as steps:
        assert next(steps) == 2


@pytest.mark.parametrize(("path", "status"), [("/c/nobody/live/", 404), ("/c/~zz/live/", 404)])
def test_an_unknown_conversation_is_not_found(served, path, status):
    assert served.session().get(served.url + path, timeout=SECONDS).status_code == status


def test_signed_out_readers_are_refused(served):
    served.create("secret")
    url = f"{served.url}/c/secret/live/"
    assert requests.get(url, timeout=SECONDS).status_code == 401
    cookies = {"sessionid": "forged"}
    assert requests.get(url, cookies=cookies, timeout=SECONDS).status_code == 401
    assert served.session().post(url, timeout=SECONDS).status_code == 405


def with_token(served, role: str, beginning: str = "") -> requests.Session:
    """A client with a token that was created on the page."""
    person, url = served.session(), f"{served.url}/tokens/"
    person.get(url).raise_for_status()
    form = {"name": f"{role} of {beginning}*", "role": role, "beginning": beginning}
    page = person.post(url, form | {"csrfmiddlewaretoken": person.cookies["csrftoken"]})
    (secret,) = re.findall(r"cm_[\w-]{20,}", page.text)
    program = requests.Session()
    program.headers["Authorization"] = f"Bearer {secret}"
    return program


@pytest.mark.parametrize("role", Role.values)
def test_a_token_of_any_role_may_read(served, role):
    served.create(role)
    served.say(role, "hello")
    with following(served, role, with_token(served, role)) as steps:
        assert next(steps) == 1


def test_a_token_with_a_prefix_reads_no_other_conversations(served):
    acme = with_token(served, Role.OPERATOR, "acme/")
    for memory_id in ("acme/1", "other"):
        served.create(memory_id)
        served.say(memory_id.replace("/", "~2F"), "hello")
    with following(served, "acme~2F1", acme) as steps:
        assert next(steps) == 1
    asked = {
        path: acme.get(served.url + path, timeout=SECONDS) for path in ("/c/other/live/", "/live/")
    }
    assert {path: answer.status_code for path, answer in asked.items()} == {
        "/c/other/live/": 404,
        "/live/": 403,
    }


def test_a_forged_token_is_refused_even_with_a_valid_session(served):
    session = served.session()
    session.headers["Authorization"] = "Bearer cm_forged"
    assert session.get(f"{served.url}/live/", timeout=SECONDS).status_code == 401


def test_many_streams_are_served_beside_other_requests_and_no_more_to_one_reader(served):
    served.create("many")
    session, most = served.session(), stream.STREAMS_PER_CALLER
    streams = [following(served, "many", session) for _ in range(most)]
    opened = [each.__enter__() for each in streams]
    assert requests.get(f"{served.url}/healthz", timeout=SECONDS).text == "ok\n"
    served.say("many", "hello")
    assert [next(steps) for steps in opened] == [1] * most
    one_more = session.get(f"{served.url}/live/", timeout=SECONDS)
    assert (one_more.status_code, one_more.headers["Retry-After"]) == (429, "2")
    with following(served, "many", served.api) as steps:
        assert next(steps) == 1
    for each in streams:
        each.__exit__(None, None, None)


@pytest.mark.own_server
def test_stopping_the_server_ends_streams_cleanly(served):
    served.create("stopped")
    with following(served, "stopped") as steps:
        served.stop()
        assert list(steps) == []  # a stream that is cut off would raise
    served.start()


def sent_until(scope, after_first) -> list[bytes]:
    """The events of a stream that checks access before each one, with a change in between."""
    watcher, sent = Watcher(), []

    async def send(message):
        sent.append(message["body"])
        await sync_to_async(after_first)()
        watcher.announce(2)

    async def listen():
        watcher.announce(1)
        gone = asyncio.create_task(asyncio.Event().wait())
        await asyncio.wait_for(
            stream.send_steps(scope, ALL_CONVERSATIONS, watcher, send, gone), SECONDS
        )
        gone.cancel()

    async_to_sync(listen)()
    return sent


@pytest.mark.django_db(transaction=True)  # the stream may take a new connection
def test_signing_out_ends_an_open_stream(operator_client, monkeypatch):
    monkeypatch.setattr(stream, "AUTHORIZATION_SECONDS", 0)
    session = operator_client.cookies["sessionid"].value
    scope = {"headers": [(b"cookie", b"sessionid=" + session.encode())], "query_string": b""}
    assert sent_until(scope, operator_client.logout) == [b"event: step\nid: 1\ndata: 1\n\n"]


@pytest.mark.django_db(transaction=True)
def test_revoking_a_token_ends_an_open_stream(monkeypatch):
    monkeypatch.setattr(stream, "AUTHORIZATION_SECONDS", 0)
    secret = create_token("shop")
    scope = {"headers": [(b"authorization", f"Bearer {secret}".encode())], "query_string": b""}
    revoke = partial(revoke_token, tokens()[0].pk)
    assert sent_until(scope, revoke) == [b"event: step\nid: 1\ndata: 1\n\n"]
