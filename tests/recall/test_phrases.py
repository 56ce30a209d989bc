"""Requests and reminders: each example of phrases.toml, and what is none."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from chatmemory.recall.phrases import (
    LANGUAGES,
    examples,
    folded,
    reminders_in,
    sign_fillers,
)
from chatmemory.recall.requests import Request, asked_in

EXAMPLES = list(examples())


def of(*parts):
    return [each for each in EXAMPLES if each[1] in parts]


def names(found):
    return [f"{language}: {example}" for language, _, example, _ in found]


requested = of("requests", "requests_behind")


@pytest.mark.parametrize("example", requested, ids=names(requested))
def test_a_request_names_what_it_asks_for(example):
    assert any(each.kinds for each in asked_in(example[2]).requests)


@pytest.mark.parametrize("example", of("questions"), ids=names(of("questions")))
def test_a_question_asks_for_kinds_without_a_noun(example):
    assert any(each.kinds >= set(example[3]) for each in asked_in(example[2]).requests)


@pytest.mark.parametrize("example", of("again"), ids=names(of("again")))
def test_a_request_for_whatever_it_was(example):
    assert any(each.is_again for each in asked_in(example[2]).requests)


reminding = of("reminders", "rhetorical")


@pytest.mark.parametrize("example", reminding, ids=names(reminding))
def test_a_reminder(example):
    assert reminders_in(folded(example[2]))


def test_a_text_reminds_in_its_own_language():
    assert reminders_in("zoals gezegd, it goes to lyon", ("Zoals gezegd",)) == [(0, 12)]
    said = "as i said, it is a gift for my brother, and i would like to have it on monday"
    assert reminders_in(said) == [(0, 9)]
    assert reminders_in("wie gesagt: lyon") == [(0, 10)]
    assert reminders_in(f"{said}, wie gesagt") == [(0, 9)]


@pytest.mark.parametrize("example", of("controls"), ids=names(of("controls")))
def test_neither_a_request_nor_a_reminder(example):
    assert not any(each.kinds or each.is_again for each in asked_in(example[2]).requests)
    assert not reminders_in(folded(example[2]))


def test_small_words_without_spaces_have_one_order_in_each_process():
    assert [*sign_fillers()] == sorted(sign_fillers(), key=lambda each: (-len(each), each))


def test_every_language_of_the_file_is_read():
    file = files("chatmemory.recall").joinpath("phrases.toml")
    found = tomllib.loads(file.read_text(encoding="utf-8"))
    assert set(found) - {"shapes", "own"} == set(LANGUAGES)


def kinds_in(text):
    return set().union(*(each.kinds for each in asked_in(text).requests))


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Could you please provide your user ID and reservation ID?", {"customer", "booking"}),
        ("I'll need the following:\n- Order number\n- E-mail", {"order", "email"}),
        ("I see. Your name, please?", {"name"}),
        ("To proceed, I need the user ID to access your booking details.", {"customer"}),
        ("Please tell me the reason for returning your order.", set()),
        ("I found 1. Order A-1182, 2. Order B-2293.", set()),
        ("Cancel my order, please.", set()),
    ],
)
def test_the_kinds_of_a_request(text, kinds):
    assert kinds_in(text) == kinds


def test_a_request_with_an_unknown_noun_has_its_words():
    (found,) = asked_in("Could you give me the locker combination?").requests
    assert found.kinds == frozenset()
    assert {"locker", "combination"} <= found.words


def test_which_answers_a_request_takes():
    assert Request(frozenset({"name"}), frozenset()).takes("words")
    assert not Request(frozenset({"name"}), frozenset()).takes("code")
    assert Request(frozenset({"address", "order"}), frozenset()).takes("code")
