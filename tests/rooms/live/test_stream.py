"""Streams over real HTTP from a real server process, their watchers and their follower."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise

import pytest
import requests
from asgiref.sync import async_to_sync, sync_to_async

from chatmemory.access.tokens import all_tokens, create_token, revoke_token
from chatmemory.reading import conversations, feed
from chatmemory.roles import Role
from inspector.rooms.live import stream
from inspector.rooms.live.following import ALL_CONVERSATIONS, Newest, Watcher
from inspector.rooms.live.readers import STREAMS_PER_CALLER, Audience, Credentials, StreamReader

SECONDS = 10


@contextmanager
def following(
    served, memory_id: str = "", session=None, path: str = "", **headers: str
) -> Iterator[Iterator[int]]:
    """The step numbers of a stream, as they arrive."""
    session = session or served.session()
    url = served.url + (path or f"/c/{memory_id}/live/")
    with session.get(url, stream=True, timeout=SECONDS, headers=headers) as response:
        response.raise_for_status()
        assert response.headers["Content-Type"] == "text/event-stream"
        lines = response.iter_lines(chunk_size=1, decode_unicode=True)
        pairs = pairwise(lines)
        yield (int(id.removeprefix("id: ")) for event, id in pairs if event == "event: step")


def test_each_reader_is_sent_each_newer_step_of_its_conversation(served):
    served.create("told")
    served.create("untold")
    with following(served, "told") as one, following(served, "told") as another:
        served.say("untold", "a", "b", "c")
        served.say("told", "hello")
        assert (next(one), next(another)) == (1, 1)
        served.say("told", "again")
        assert next(one) == 2
    with following(served, "told") as late:
        assert next(late) == 2
    with following(served, "told", **{"Last-Event-ID": "2"}) as back:
        served.say("told", "three")
        assert next(back) == 3


@pytest.mark.parametrize(
    "asked",
    [
        {"Last-Event-ID": "9"},
        {"Last-Event-ID": "9" * 5_000},  # which Python refuses to read as a number
        {"path": "/c/fewer/live/?after=9"},
    ],
    ids=["header", "long header", "address"],
)
def test_a_reader_who_has_more_than_there_is_is_sent_the_newest_step(served, asked):
    """As of a conversation that was deleted and made anew."""
    served.api.delete(f"{served.url}/api/v1/memories/fewer/")
    served.create("fewer")
    served.say("fewer", "one", "two")
    with following(served, "fewer", **asked) as steps:
        assert next(steps) == 2


def test_without_an_asgi_server_another_conversation_of_the_name_is_not_found(
    operator_client, memory_id
):
    made = feed.microseconds(conversations.memory(memory_id).created_at)
    asked = [{"made": made}, {"made": made - 1}]
    answers = [operator_client.get(f"/c/{memory_id}/live/", each) for each in asked]
    assert [each.status_code for each in answers] == [200, 404]


def test_a_reader_gets_an_event_of_a_deletion_and_the_stream_ends(served):
    """Also if there is another conversation of that name."""
    served.create("doomed")
    url, live = f"{served.url}/api/v1/memories/doomed/", f"{served.url}/c/doomed/live/"
    with served.session().get(f"{live}?made=1", stream=True, timeout=SECONDS) as response:
        assert "event: deleted" in response.text
    with served.session().get(live, stream=True, timeout=SECONDS) as response:
        served.api.delete(url).raise_for_status()
        assert "event: deleted" in response.text


def test_a_deletion_is_a_change_to_readers_of_all(served):
    served.create("erased")
    with following(served, path="/live/") as moments:
        made = next(moments)
        served.api.delete(f"{served.url}/api/v1/memories/erased/").raise_for_status()
        assert next(moments) > made


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


def test_who_may_not_read_is_refused(served):
    served.create("secret")
    url, session = f"{served.url}/c/secret/live/", served.session()
    given = f'g_state={{"i_l":0}}; a=John Smith; sessionid={session.cookies["sessionid"]}; é=1'
    forged = {"Authorization": "Bearer cm_forged", "Cookie": given.encode()}
    for refused in ({}, {"Cookie": "sessionid=forged"}, forged):
        assert requests.get(url, headers=refused, timeout=SECONDS).status_code == 401
    beside = {"Cookie": given.encode()}  # cookies of somebody else
    with requests.get(url, headers=beside, timeout=SECONDS, stream=True) as response:
        assert response.status_code == 200
    assert session.post(url, timeout=SECONDS).status_code == 405
    for path in ("/c/nobody/live/", "/c/~zz/live/"):
        assert session.get(served.url + path, timeout=SECONDS).status_code == 404


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


def test_a_token_with_a_prefix_reads_no_other_conversations(served):
    acme = with_token(served, Role.OPERATOR, "acme/")
    for memory_id in ("acme/1", "other"):
        served.create(memory_id)
        served.say(memory_id.replace("/", "~2F"), "hello")
    with following(served, "acme~2F1", with_token(served, Role.VIEWER)) as steps:
        assert next(steps) == 1
    with following(served, "acme~2F1", acme) as steps:
        assert next(steps) == 1
    asked = {
        path: acme.get(served.url + path, timeout=SECONDS) for path in ("/c/other/live/", "/live/")
    }
    assert {path: answer.status_code for path, answer in asked.items()} == {
        "/c/other/live/": 404,
        "/live/": 403,
    }


def test_many_streams_are_served_beside_other_requests_and_no_more_to_one_reader(served):
    served.create("many")
    session, most = served.session(), STREAMS_PER_CALLER
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


def ends_after(change, **headers: bytes) -> bool:
    """Whether a stream that was open ends with the first check of its reader after a change."""
    reader = StreamReader(
        "", Credentials.of({k.encode(): v for k, v in headers.items()}), ALL_CONVERSATIONS
    )

    async def listen():
        audience, stream = Audience(), asyncio.create_task(asyncio.Event().wait())
        with audience.including(reader, stream):
            await audience.check()
            await asyncio.sleep(0)
            assert not stream.done()
            await sync_to_async(change)()
            await audience.check()
            await asyncio.sleep(0)
            return stream.cancelled()

    return async_to_sync(listen)()


@pytest.mark.django_db(transaction=True)  # the check may take a new connection
def test_a_stream_ends_when_its_reader_may_not_read_any_more(operator_client):
    session = operator_client.cookies["sessionid"].value
    assert ends_after(operator_client.logout, cookie=b"sessionid=" + session.encode())
    bearer = b"Bearer " + create_token("shop").encode()
    assert not ends_after(partial(create_token, "another"), authorization=bearer)
    (shop,) = (token for token in all_tokens() if token.name == "shop")
    assert ends_after(partial(revoke_token, shop.pk), authorization=bearer)


def test_each_stream_is_sent_a_heartbeat_in_turn(monkeypatch):
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 3)

    async def listen():
        readers, sent = [Watcher() for _ in range(6)], []
        all_awake = asyncio.Event()

        async def send(reader, message):
            sent.append((reader, message["body"]))
            if len(sent) == 2 * len(readers):
                all_awake.set()

        async with asyncio.TaskGroup() as streams:
            with ExitStack() as woken:
                beats = stream.Heartbeats()
                monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0)
                for n, reader in enumerate(readers):
                    woken.enter_context(beats.waking(reader))
                    streams.create_task(stream.send_steps(reader, 0, partial(send, n)))
                await asyncio.wait_for(all_awake.wait(), SECONDS)
            for reader in readers:
                reader.leave()
        return sent

    sent = asyncio.run(listen())
    assert {body for _, body in sent} == {b": heartbeat\n\n"}
    turns = [sorted(reader for reader, _ in sent[n : n + 2]) for n in range(0, 12, 2)]
    assert turns == 2 * [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize(
    ("announced", "expected"),
    [
        ((3, 0), "event: step\nid: 3\ndata: 3\n\n"),
        ((2, 4), "event: kept\nid: 2\ndata: 2\n\n"),
        ((3, 4), "event: step\nid: 3\ndata: 3\n\n"),  # its reader reads what is kept, too
    ],
)
def test_a_reader_gets_an_event_of_a_kept_row_without_a_new_step(announced, expected):
    async def listen():
        watcher, sent = Watcher(), []
        watcher.announce(2, 2)

        async def send(message):
            sent.append(message["body"].decode())
            watcher.leave()

        watcher.announce(*announced)
        await asyncio.wait_for(stream.send_steps(watcher, 2, send, kept=2), SECONDS)
        return sent

    assert asyncio.run(listen()) == [expected]


# Watchers and their follower


NOON, AN_HOUR_LATER = 12 * 3_600_000_000, 13 * 3_600_000_000

ONE_LEAVES_ONE_COMES = """
import asyncio
from asgiref.sync import sync_to_async
from chatmemory import UserMessage, services
from inspector.rooms.live.following import Follower

async def follow():
    follower = Follower()
    async with follower.watching("handover"):
        await asyncio.sleep(0)
    async with follower.watching("handover") as watcher:
        await sync_to_async(services.add)("handover", [UserMessage("hello")])
        return await asyncio.wait_for(watcher.later_than(0), 10)

print(asyncio.run(follow()))
"""


def test_a_cancelled_wait_loses_nothing():
    async def watch():
        watcher = Watcher()
        waiting = asyncio.create_task(watcher.later_than(0))
        await asyncio.sleep(0)
        for step in (1, 3, 2):
            watcher.announce(step)
        waiting.cancel()
        await asyncio.wait({waiting})
        return await asyncio.wait_for(watcher.later_than(0), 10)

    assert asyncio.run(watch()) == 3, "the newest step"


@pytest.mark.parametrize("found", [None, Newest(5, AN_HOUR_LATER)])
def test_a_watcher_notices_that_its_conversation_is_gone_or_replaced(found):
    async def watch():
        watcher = Watcher()
        watcher.find(Newest(3, NOON))
        watcher.find(found)
        return await asyncio.wait_for(watcher.later_than(3), 10), watcher.is_deleted

    assert asyncio.run(watch()) == (3, True)


def test_a_watcher_that_arrives_as_the_last_one_leaves_gets_news(served):
    served.create("handover")
    assert served.manage("shell", "-c", ONE_LEAVES_ONE_COMES).split()[-1] == "1"


@pytest.mark.own_server
def test_open_streams_are_counted(served):
    def streams() -> list[str]:
        text = served.api.get(f"{served.url}/metrics", headers={"Authorization": ""}).text
        return [line for line in text.splitlines() if line.startswith("chatmemory_live_streams")]

    served.create("watched")
    url = f"{served.url}/c/watched/live/"
    assert streams() == ["chatmemory_live_streams 0.0", "chatmemory_live_streams_waiting 0.0"]
    with served.api.get(url, stream=True, timeout=10) as stream:
        lines = stream.iter_lines(chunk_size=1)
        assert next(lines) == b"retry: 1000"
        assert "chatmemory_live_streams 1.0" in streams()
