"""A phrase was in memory at the steps whose windows hold one of its messages."""

from __future__ import annotations

import re

import pytest
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
from chatmemory.core.phrases import Speaker, speaker_of
from chatmemory.queries import ConversationQuery, phrase
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


def check_seen(cause: str, at: int) -> None:
    """It names what the model sees, and says no only if the model sees nothing."""
    window = queries.window("m", at)
    seen = {row.seq for row in window.rows if "key" in row.text}
    is_no = cause.startswith(("no,", "not said yet", "only over the limit: "))
    assert is_no == (not seen)
    if where := re.search(r"only .*", cause.replace("only over the limit", "")) or re.search(
        r" and in .*", cause
    ):
        named = {int(seq) for seq in re.findall(r"#(\d+)", where[0])}
        assert named <= seen


WHOSE = "What users and tools said is|The assistant’s own words are|The system message is"
HAVE = "Users and tools have|The assistant has|The system message has"
NO_ROOM = (
    "(What users and tools said|The system message) had no room when it was said|"
    "The assistant’s own words had no room when they were said"
)
SENTENCE = re.compile(
    rf"({WHOSE}) forgotten (at this step|since step \d+), when [^.]+\.|"
    rf"({NO_ROOM}), at step \d+\.|({HAVE}) not said it yet\."
)


def check_sentences(cause: str, detail: str) -> None:
    """Where the phrase is found in other messages alone, a sentence says where it was."""
    if cause.startswith("only in") and not detail.startswith(("In memory", "Forgotten at")):
        assert SENTENCE.match(detail)


pins = st.tuples(st.sampled_from(["pin", "unpin"]), st.integers(1, 9))
many = st.lists(st.one_of(changes, pins), min_size=1, max_size=9)


@given(policies, many, st.integers(1, 6) | st.just(99))
@examples(20)
def test_the_answer_is_true_at_its_step_however_few_mentions_are_looked_at(
    db, policy, sequence, most
):
    with conversation(policy, sequence), pytest.MonkeyPatch.context() as patch:
        patch.setattr(phrase, "MATCHES_MAX", most)
        check_every_answer(most)


def check_every_answer(most: int) -> None:
    last = queries.memory("m").last_step
    injected = injected_messages()
    saying = [
        row
        for seq in range(1, queries.memory("m").last_seq + 1)
        if "key" in (row := queries.message("m", seq)).text
    ]
    if not saying:
        assert not any("key" in row.text for row in queries.history("m").rows)
        return
    spoke = {row.seq: speaker_of(row.type, row.seq in injected) for row in saying}
    newest = {row.seq for row in saying[-most:]}
    for at in range(last + 1):
        found = found_at(at)
        mentions, answer = found._mentions, found.answer
        is_partial = len(saying) > most
        here = {row.seq for row in saying if row.is_in_window(at)} if is_partial else set()
        assert mentions.speakers == {seq: spoke[seq] for seq in newest | here}
        assert mentions.is_partial == is_partial
        assert mentions.present == present_at(saying, spoke, at)
        deciding = min(mentions.speakers.values())
        held = [False, *(held_at(step, deciding, injected) for step in range(1, last + 1))]
        check_answer(answer, at, held, mentions)
    if not is_partial:
        remembered = queries.conversation_state("m", ConversationQuery(find="key")).mentions.spans
        spans = {step for first, end in remembered for step in range(first, end + 1)}
        assert spans == {step for step, is_held in enumerate(held) if is_held}


def present_at(saying, spoke: dict[int, Speaker], at: int) -> dict[Speaker, tuple[int, ...]]:
    here = [row.seq for row in saying if row.is_in_window(at)]
    return {who: tuple(n for n in here if spoke[n] is who) for who in {spoke[n] for n in here}}


def check_answer(
    answer: explain.PhraseAnswer, at: int, held: list[bool], mentions: queries.PhraseMatches
) -> None:
    """It is true of its step. It is true of the others, if all mentions are looked at; if not, what
    it calls in memory was, and it tells from where on it looks.
    """
    first, is_partial = mentions.first_step, mentions.is_partial
    told = {n: each for each in answer.periods for n in range(each.first, each.last + 1)}
    assert answer.earlier or list(told) == list(range(1, len(held)))
    for n, each in told.items():
        assert each.is_in == held[n] or (is_partial and not each.is_in)
        assert (each.is_in is None) == (is_partial and n < first)
        assert (each.why == "not said yet") == (not is_partial and n < first)
    assert ("the newest" in answer.decided_by) == is_partial
    cause = answer.cause.removeprefix(f"At step {at}: ").lower()
    yes = "only in the assistant" if mentions.speaker is Speaker.ASSISTANT else "yes"
    assert cause.startswith((yes, "only over the limit")) == held[at]
    check_seen(cause, at)
    says_not_yet = bool(re.search("not said (it )?yet", f"{cause} {answer.detail}"))
    assert says_not_yet == (at < first and (at == 0 or not is_partial))
    if not is_partial:
        check_sentences(cause, answer.detail)
        check_since(cause, at, held)
        check_later(answer.detail, at, held, first)


def check_since(cause: str, at: int, held: list[bool]) -> None:
    if since := re.search(r"forgotten since step (\d+)", cause):
        step = int(since[1])
        assert held[step - 1]
        assert not any(held[step : at + 1])
    if since := re.search(r"yes, since step (\d+)( or earlier)?", cause):
        step = int(since[1])
        assert all(held[step : at + 1])
        assert since[2] or not held[step - 1]


def check_later(detail: str, at: int, held: list[bool], first: int) -> None:
    if later := re.search(r"Later: (.*), at step (\d+)\.", detail):
        step = int(later[2])
        assert {*held[at:step]} == {held[at]}
        assert held[step] != held[at] or (later[1], step) == (
            "it had no room when it was said",
            first,
        )
