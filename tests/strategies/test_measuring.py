"""What is measured of a strategy: the facts that its prompts held, and its bill."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest

from chatmemory import AiMessage, MessageWindow, SystemMessage, TokenWindow, UserMessage
from chatmemory.formats import stream_transcripts
from chatmemory.messages.estimators import estimator_for
from chatmemory.messages.message import ChatMessage
from chatmemory.messages.sessions import Compaction, Session
from chatmemory.recall import recall_of
from chatmemory.recall.cost import Prices
from chatmemory.recall.history import history_of
from chatmemory.strategies import (
    Conversation,
    Run,
    Settings,
    StandIn,
    Summary,
    chosen_strategies,
    everything_of,
    measure,
)
from chatmemory.strategies.catalog import own_strategy
from chatmemory.strategies.measuring import prompts_of
from chatmemory.strategies.runs import Sent
from chatmemory.strategies.summaries import WRITTEN, first_sentence, sentences_of

GPT = estimator_for("gpt-4o")
PRICES = Prices(Decimal(1), Decimal("0.1"))
SIZES = Settings(2_000, 12, GPT)
OURS = {
    "message_window": MessageWindow(12),
    "token_window": TokenWindow(2_000),
    "token_window_in_blocks": TokenWindow(2_000, low_water=Decimal("0.5")),
}


def conversation(messages: Sequence[ChatMessage], session: Session | None = None) -> Conversation:
    return Conversation(messages, history_of(messages, GPT), GPT, session)


@pytest.mark.parametrize("name", OURS)
def test_the_memories_of_langchain4j_are_our_policies(data_file, name):
    """The memory that programs use, asked for its messages before each call, and the replay of the
    policy: the same facts are held, and the same tokens are sent, read and written.
    """
    (strategy,) = chosen_strategies(name)
    with data_file("tau_bench_airline.openai_chat.json").open("rb") as file:
        found = list(stream_transcripts(file, "auto").conversations)[:12]
    lost = 0
    for each in map(conversation, (list(one.messages) for one in found)):
        measured = measure(each, strategy.run(SIZES))
        policy = recall_of(each.history, OURS[name])
        assert (measured.recalls, measured.held) == (policy.recalls, policy.held)
        assert measured.bill == policy.bill
        assert everything_of(each) == recall_of(each.history, None).bill
        lost += policy.lost
    assert lost > 0


ORDER = (
    SystemMessage("Be brief."),
    UserMessage("My order is A-1182."),
    AiMessage("Thanks."),
    UserMessage("Where is it?"),
    AiMessage("Order A-1182 is on its way."),
)


def test_a_function_of_ones_own_is_a_strategy():
    def newest(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        return messages[-1:]

    strategy = own_strategy("newest", newest)
    talk = conversation(ORDER)
    assert [prompt for _, prompt in prompts_of(talk, strategy.run(SIZES))] == [[1], [3]]
    found = measure(talk, strategy.run(SIZES))
    assert (found.recalls, found.held, found.first_lost) == (1, 0, "A-1182")
    assert found.bill.tokens < found.everything.tokens
    assert found.relative_cost(PRICES) == found.relative_cost_with_summaries(PRICES) < 1


def test_what_a_function_writes_holds_what_it_says():
    def noted(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        return [UserMessage("Known: A-1182"), UserMessage("Where is it?")]

    prompts = list(prompts_of(conversation(ORDER), own_strategy("noted", noted).run(SIZES)))
    assert prompts[1] == (4, [UserMessage("Known: A-1182"), 3])  # an equal message stands for it
    assert measure(conversation(ORDER), own_strategy("noted", noted).run(SIZES)).held == 1


class Compacting(Run):
    """Keeps the newest message; a summary stands before it."""

    def __init__(self) -> None:
        super().__init__()
        self._newest: list[int] = []

    def take(self, position: int, message: ChatMessage) -> None:
        self._newest = [position]
        self.billed = ["Summarize this."]

    def memory(self) -> list[Sent]:
        return [Summary(0, "Before: ", "."), *self._newest]


def test_a_summary_holds_what_its_stand_in_says():
    """Each is written once, when it is first sent."""
    compaction = Compaction(4, (0, 1, 2, 3), (4,))
    recorded = Session((*ORDER[:4], UserMessage("About A-1182"), *ORDER[4:]), (compaction,))
    talk = conversation(ORDER, recorded)
    held = {each: measure(talk, Compacting(), each) for each in StandIn}
    assert [held[each].held for each in StandIn] == [0, 0, 0]  # written before the order was said
    late = conversation(ORDER[:2] + ORDER[3:], recorded)
    assert [measure(late, Compacting(), each).held for each in StandIn] == [0, 1, 0]
    assert held[StandIn.NOTHING].summaries.calls == 1
    assert held[StandIn.NOTHING].summaries.tokens > 0
    with_calls = held[StandIn.NOTHING].relative_cost_with_summaries(PRICES)
    assert with_calls > held[StandIn.NOTHING].relative_cost(PRICES)
    prompts = [prompt for _, prompt in prompts_of(talk, Compacting())]
    assert prompts[0] == [0, UserMessage(f"Before: {WRITTEN}."), 1]


def test_a_recorded_summary_stands_for_the_librarys():
    compaction = Compaction(0, (), (0,))
    recorded = Session((UserMessage("About A-1182"), *ORDER), (compaction,))
    assert measure(conversation(ORDER, recorded), Compacting(), StandIn.RECORDED).held == 1


def test_first_sentences():
    assert first_sentence("  It is late. Go home!") == "It is late."
    assert first_sentence("no end") == "no end"
    assert first_sentence(" \n ") == ""
    many = [UserMessage(f"{n} {'word ' * 70}") for n in range(50)]
    lines = sentences_of(many).splitlines()
    assert lines[-1].startswith("49 ")
    assert 5 < len(lines) < 12


def test_a_longer_prompt_shares_its_beginning():
    """Whole messages are read from the cache, and the rest is billed in full."""

    def alternating(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        return messages if len(messages) < 4 else (*messages[:1], *messages[2:])

    talk = conversation(ORDER)
    found = measure(talk, own_strategy("alternating", alternating).run(SIZES))
    assert found.bill.read == talk.history.tokens[0]
    assert found.everything.read == sum(talk.history.tokens[:2])
