"""Other pages follow the providers in use: comparisons, the playground, and the lab."""

from __future__ import annotations

import pytest

from chatmemory import MessageWindow
from chatmemory.rooms import providers_in_use
from inspector.rooms.doctor.choosing import choose_providers

from ...conversations import HI, call, create_and_add, result
from ...inspector.markup import words

pytestmark = [pytest.mark.django_db]

COMPARE, PLAY, LAB = "/c/order-7741/compare/", "/learn/playground/?sample=tool-calls", "/lab/"


@pytest.fixture
def pages(operator_client):
    create_and_add("order-7741", MessageWindow(20), [HI, call("7"), result("7"), HI])
    return lambda path: words(operator_client.get(path, follow=True).content)


def test_pages_ask_all_providers_or_those_of_the_lessons_until_some_are_chosen(pages):
    assert providers_in_use() is None
    compared, played = pages(COMPARE), pages(PLAY)
    assert (
        "No provider is chosen, so the rules of all providers are applied to prompts." in compared
    )
    assert "Mistral prompts that the provider would reject" in compared
    assert "OpenAI" in played
    assert "Mistral" not in played
    assert "OpenAI, cached input at 10 %" in pages(LAB)


def test_pages_ask_the_providers_in_use_with_their_models(pages):
    choose_providers("", ["anthropic:claude-opus-4-6"])
    assert providers_in_use("order-7741") == {"anthropic": ("claude-opus-4-6",)}
    compared, played, lab = pages(COMPARE), pages(PLAY), pages(LAB)
    assert "No providers chosen" not in compared
    assert "Anthropic prompts that the provider would reject" in compared
    assert "OpenAI prompts that the provider would reject" not in compared
    assert "Anthropic" in played
    assert "OpenAI" not in played
    assert "Anthropic, 5 min, cached input at 10 %, cache writes at 125 %" in lab
    assert "Context window of claude-opus-4-6: 1,000,000 tokens" in lab
