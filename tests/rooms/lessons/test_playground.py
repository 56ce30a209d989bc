"""The playground: a link has the whole state, and a link with anything else is refused."""

from __future__ import annotations

import random
import re
import tracemalloc
import zlib
from base64 import urlsafe_b64encode
from contextlib import suppress
from html import unescape
from urllib.parse import urlencode

import pytest
from django.http import QueryDict
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import InvalidValue
from chatmemory.access.rates import PerAddress
from inspector.rooms.lessons.catalogue import catalogue
from inspector.rooms.lessons.playground import (
    CHARACTERS_MAX,
    MESSAGES_MAX,
    PACKED_MAX,
    Play,
    Playground,
    pack,
    unpack,
)

from ...inspector.markup import words
from ...properties import examples

CHAT = "user: one\nai: two\nuser: three\nai: four"


def link(script: str = CHAT, **fields: object) -> str:
    return f"/learn/playground/?{urlencode({'chat': pack(script), **fields}, doseq=True)}"


def page_words(client: Client, script: str = CHAT, **fields: object) -> str:
    return re.sub(" (?=[.,:])", "", words(client.get(link(script, **fields)).content))


def encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def packed(content: bytes) -> str:
    return encoded(zlib.compress(content, 9))


# The link


@examples(40)
@given(
    st.text(max_size=300),
    st.sampled_from(["message_window", "token_window"]),
    st.integers(1, 100_000),
    st.none() | st.integers(0, 60),
    st.booleans(),
)
def test_a_link_holds_the_whole_state(script, kind, limit, at, asks):
    play = Play(script.encode("utf-8", "ignore").decode(), kind, limit, at, asks)
    assert Play.read(QueryDict(play.url.partition("?")[2])) == play


@examples(40)
@given(st.text(alphabet="abcdefghijklmnop-_AZ09=é", max_size=200))
def test_no_link_fails_otherwise_than_by_being_damaged(chat):
    with suppress(InvalidValue):
        assert pack(unpack(chat))


HOSTILE = {
    "nothing": "",
    "no compression": "AAAA",
    "no alphabet": "****",
    "cut": pack(CHAT)[:-6],
    "more behind it": encoded(zlib.compress(b"user: hi") + b"more"),
    "no UTF-8": packed(b"user: \xff"),
    "a bomb": packed(b"a" * 4_000_000),
    "too many characters": packed(b"user: " + b"a" * CHARACTERS_MAX),
    "too long": "A" * (PACKED_MAX + 1),
    "no role": packed(b"hello"),
    "blank": packed(b"  "),
    "deep JSON": packed(b"[" * 4_000 + b"]" * 4_000),
    "too many messages": packed(b"user: a\n" * (MESSAGES_MAX + 1)),
}


@pytest.mark.parametrize("fault", HOSTILE)
def test_a_link_that_holds_no_chat_is_refused(client, fault, db, django_assert_num_queries):
    with django_assert_num_queries(0):
        page = client.get("/learn/playground/", {"chat": HOSTILE[fault]})
    assert page.status_code == 400
    assert 'role="alert"' in page.content.decode()


def test_a_bomb_is_not_unpacked():
    """4 MB of one letter come in 4 kB; only as much as the longest chat is ever unpacked."""
    assert len(HOSTILE["a bomb"]) < PACKED_MAX
    tracemalloc.start()
    with pytest.raises(InvalidValue, match="characters"):
        unpack(HOSTILE["a bomb"])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 500_000


def test_no_chat_is_packed_that_no_link_can_hold():
    noise = "".join(random.Random(1).sample([*map(chr, range(33, 9_000))], 7_000))
    for script, why in ((noise, "too long for a link"), ("a" * (CHARACTERS_MAX + 1), "characters")):
        with pytest.raises(InvalidValue, match=why):
            pack(script)


def test_no_link_is_longer_than_6_000_characters():
    text = "user: " + "".join(random.Random(2).choices("abcdefghijklmnopqrstuvwxyz     ", k=7_000))
    lengths = range(7_000, 0, -100)
    script = next(text[:n] for n in lengths if len(packed(text[:n].encode())) <= PACKED_MAX)
    play = Play(script, "message_window", 100_000, 60, asks=True)
    assert 5_700 < len("https://chatmemory.example.org" + play.url) <= 6_000


# The page


@pytest.mark.parametrize(
    ("query", "status"),
    [("kind=moon", 400), ("kind=", 400), ("limit=0", 200), ("limit=x", 200), ("at=x", 200)],
)
def test_other_fields_that_say_nothing(client, db, query, status):
    assert client.get(f"{link()}&{query}").status_code == status


def test_each_step_says_what_happened(client, db):
    page = page_words(client, limit=2, at=3)
    assert "User message #3 arrived. 1 message left memory: #1 was the oldest." in page
    assert "3 of 4 messages" in page
    minded = "Accepted, but mishandled: the first message, #2, is not from the user."
    assert f"Anthropic {minded}" in page
    assert "4 of 4 messages" in page_words(client, at=9)


def test_a_question_is_asked_by_a_link(client, db):
    asked = page_words(client, limit=2, at=2, ask=1)
    assert "Which messages leave?" in asked
    assert "was the oldest" not in asked
    assert "Right. #1 leaves." in page_words(client, limit=2, at=2, ask=1, check=1, leaves=1)
    unanswered = page_words(client, limit=2, at=2, ask=1, check=1)
    assert "Pick the messages first, or press “Nothing leaves”." in unanswered
    assert "Not this time. #1 leaves." in page_words(client, limit=2, at=2, ask=1, check="none")
    assert "3 of 4 messages" in page_words(client, ask=1), "it is about the last message"


def test_a_chat_that_was_just_written_can_be_asked_about(client, db):
    """All of it is shown then: the question is about its last message."""
    at_the_end, before = (
        client.get(link(**fields, kind="message_window", limit=2)).context["page"]
        for fields in ({}, {"at": 3})
    )
    assert at_the_end.question_url == before.question_url
    asked = words(client.get(at_the_end.question_url).content)
    assert "3 of 4 messages" in asked
    assert "Which messages leave?" in asked


def test_a_chat_of_one_message_is_not_called_messages(client, db):
    assert "1 of 1 message User" in page_words(client, "user: Hello")


def test_verdicts_stand_under_their_question(client, db):
    assert "Would each provider accept this memory? OpenAI Yes." in page_words(client, limit=9)


def test_an_answer_that_is_nearly_right_gets_a_hint(client, db):
    script = f"user: a\nai: b\nuser: c\nai: {'long ' * 50}"
    asked = {"script": script, "kind": "token_window", "limit": 64, "at": 3, "ask": 1, "check": 1}
    answers = {(1, 2): "Right. #1 and #2 leave.", (1,): "Almost. #2 leaves, too."}
    for picked, said in {**answers, (1, 2, 3): "Almost. #3 stays."}.items():
        assert said in page_words(client, **asked, leaves=picked)


def test_a_message_that_cannot_stay_is_said_so(client, db):
    script = "user: hi\nuser: " + "very long " * 30
    page = page_words(client, script, kind="token_window", limit=20, at=1, ask=1, check=1, leaves=1)
    assert "Right. #1 leaves. #2 cannot stay." in page
    assert "too large for the limit" in page


def test_a_script_leads_to_its_link(client, db, django_assert_num_queries):
    fields = {"script": "user: hi\r\nai: hello", "kind": "token_window", "limit": "40"}
    with django_assert_num_queries(0):
        response = client.post("/learn/playground/", fields)
    assert response.status_code == 302
    play = Play.read(QueryDict(response["Location"].partition("?")[2]))
    assert play == Play("user: hi\nai: hello", "token_window", 40)


@pytest.mark.parametrize("script", ["", "hello", "user: x\n" * 61, "user: " + "a" * 8_001])
def test_a_chat_that_cannot_be_played_is_kept_and_explained(client, db, script):
    page = client.post("/learn/playground/", {"script": script})
    assert page.status_code == 422
    assert script in unescape(page.content.decode())
    assert 'role="alert"' in page.content.decode()


@pytest.mark.parametrize("slug", [*catalogue().lessons, "moon"])
def test_every_lesson_is_a_sample_and_an_unknown_one_is_another(client, db, slug):
    response = client.get("/learn/playground/", {"sample": slug})
    assert response.status_code == 302
    assert client.get(response["Location"]).status_code == 200


def test_text_of_strangers_is_shown_as_text(client, db):
    assert client.get(link('[{"type":"AI","text":"a\\u0000"}]')).status_code == 200
    page = client.get(link("user: <script>alert(1)</script>")).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_an_address_that_asks_too_often_waits(client, db, monkeypatch):
    monkeypatch.setitem(PerAddress.THROTTLE_RATES, "playground", "2/minute")
    answers = [client.get(link()) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert 0 < int(answers[2]["Retry-After"]) <= 60
    assert client.get(link(), REMOTE_ADDR="192.0.2.7").status_code == 200
    assert client.get("/learn/").status_code == 200


# What the page says is what happened, over random chats


@pytest.mark.parametrize("seed", range(4))
def test_the_sums_and_the_rows_agree_with_the_core(seed):
    chosen = random.Random(seed)
    lines = ["user: how much?", "ai: a lot of it", "call: find(1)", "result: found", "system: s"]
    script = "\n".join(chosen.choice(lines) + " and more" * chosen.randrange(4) for _ in range(20))
    kind, most = chosen.choice([("message_window", 7), ("token_window", 60)])
    play = Play(script, kind, chosen.randrange(1, most))
    for at in range(1, Playground(play).last + 1):
        page = Playground(play.moved(at))
        board, scene = page.board, page.scenes[at]
        kept = [row for row in board.memory if not row.is_gone]
        assert [row.line.seq for row in kept] == [place.seq for place in scene.window.rows]
        assert {said.line.seq for said in board.history if not said.note} == scene.in_memory
        known = page.scenes[at - 1].in_memory | {line.seq for line in board.arriving}
        assert {row.line.seq for row in board.memory if row.is_gone} == known - scene.in_memory
        assert (board.fill == 100) is (board.load >= board.limit)
        assert not board.slots or sum(board.slots) == board.load
        if tally := board.tally:
            signed = sum(line.amount for line in tally if line.kind in ("plus", "minus"))
            assert tally[0].amount + signed == tally[-1].amount == board.load
        asked = Playground(play.moved(at - 1, asks=True)).board
        assert [line.kind for line in asked.tally] == [
            line.kind for line in board.tally[: len(asked.tally)]
        ]
        assert not any(row.is_gone for row in asked.memory)
