"""Lessons for everybody: each question answered right and wrong, signed out, without a query."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from inspector.lessons.catalogue import catalogue
from inspector.lessons.lesson import Ask
from inspector.lessons.page import Told

LESSONS = catalogue().lessons


@pytest.fixture(autouse=True)
def _no_database(django_assert_num_queries, db):
    """Nothing here reads or writes the database, as nobody is signed in."""
    with django_assert_num_queries(0):
        yield


def answers(moment) -> tuple[str, str]:
    """The query of the right answer of a question, and that of a wrong one."""
    match moment.step.question.ask:
        case Ask.LEAVES:
            stays = next(
                row.seq for row in moment.before.window.rows if row.seq in moment.after.seen
            )
            right = "".join(f"leaves={seq}&" for seq in moment.leaving)
            return f"{right}check={1 if right else 'none'}", f"leaves={stays}&check=1"
        case Ask.LIMIT:
            wrong = next(n for n in moment.step.question.limits if n != moment.keeping)
            return f"answer={moment.keeping}", f"answer={wrong}"
    holds = [moment.holds(choice) for choice in moment.step.question.choices]
    return f"answer={holds.index(True) + 1}", f"answer={holds.index(False) + 1}"


def words(page) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", page.content.decode())))


CASES = [
    pytest.param(slug, moment, id=f"{slug}-{moment.number}")
    for slug, staged in LESSONS.items()
    for moment in staged.moments
]


@pytest.mark.parametrize(("slug", "moment"), CASES)
def test_a_step_asks_and_explains_the_right_and_the_wrong_answer(slug, moment):
    address = f"/learn/{slug}/?step={moment.number}"
    client = Client()
    asked = client.get(address)
    assert "answer__headline" not in asked.content.decode()
    right, wrong = (client.get(f"{address}&{query}") for query in answers(moment))
    assert "Right." in words(right)
    assert "Right." not in words(wrong)
    assert re.search(r"Almost\.|Not this time\.", words(wrong))
    for page in (right, wrong):
        explained = page.content.decode().partition('class="answer')[2].partition("</article>")[0]
        assert re.search(r'<a href="#m\d+">#\d+</a>', explained), "it points at a message"
        shown = page.content.decode()
        for seq in re.findall(r'href="#m(\d+)"', shown):
            assert f'id="m{seq}"' in shown


def test_nothing_that_is_picked_is_no_answer_and_nothing_leaves_is_one():
    address = "/learn/token-window/?step=2"
    client = Client()
    open_page = client.get(f"{address}&check=1")
    assert "answer__headline" not in open_page.content.decode()
    assert "Pick the messages first, or press “Nothing leaves”." in words(open_page)
    assert "you said" not in words(open_page)
    assert "Pick the messages first" not in words(client.get(address))
    assert "Right. Nothing leaves." in words(client.get(f"{address}&check=none"))
    answered = words(client.get("/learn/token-window/?step=1&check=none"))
    assert "Not this time." in answered
    assert "you said: stays" in answered
    assert "Nothing is hidden" in words(client.get("/learn/moving-limits/?step=1"))


def test_it_is_said_before_that_a_system_message_can_be_replaced():
    page = words(Client().get("/learn/system-messages/?step=2"))
    assert "A new system message takes the place of the old one." in page


@pytest.mark.parametrize("slug", ["tool-calls", "what-a-provider-refuses"])
def test_the_hard_lessons_have_few_words_a_step(slug):
    told = [Told(moment) for moment in LESSONS[slug].moments]
    assert len(told) == 3
    for each in told:
        asked = re.sub(r"<[^>]+>", "", f"{each.text} {each.question}").split()
        assert len(asked) <= 35
        assert len(asked + re.sub(r"<[^>]+>", "", each.why).split()) <= 75


def test_a_finished_lesson_has_a_sentence_and_the_way_on():
    page = Client().get("/learn/memory-vs-history/?step=3&answer=2")
    assert LESSONS["memory-vs-history"].lesson.remember in words(page)
    html = page.content.decode()
    assert 'href="/c/order-7741/?at=43&amp;find=A-1182"' in html
    assert 'href="/learn/playground/?sample=memory-vs-history"' in html
    assert 'href="/learn/message-window/"' in html


@pytest.mark.parametrize(
    "query",
    [
        "step=99",
        "step=x",
        "step=-1",
        "step=²",
        "answer=9",
        "answer=x",
        "leaves=3",
        "step=1&answer=0",
    ],
)
def test_an_answer_that_nobody_can_give_is_none(query):
    page = Client().get(f"/learn/memory-vs-history/?{query}")
    assert page.status_code == 200
    assert "answer__headline" not in page.content.decode()


def test_progress_is_kept_until_the_browser_is_closed():
    client = Client()
    client.get("/learn/memory-vs-history/?step=1")
    assert "inspector_lessons" not in client.cookies
    client.get("/learn/memory-vs-history/?step=1&answer=1")
    assert 'class="is-done"' not in client.get("/learn/").content.decode()
    client.get("/learn/memory-vs-history/?step=3&answer=1")
    client.get("/learn/memory-vs-history/?step=1&answer=1")
    assert client.get("/learn/").content.decode().count('class="is-done"') == 1
    cookie = client.cookies["inspector_lessons"]
    assert (cookie["max-age"], cookie["expires"], bool(cookie["httponly"])) == ("", "", True)


@pytest.mark.parametrize("value", ["x", "tool-calls:99", "moon:1", "tool-calls:", '"', "a:1" * 999])
def test_a_progress_that_somebody_made_up_does_no_harm(value):
    client = Client()
    client.cookies["inspector_lessons"] = value
    assert client.get("/learn/").status_code == 200
    assert client.get("/learn/tool-calls/?leaves=2&check=1").status_code == 200


@pytest.mark.parametrize("slug", LESSONS)
def test_the_projector_shows_one_idea_after_the_other(slug):
    client = Client()
    address = f"/learn/{slug}/present/"
    first = client.get(address)
    total = int(re.search(r"1 of (\d+)", words(first))[1])
    pages = [words(client.get(f"{address}?screen={n}")) for n in range(1, total + 1)]
    questions = [page for page in pages if "Show the answer" in page]
    assert len(questions) == len(LESSONS[slug].moments)
    assert not any("left with" in page or "the oldest" in page for page in questions[:1])
    assert LESSONS[slug].lesson.remember in pages[-1]
    assert len(set(pages)) == total
    assert words(client.get(f"{address}?screen=99")) == pages[-1]


@pytest.mark.parametrize("path", ["/learn/moon/", "/learn/moon/present/", "/learn/a b/"])
def test_there_is_no_such_lesson(path):
    assert Client().get(path).status_code == 404


@pytest.mark.parametrize("path", ["/learn/", "/learn/tool-calls/", "/learn/tool-calls/present/"])
def test_lessons_are_only_read(path):
    assert Client().post(path).status_code == 405


def test_who_is_signed_out_reaches_lessons_and_nothing_else():
    page = Client().get("/learn/").content.decode()
    assert 'href="/learn/playground/"' in page
    assert 'href="/sign-in/"' in page
    for path in ("/", "/c/order-7741/", "/import/", "/tokens/"):
        assert "/sign-in/" in Client().get(path)["Location"]
        assert f'href="{path}"' not in page.replace('class="brand" href="/"', "")


def test_the_sign_in_page_and_an_empty_overview_lead_to_lessons():
    assert 'href="/learn/"' in Client().get("/sign-in/").content.decode()
