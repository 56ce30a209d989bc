"""The lessons of the package: their texts agree with the core, which is asked again here."""

from __future__ import annotations

import re

import pytest
from django.core.management import call_command

from chatmemory.core.lint import PromptMessage, verdicts
from chatmemory.core.transitions import admit, visible
from chatmemory.core.window import Entry, Window
from inspector import demo
from inspector.lessons.catalogue import catalogue
from inspector.lessons.lesson import Ask
from inspector.lessons.page import Told, practice_url

STAGED = list(catalogue().lessons.values())
TOPICS = [
    "memory-vs-history",
    "message-window",
    "token-window",
    "system-messages",
    "tool-calls",
    "moving-limits",
    "what-a-provider-refuses",
]
WORDS_A_MINUTE = 200
COUNTS = r"\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty) messages\b"
by_lesson = pytest.mark.parametrize("staged", STAGED, ids=lambda staged: staged.lesson.slug)


def texts(lesson) -> list[str]:
    """All that an author wrote, but for the script."""
    found = [lesson.title, lesson.lead, lesson.remember]
    for step in lesson.steps:
        question = step.question
        found += [step.text, question.text, question.why, question.hint]
        found += [text for choice in question.choices for text in (choice.text, choice.why)]
    return found


def test_the_seven_topics_are_there_and_no_file_is_refused():
    assert list(catalogue().lessons) == TOPICS
    assert catalogue().problems == ()


def test_the_checks_find_nothing(db):
    call_command("check")


@by_lesson
def test_each_step_asks_before_it_tells(staged):
    assert 3 <= len(staged.lesson.steps) <= 6
    assert all(step.question for step in staged.lesson.steps)


@by_lesson
def test_it_takes_less_than_three_minutes(staged):
    words = sum(len(text.split()) for text in texts(staged.lesson))
    said = sum(len(line.readable.split()) for line in staged.moments[-1].after.said)
    assert (words + said) / WORDS_A_MINUTE < 3


@by_lesson
def test_no_text_has_a_number_that_the_core_does_not_give(staged):
    lesson = staged.lesson
    for text in texts(lesson):
        rest = re.sub(r"\{\w+(:\w+)?\}|#\d+", "", text)
        invented = [n for n in re.findall(r"[\w:-]*\d[\w:-]*", rest) if n not in lesson.script]
        assert invented in ([], ["9:20"]), text  # an answer that a bot might give
        assert not re.search(COUNTS, rest), text


@by_lesson
def test_the_answers_are_those_of_the_core(staged):
    """The core is asked step by step, without the rehearsal."""
    window, entries = Window(), {}
    said, policy = 0, staged.lesson.policy

    def say(message) -> None:
        nonlocal said
        said += 1
        line = staged.moments[-1].after.said[said - 1]
        assert line.message == message
        entries[said] = Entry.of(message, line.tokens)
        admit(window, entries[said], policy).apply_to(window)

    def seen() -> list[int]:
        kept = visible(window, policy)
        return [seq for entry in kept for seq in entries if entries[seq] is entry]

    for moment in staged.moments:
        step, question = moment.step, moment.step.question
        policy = type(policy)(step.limit, estimator=policy.estimator) if step.limit else policy
        for message in staged.lesson.messages[said : step.said or said]:
            say(message)
        before = seen()
        assert before == [place.seq for place in moment.before.window.rows]
        for message in staged.lesson.messages[said : said + question.adds]:
            say(message)
        if question.becomes:
            policy = type(policy)(question.becomes, estimator=policy.estimator)
        after = seen()
        assert after == [place.seq for place in moment.after.window.rows]
        if question.ask is Ask.LEAVES:
            assert list(moment.leaving) == [seq for seq in before if seq not in after]
        assert moment.after.verdicts() == verdicts(
            [
                PromptMessage(n, entries[n].type, len(getattr(m, "tool_execution_requests", ())))
                for n in after
                if (m := entries[n].message)
            ]
        )


@by_lesson
def test_every_text_has_its_facts(staged):
    for moment in staged.moments:
        told = Told(moment)
        shown = [told.text, told.question, told.hint, told.why, told.solution]
        shown += [offer.text for offer in told.offers(is_revealed=True)]
        assert not any(re.search(r"[{}]", text) for text in shown)


def test_all_end_with_a_sentence_and_a_page_that_exists(operator_client):
    demo.load()
    for lesson in (staged.lesson for staged in STAGED):
        assert len(lesson.remember.split()) < 25
        assert lesson.practices
        for address in filter(None, map(practice_url, lesson.practices)):
            assert operator_client.get(address).status_code == 200
