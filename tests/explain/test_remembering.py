"""A phrase was in memory at the steps whose windows hold one of its messages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionResultMessage,
    UserMessage,
    explain,
    queries,
)
from chatmemory.core.spans import merged
from chatmemory.core.speakers import Speaker, speaker_of
from chatmemory.queries import ConversationQuery
from inspector.conversation.found import Found

from ..properties import examples
from .test_receipts import conversation

texts = st.sampled_from(["the key is 17", "what is the key?", "hello", "word " * 12])
messages = st.one_of(
    texts.map(UserMessage),
    texts.map(AiMessage),
    texts.map(SystemMessage),
    texts.map(lambda text: ToolExecutionResultMessage("1", "find", text)),
)
policies = st.one_of(
    st.builds(MessageWindow, st.integers(1, 4), always_keep_system_message_first=st.booleans()),
    st.builds(TokenWindow, st.integers(10, 60)),
)
changes = st.one_of(
    st.tuples(st.just("add"), st.lists(messages, min_size=1, max_size=6)),
    st.tuples(st.just("set"), st.lists(messages, max_size=5)),
    st.tuples(st.just("update"), st.lists(messages, max_size=5)),
    st.tuples(st.just("policy"), policies),
    st.tuples(st.just("clear"), st.none()),
)


def found_at(at: int) -> Found:
    return Found(queries.conversation_state("m", ConversationQuery(at=at, find="key")))


def held_at(step: int, deciding, injected: set[int]) -> bool:
    """Whether the stored window holds a message of those who decide that contains the phrase."""
    window = queries.window("m", step)
    return any(
        "key" in row.text and speaker_of(row.type, row.seq in injected) is deciding
        for row in (*window.rows, *window.over_limit)
    )


def injected_messages() -> set[int]:
    last = queries.memory("m").last_seq
    return {n for n in range(1, last + 1) if queries.message("m", n).origin == "SYNTHETIC"}


@given(policy=policies, sequence=st.lists(changes, min_size=1, max_size=6))
@examples(30)
def test_the_answer_is_that_of_the_windows_at_every_step(db, policy, sequence):
    with conversation(policy, sequence):
        check_every_step()


def check_every_step() -> None:
    last = queries.memory("m").last_step
    state = queries.conversation_state("m", ConversationQuery(find="key"))
    deciding = state.mentions.speaker
    if deciding is None:
        assert not any("key" in row.text for row in queries.history("m").rows)
        return
    injected = injected_messages()
    held = [held_at(step, deciding, injected) for step in range(1, last + 1)]
    spans = {step for first, end in state.remembered for step in range(first, end + 1)}
    assert spans == {step for step, is_held in enumerate(held, 1) if is_held}
    for at in range(last + 1):
        check_answer(found_at(at).answer, at, [False, *held], deciding)


def check_answer(answer: explain.Remembrance, at: int, held: list[bool], deciding: Speaker) -> None:
    """What only the assistant said is in memory in its own words, which is no plain yes."""
    told = [(n, each.is_in) for each in answer.stretches for n in range(each.first, each.last + 1)]
    assert told == list(enumerate(held))[1:]
    cause = answer.cause.removeprefix(f"At step {at}: ").lower()
    yes = "only in the assistant" if deciding is Speaker.ASSISTANT else "yes"
    assert cause.startswith((yes, "only over the limit")) == held[at]


def test_spans_that_touch_are_one():
    assert merged([(5, 6), (1, 2), (3, 3), (9, 8), (6, 9)]) == ((1, 3), (5, 9))
    assert merged([]) == ()
