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
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.messages.phrases import Speaker, speaker_of
from chatmemory.reading import conversations, windows
from chatmemory.reading.history import history, message
from inspector.conversation.state import conversation_state
from inspector.rooms.phrase import answers, matches
from inspector.rooms.phrase.answers import PhraseAnswer
from inspector.rooms.phrase.matches import PhraseMatches, Remembered
from inspector.rooms.phrase.page import SearchResult
from inspector.rooms.phrase.searching import PhraseSearch, search_for
from inspector.rooms.phrase.spans import clipped, merged
from inspector.shell.state import ConversationQuery

from ...conversations import create_and_add, users
from ...explain.test_receipts import conversation
from ...properties import examples

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


def search(phrase: str, at: int | None = None) -> PhraseSearch:
    return search_for(conversation_state("m", ConversationQuery(at=at)), phrase)


def found_at(at: int) -> SearchResult:
    return SearchResult(search("key", at))


def saying(rows):
    """The messages that contain the phrase, in upper or lower case."""
    return {row.seq: row for row in rows if "key" in row.text.lower()}


def is_mentioned_at(step: int) -> bool:
    """Whether the stored window holds a message that contains the phrase."""
    window = windows.window("m", step)
    return bool(saying((*window.rows, *window.over_limit)))


def injected_messages() -> set[int]:
    last = conversations.memory("m").last_seq
    return {n for n in range(1, last + 1) if message("m", n).origin == "SYNTHETIC"}


def check_state(answer: PhraseAnswer, at: int, injected: set[int]) -> None:
    """It is in memory if and only if the model sees a message that contains the phrase, and aside
    if only a system message or the assistant said those.
    """
    seen = saying(windows.window("m", at).rows)
    who = {speaker_of(row.type, row.seq in injected) for row in seen.values()}
    assert (answer.state is not Remembered.NOT_IN_MEMORY) == bool(seen)
    is_aside = bool(seen) and who <= {Speaker.ASSISTANT, Speaker.SYSTEM}
    assert (answer.state is Remembered.ASIDE) == is_aside
    cause = answer.cause.removeprefix(f"At step {at}: ").lower()
    assert cause.startswith("yes") == (answer.state is Remembered.IN_MEMORY)
    if where := re.search(r"only in .*", cause):
        assert {int(seq) for seq in re.findall(r"#(\d+)", where[0])} == seen.keys()
    assert bool(where) == is_aside


pins = st.tuples(st.sampled_from(["pin", "unpin"]), st.integers(1, 9))
many = st.lists(st.one_of(changes, pins), min_size=1, max_size=9)


@given(policies, many, st.integers(1, 6) | st.just(99))
@examples(20)
def test_the_answer_is_true_at_its_step_however_few_mentions_are_looked_at(
    db, policy, sequence, most
):
    with conversation(policy, sequence), pytest.MonkeyPatch.context() as patch:
        patch.setattr(matches, "MATCHES_MAX", most)
        check_every_answer(most)


def check_every_answer(most: int) -> None:
    last = conversations.memory("m").last_step
    injected = injected_messages()
    said = list(
        saying(message("m", n + 1) for n in range(conversations.memory("m").last_seq)).values()
    )
    if not said:
        assert not saying(history("m").rows)
        return
    spoke = {row.seq: speaker_of(row.type, row.seq in injected) for row in said}
    newest = {row.seq for row in said[-most:]}
    held = [False, *(is_mentioned_at(step) for step in range(1, last + 1))]
    is_partial = len(said) > most
    for at in range(last + 1):
        found = found_at(at)
        mentions, answer = found.matches, found.answer
        here = {row.seq for row in said if row.is_in_window(at)} if is_partial else set()
        assert mentions.speakers == {seq: spoke[seq] for seq in newest | here}
        assert mentions.is_partial == is_partial
        assert mentions.present == present_at(said, spoke, at)
        check_state(answer, at, injected)
        check_answer(answer, at, held, mentions)
    if not is_partial:
        remembered = search("key").matches.presence.spans
        spans = {step for first, end in remembered for step in range(first, end + 1)}
        assert spans == {step for step, is_held in enumerate(held) if is_held}


def present_at(saying, spoke: dict[int, Speaker], at: int) -> dict[Speaker, tuple[int, ...]]:
    here = [row.seq for row in saying if row.is_in_window(at)]
    return {who: tuple(n for n in here if spoke[n] is who) for who in {spoke[n] for n in here}}


def check_answer(answer: PhraseAnswer, at: int, held: list[bool], mentions: PhraseMatches) -> None:
    """It is true of its step. It is true of the others, if all mentions are looked at; if not, what
    it calls in memory was, and it tells from where on it looks.
    """
    first, is_partial = mentions.presence.first_step, mentions.is_partial
    told = {n: each for each in answer.periods for n in range(each.first, each.last + 1)}
    assert answer.earlier or list(told) == list(range(1, len(held)))
    for n, each in told.items():
        assert each.is_in == held[n] or (is_partial and not each.is_in)
        assert (each.is_in is None) == (is_partial and n < first)
        assert (each.why == "not said yet") == (not is_partial and n < first)
    assert ("the newest" in answer.looked_at) == is_partial
    cause = answer.cause.removeprefix(f"At step {at}: ").lower()
    assert cause.startswith(("yes", "only")) == held[at]
    says_not_yet = "not said yet" in cause
    assert says_not_yet == (at < first and (at == 0 or not is_partial))
    if not is_partial:
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


def answer_at(at):
    return found_at(at).answer


@given(policies, st.lists(messages, min_size=1, max_size=6), st.lists(messages, max_size=4))
@examples(20)
def test_later_messages_do_not_change_the_answer_of_an_earlier_step(db, policy, said, later):
    states = []
    for more in ([], later):
        changes = [("add", said), *([("add", more)] if more else [])]
        with conversation(policy, changes):
            last = min(conversations.memory("m").last_step, len(said))
            asked = range(last + 1)
            states.append([found_at(at).answer.state for at in asked])
    assert states[0] == states[1][: len(states[0])]


def test_a_phrase_that_is_only_a_part_of_a_longer_term_is_inside_it(db):
    create_and_add("m", MessageWindow(9), users("It is credit_card_4421486."))
    cause = answers.remembered(search("4421486")).cause
    assert cause == "Yes, inside credit_card_4421486, since #1."
    services.add("m", users("It is 4421486."))
    assert answers.remembered(search("4421486")).cause == "Yes, since #1."


@pytest.mark.parametrize(
    ("phrase", "told"),
    [
        ("2024-05-20", "#2 in memory has this day as “May 20th”."),
        ("20 May 2024", "#2 in memory has this day as “May 20th”."),
        ("2024-05-21", ""),
    ],
)
def test_a_date_in_another_spelling_is_not_the_phrase_but_is_mentioned(db, phrase, told):
    create_and_add("m", MessageWindow(1), users("On 2024-05-20 or 2024-05-21.", "May 20th!"))
    answer = answers.remembered(search(phrase))
    assert answer.state is Remembered.NOT_IN_MEMORY
    assert told in answer.detail
    assert ("this day" in answer.detail) == bool(told)


def test_spans_that_touch_are_one_and_parts_of_them_are_within_a_range():
    assert merged([(5, 6), (1, 2), (3, 3), (9, 8), (6, 9)]) == ((1, 3), (5, 9))
    assert clipped([(1, 3), (5, 9), (12, 14)], (3, 8)) == ((3, 3), (5, 8))
    assert clipped([(1, 3)], (4, 8)) == merged([]) == ()


def test_a_phrase_in_a_call_without_results_is_not_remembered(db):
    services.create("m", MessageWindow(9, auto_recover_orphaned_tool_messages=True))
    call = AiMessage("I look up A-1182.", [ToolExecutionRequest("a", "find", "{}")])
    services.add("m", [UserMessage("Where is it?"), call])
    answer = answers.remembered(search("A-1182"))
    assert "Only in a tool call without its results: #2." in answer.cause
