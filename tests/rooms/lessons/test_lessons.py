"""The lessons of the package: their texts agree with the core, and everybody can take them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.test import Client

from chatmemory import services
from chatmemory.lint import Turn, verdicts
from chatmemory.reading import conversations, windows
from inspector import demo
from inspector.rooms.lessons.catalogue import OWN, catalogue
from inspector.rooms.lessons.lesson import Ask, InvalidLesson, read_lesson
from inspector.rooms.lessons.page import StepTexts, practice_url
from inspector.rooms.lessons.stage import moments
from inspector.rooms.lessons.words import Answer, judge

from ...conversations import create_and_add
from ...inspector.markup import words

LESSONS = catalogue().lessons
TOPICS = [
    "memory-vs-history",
    "message-window",
    "token-window",
    "system-messages",
    "tool-calls",
    "turn-window",
    "moving-limits",
    "what-a-provider-refuses",
    "predict-the-limit",
    "what-a-summary-forgets",
]
COUNTS = r"\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty) messages\b"
by_lesson = pytest.mark.parametrize("staged", LESSONS.values(), ids=list(LESSONS))


@pytest.fixture
def page(db, django_assert_num_queries):
    """Ask for a page; nothing of a lesson reads or writes the database."""
    client = Client()

    def get(path: str, status: int = 200) -> str:
        with django_assert_num_queries(0):
            response = client.get(f"/learn/{path}")
        assert response.status_code == status
        return response.content.decode()

    get.client = client
    return get


def text(html: str) -> str:
    return words(html.encode())


def texts(lesson) -> list[str]:
    """All that an author wrote, but for the script."""
    found = [lesson.title, lesson.lead, lesson.remember]
    for step in lesson.steps:
        found += [step.text, step.question.text, step.question.why, step.question.hint]
        found += [text for choice in step.question.choices for text in (choice.text, choice.why)]
    return found


def test_the_topics_are_there_and_no_file_is_refused():
    assert list(LESSONS) == TOPICS
    assert catalogue().problems == ()


@by_lesson
def test_it_is_short_and_each_step_asks_before_it_tells(staged):
    lesson = staged.lesson
    assert 3 <= len(lesson.steps) <= 6
    assert all(step.question.ask for step in lesson.steps)
    said = [line.readable for line in staged.moments[-1].after.history]
    assert sum(len(text.split()) for text in [*texts(lesson), *said]) < 600  # three minutes
    assert len(lesson.remember.split()) < 25


@pytest.mark.parametrize("slug", ["tool-calls", "what-a-provider-refuses"])
def test_the_hard_lessons_have_few_words_a_step(slug):
    for each in map(StepTexts, LESSONS[slug].moments):
        asked = re.sub(r"<[^>]+>", "", f"{each.text} {each.question}").split()
        assert len(asked) <= 35
        assert len(asked + re.sub(r"<[^>]+>", "", each.why).split()) <= 75


@by_lesson
def test_no_text_has_a_number_that_the_core_does_not_give(staged):
    for written in texts(staged.lesson):
        rest = re.sub(r"\{\w+(:\w+)?\}|#\d+", "", written)
        numbers = re.findall(r"[\w:-]*\d[\w:-]*", rest)
        invented = [n for n in numbers if n not in staged.lesson.script]
        assert invented in ([], ["9:20"]), written  # an answer that a bot might give
        assert not re.search(COUNTS, rest), written


@by_lesson
def test_the_answers_of_a_lesson_equal_those_of_a_conversation(db, staged):
    """Whose windows are stored and read, step by step and without a rehearsal."""
    lesson, said, name = staged.lesson, 0, "m"
    summary = None  # the last one: what was said before it, and its step
    services.create(name, lesson.policy)

    def set_limit(limit: int | None) -> None:
        if limit:
            policy = type(lesson.policy)(limit, estimator=lesson.policy.estimator)
            services.change(name, policy=policy)

    def seqs_in_memory() -> list[int]:
        return [row.seq for row in windows.window(name).rows]

    for moment in staged.moments:
        step = moment.step
        if step.outcome.append_terms and not step.outcome.summary:  # the same again
            name, (said, told) = "again", summary
            create_and_add(name, lesson.policy, lesson.messages[:said])
        else:
            told = step.outcome
        set_limit(step.limit)
        if step.recovers:
            options = {"auto_recover_orphaned_tool_messages": True}
            services.change(name, policy=replace(conversations.memory(name).policy, **options))
        until = step.said or said
        services.add(name, lesson.messages[said:until])
        before = seqs_in_memory()
        assert before == [place.seq for place in moment.before.window.rows]
        if told.summary:
            summary = until, told
            services.compact(
                name, told.summary, keep_last=told.keep_last, append_terms=step.outcome.append_terms
            )
            text = windows.window(name).messages[0].single_text()
            assert moment.summary.readable == text
        said = until + step.outcome.adds
        services.add(name, lesson.messages[until:said])
        set_limit(step.outcome.becomes)
        after = seqs_in_memory()
        assert after == [place.seq for place in moment.after.window.rows]
        assert list(moment.leaving) == [seq for seq in before if seq not in after]
        messages = windows.window(name).messages
        seen_with_messages = enumerate(zip(after, messages, strict=True))
        turns = [Turn.of(i, n, message) for i, (n, message) in seen_with_messages]
        assert moment.after.verdicts() == verdicts(turns)


def test_the_limit_of_a_fact_is_that_of_its_incident(db):
    lesson, played = LESSONS["predict-the-limit"].lesson, LESSONS["predict-the-limit"].moments
    create_and_add("m", lesson.policy, lesson.messages)
    found = services.current_incidents("m").incidents
    limits = [each.shown.keeping.limit for each in found if each.kind == "user_repeated"]
    assert [moment.keeping for moment in played if moment.question.fact] == limits == [6, 5]
    assert [judge(played[1], Answer(value=n)).headline for n in (5, 6, 7)] == [
        "Not this time. With 5, A-1182 has left before #7.",
        "Right. 6 would have kept A-1182, and no smaller limit would.",
        "Almost. 7 keeps A-1182, but 6 is enough.",
    ]


def test_the_limit_of_a_fact_must_be_offered():
    content = (OWN / "9-predict-the-limit.toml").read_bytes()
    wrong = read_lesson(content.replace(b"[5, 6, 7, 8]", b"[5, 7, 8]"), "wrong.toml")
    with pytest.raises(InvalidLesson, match="A-1182 comes up again, and 6 would have kept it"):
        moments(wrong)


def test_the_term_that_a_summary_lost_is_the_one_that_an_answer_needs(page):
    """What no later message needs is not lost, even if the summary lacks it."""
    first, _, again = LESSONS["what-a-summary-forgets"].moments
    assert first.missed == ("HL-4471",)
    assert again.missed == ()
    assert again.summary.terms == ("GRP-77Q", "HL-4471")
    address = "what-a-summary-forgets/?step"
    told = text(page(f"{address}=1&answer=2"))
    assert "summary of 6 messages" in told
    assert "summarised by #8" in told
    assert "ends with GRP-77Q and HL-4471." in text(page(f"{address}=3&answer=3"))


def test_all_end_with_pages_that_exist(operator_client):
    demo.load()
    for staged in LESSONS.values():
        assert staged.lesson.practices
        for address in filter(None, map(practice_url, staged.lesson.practices)):
            assert operator_client.get(address).status_code == 200


def answers(moment) -> tuple[str, str]:
    """The query of the right answer to a question, and of a wrong one."""
    step = moment.step
    match step.question.ask:
        case Ask.LEAVES:
            rows = moment.before.window.rows
            stays = next(row.seq for row in rows if row.seq in moment.after.in_memory)
            right = "".join(f"leaves={seq}&" for seq in moment.leaving)
            return f"{right}check={1 if right else 'none'}", f"leaves={stays}&check=1"
        case Ask.LIMIT:
            wrong = next(n for n in step.question.limits if n != moment.keeping)
            return f"answer={moment.keeping}", f"answer={wrong}"
    holds = [moment.holds(choice) for choice in step.question.choices]
    return f"answer={holds.index(True) + 1}", f"answer={holds.index(False) + 1}"


@pytest.mark.parametrize(
    ("slug", "moment"),
    [
        pytest.param(slug, moment, id=f"{slug}-{moment.number}")
        for slug, staged in LESSONS.items()
        for moment in staged.moments
    ],
)
def test_a_step_asks_and_explains_the_right_and_the_wrong_answer(page, slug, moment):
    address = f"{slug}/?step={moment.number}"
    assert "answer__headline" not in page(address)
    right, wrong = (page(f"{address}&{query}") for query in answers(moment))
    assert "Right." in text(right)
    assert "Right." not in text(wrong)
    assert re.search(r"Almost\.|Not this time\.", text(wrong))
    for html in (right, wrong):
        assert not re.search(r"[{}]", html.partition("<article")[2].partition("</article>")[0])
        explained = html.partition('class="answer')[2].partition("</article>")[0]
        assert re.search(r'<a href="#m\d+">#\d+</a>', explained), "it points at a message"
        for seq in re.findall(r'href="#m(\d+)"', html):
            assert f'id="m{seq}"' in html


def test_nothing_that_is_picked_is_no_answer_and_nothing_leaves_is_one(page):
    unanswered = page("token-window/?step=2&check=1")
    assert "answer__headline" not in unanswered
    assert "Pick the messages first, or press “Nothing leaves”." in text(unanswered)
    assert "you said" not in text(unanswered)
    assert "Pick the messages first" not in text(page("token-window/?step=2"))
    assert "Right. Nothing leaves." in text(page("token-window/?step=2&check=none"))
    answered = text(page("token-window/?step=1&check=none"))
    assert "Not this time." in answered
    assert "you said: stays" in answered
    assert "Nothing is hidden" in text(page("moving-limits/?step=1"))


def test_a_finished_lesson_has_a_sentence_and_the_way_on(page):
    html = page("memory-vs-history/?step=3&answer=2")
    assert LESSONS["memory-vs-history"].lesson.remember in text(html)
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
def test_an_impossible_answer_is_ignored(page, query):
    assert "answer__headline" not in page(f"memory-vs-history/?{query}")


def test_progress_is_kept_until_the_browser_is_closed(page):
    page("memory-vs-history/?step=1")
    assert "inspector_lessons" not in page.client.cookies
    page("memory-vs-history/?step=1&answer=1")
    assert 'class="is-done"' not in page("")
    page("memory-vs-history/?step=3&answer=1")
    page("memory-vs-history/?step=1&answer=1")
    assert page("").count('class="is-done"') == 1
    cookie = page.client.cookies["inspector_lessons"]
    assert (cookie["max-age"], cookie["expires"], bool(cookie["httponly"])) == ("", "", True)


@pytest.mark.parametrize("value", ["x", "tool-calls:99", "moon:1", "tool-calls:", '"', "a:1" * 999])
def test_a_progress_that_somebody_made_up_does_no_harm(page, value):
    page.client.cookies["inspector_lessons"] = value
    page("")
    page("tool-calls/?leaves=2&check=1")


@by_lesson
def test_the_projector_shows_one_idea_after_the_other(page, staged):
    address = f"{staged.lesson.slug}/present/"
    total = int(re.search(r"1 of (\d+)", text(page(address)))[1])
    screens = [text(page(f"{address}?screen={n}")) for n in range(1, total + 1)]
    questions = [each for each in screens if "Show the answer" in each]
    assert len(questions) == len(staged.moments)
    assert not re.search("left with|the oldest", questions[0])
    assert staged.lesson.remember in screens[-1]
    assert len(set(screens)) == total
    assert text(page(f"{address}?screen=99")) == screens[-1]


def test_lessons_are_found_and_only_read(page):
    for path in ("moon/", "moon/present/", "a b/"):
        page(path, status=404)
    for path in ("", "tool-calls/", "tool-calls/present/"):
        assert page.client.post(f"/learn/{path}").status_code == 405


def test_who_is_signed_out_reaches_lessons_and_nothing_else(page):
    html = page("")
    assert 'href="/learn/playground/"' in html
    assert 'href="/sign-in/"' in html
    assert 'href="/learn/"' in page.client.get("/sign-in/").content.decode()
    for path in ("/", "/c/order-7741/", "/import/", "/tokens/"):
        assert "/sign-in/" in page.client.get(path)["Location"]
        assert f'href="{path}"' not in html.replace('class="brand" href="/"', "")
