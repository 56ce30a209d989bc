"""Sections of *Why?* that are folded: a link unfolds them, and only then are they computed."""

from __future__ import annotations

import pytest

from chatmemory import MessageWindow
from tests.conversations import create_and_add, numbered
from tests.inspector.markup import tree, words

# A section by its name: its title, and words that only the unfolded section has.
OF_A_STEP = {
    "sums": ("Arithmetic", "Free in memory: 1 msg"),
    "compare": ("Compare steps", "Compare with step"),
    "providers": ("Provider checks", "Bedrock Converse"),
}
OF_A_MESSAGE = {
    "kept": ("Which limit would have kept this message?", "from the first message on"),
    "raw": ("Raw message", "LangChain4j"),
    "providers": OF_A_STEP["providers"],
}
SECTIONS = [
    *(("at=2", name, *texts) for name, texts in OF_A_STEP.items()),
    *(("msg=1", name, *texts) for name, texts in OF_A_MESSAGE.items()),
]


@pytest.fixture(autouse=True)
def conversation(db):
    create_and_add("c", MessageWindow(3), numbered(5))


def link_of(html: str, name: str):
    return next(each for each in tree(html).iter("a") if each.get("id") == f"fold-{name}")


@pytest.mark.needs("doctor")
@pytest.mark.parametrize(("place", "name", "title", "within"), SECTIONS)
def test_a_link_unfolds_a_section_and_folds_it_again(operator_client, place, name, title, within):
    folded = operator_client.get(f"/c/c/?{place}").text
    assert within not in words(folded.encode())
    unfold = link_of(folded, name)
    assert title in words(folded.encode())
    assert (unfold.get("aria-expanded"), unfold.get("hx-get")) == ("false", unfold.get("href"))
    unfolded = operator_client.get(unfold.get("href")).text
    assert within in words(unfolded.encode())
    fold = link_of(unfolded, name)
    assert fold.get("aria-expanded") == "true"
    assert within not in words(operator_client.get(fold.get("href")).content)


def test_links_keep_what_is_unfolded(operator_client):
    page = operator_client.get("/c/c/?at=3&open=sums+providers")
    hrefs = {each.get("href") for each in tree(page.text).iter("a")}
    assert "/c/c/?at=4&open=providers+sums" in hrefs, "the next step"
    assert "?at=2&msg=2&open=providers+sums" in hrefs, "a message of the timeline"
    assert link_of(page.text, "sums").get("href") == "/c/c/?at=3&open=providers"


def test_of_an_address_only_plain_names_are_kept(operator_client):
    page = operator_client.get("/c/c/?open=sums+%3Cb%3E+" + "x" * 200).context["page"]
    assert page.kept_parameters == {"open": f"sums {'x' * 91}"}


def test_the_limit_that_would_have_kept_a_message_is_computed_when_asked(operator_client):
    assert operator_client.get("/c/c/?msg=1").context["page"].state.selection.would_keep is None
    asked = operator_client.get("/c/c/?msg=1&open=kept").context["page"].state.selection.would_keep
    assert asked.keeping.limit == 5


def test_a_message_in_memory_does_not_ask_what_would_have_kept_it(operator_client):
    page = operator_client.get("/c/c/?msg=5&open=kept").text
    assert "Which limit would have kept this message?" not in page
