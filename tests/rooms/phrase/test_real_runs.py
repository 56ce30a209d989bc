"""Whether memory has a phrase: answers about real conversations are compared with the texts."""

from __future__ import annotations

import random
import re

import pytest
from django.core.management import call_command

from chatmemory import TokenWindow
from chatmemory.formats import read_transcripts
from chatmemory.models import Memory, Message
from chatmemory.reading import windows
from inspector.conversation.state import conversation_state
from inspector.rooms.phrase.answers import remembered
from inspector.rooms.phrase.matches import Remembered
from inspector.rooms.phrase.searching import search_for
from inspector.shell.state import ConversationQuery
from tests.conversations import create_and_add

SAMPLES = 300
CHARACTERS = re.compile(r"\S+(?: \S+){0,2}")  # one to three words, with the signs around them


@pytest.mark.long
def test_300_answers_agree_with_the_windows(db, data_file, claude_sessions):
    content = data_file("tau_bench_airline.openai_chat.json").read_bytes()
    for n, run in enumerate(read_transcripts(content).transcripts[:20]):
        create_and_add(f"run-{n}", TokenWindow([1_000, 2_000][n % 2]), run.messages)
    smallest = sorted(claude_sessions, key=lambda each: each.stat().st_size)[:2]
    call_command("import_transcripts", *map(str, smallest), verbosity=0)
    chance = random.Random(52)
    answers = [ask(chance, chance.choice(list(Memory.objects.all()))) for _ in range(SAMPLES)]
    assert {True, False} == set(answers)


def ask(chance: random.Random, memory: Memory) -> bool:
    """Compare the answer for a phrase that the conversation has somewhere, at one of its steps."""
    texts = Message.objects.filter(memory=memory).exclude(text="").values_list("text", flat=True)
    phrase = chance.choice(CHARACTERS.findall(chance.choice(list(texts))))[:60].strip()
    at = chance.randint(1, memory.last_step)
    state = conversation_state(memory.pk, ConversationQuery(at=at))
    seen = [row.text.lower() for row in windows.window(memory.pk, at).rows]
    answer = remembered(search_for(state, phrase))
    has_it = any(phrase.lower() in text for text in seen)
    assert (answer.state is not Remembered.NOT_IN_MEMORY) == has_it, (memory.pk, at, phrase)
    return has_it
