"""The index in replays: what it names of the facts that were needed again, and what it costs."""

from __future__ import annotations

from chatmemory import AiMessage, SystemMessage, UserMessage
from chatmemory.memories.limited import TokenWindowChatMemory
from chatmemory.messages.estimators import estimator_for
from chatmemory.recall import recall
from chatmemory.recall.comparison import replay
from chatmemory.recall.history import history_of
from chatmemory.recall.index import is_index
from chatmemory.recall.prompts import prompt_sizes
from chatmemory.windows.policies import TokenWindow

LONG = "and some more words that fill the window " * 3
PLAIN = TokenWindow(190, low_water=0.4)
INDEXED = TokenWindow(190, low_water=0.4, index_terms=50)
CITIES = ("Paris", "Rome", "Oslo", "Wien", "Bern", "Graz", "Linz")
SAID = [
    SystemMessage("Be brief."),
    UserMessage(f"order: A-1182 {LONG}"),
    UserMessage(f"flight: HAT001 {LONG}"),
    *(AiMessage(f"{each} {LONG}") for each in CITIES),
    AiMessage("A-1182 is on its way, and HAT001 is late."),
    *(AiMessage(f"{each} {LONG}") for each in CITIES),
]


def test_what_an_index_names_is_a_column_of_its_own():
    plain, indexed = recall(SAID, [PLAIN, INDEXED])
    assert (plain.recalls, plain.held, plain.by_index) == (2, 0, 0)
    assert (indexed.recalls, indexed.held, indexed.by_index) == (2, 0, 2)
    assert indexed.plus(indexed).by_index == 4
    assert indexed.prompt_tokens > plain.prompt_tokens


def test_a_replay_has_the_windows_of_the_memory():
    """Each prompt has the messages and the tokens that a memory of the library has."""
    history = history_of(SAID, estimator_for("gpt-4o"))
    found = replay(history, INDEXED)
    sizes = prompt_sizes(history, found.departures)
    memory = TokenWindowChatMemory(max_tokens=190, low_water=0.4, index_terms=50)
    indexes = {span.at: span for span in found.departures.indexes}
    assert len(indexes) > 1
    for position, message in enumerate(SAID):
        memory.add(message)
        shown = memory.messages()
        real = sum(map(memory._count, shown)) + 3
        # Without a ledger the library has no numbers to name: `#12` takes three tokens or so
        assert abs(sizes[position] - real) <= (20 if any(map(is_index, shown)) else 0)
    calls = found.prompts.sent
    assert [each.prompt for each in calls] == [sizes[each.position - 1] for each in calls]


def test_a_renewed_index_ends_what_a_prompt_shares_with_the_last_one():
    history = history_of(SAID, estimator_for("gpt-4o"))
    found = replay(history, INDEXED)
    system = history.tokens[0]
    renewed = {span.at for span in found.departures.indexes}
    for before, call in zip(found.prompts.sent, found.prompts.sent[1:], strict=False):
        if renewed & set(range(before.position, call.position)):
            assert call.shared == system
            assert call.is_broken
        else:
            assert call.shared == before.prompt - history.overhead
