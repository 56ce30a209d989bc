"""What summaries lost: the definitions one by one, and what holds for any session."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import AiMessage, ToolExecutionRequest, ToolExecutionResultMessage, UserMessage
from chatmemory.exceptions import InvalidValue
from chatmemory.formats.building import SessionBuilder
from chatmemory.recall.compactions import (
    APPENDED,
    Level,
    ReturnedBy,
    compaction_evidence,
    dropped_and_beside,
    dropped_terms,
    headline,
    terms_of,
)
from chatmemory.recall.facts import texts_with_facts
from chatmemory.windows.compaction import appended_terms
from tests.conversations import window_of


def tool(text):
    return ToolExecutionResultMessage("1", "find", text)


def session(before, summary, after, kept=(), **how):
    """A session with one compaction, which keeps some of the positions before it."""
    builder = SessionBuilder()
    for message in before:
        builder.add(message)
    builder.compact(UserMessage(summary), kept=kept, **how)
    for message in after:
        builder.add(message)
    return builder.session()


def evidence(*parts, **how):
    (found,) = compaction_evidence(session(*parts, **how))
    return found


def terms(found):
    return {each.term: each for each in found.terms}


def test_a_term_that_is_used_again_is_needed():
    """Also in the arguments of a call; what only a tool or the user says again is not."""
    call = ToolExecutionRequest.of("find", {"id": "B-22"}, id="1")
    found = evidence(
        [UserMessage("A-11, B-22, C-33 and D-44")],
        "Ids were named.",
        [tool("C-33"), UserMessage("D-44"), AiMessage("A-11", [call])],
    )
    assert terms(found).keys() == {"A-11", "B-22"}
    assert (len(found.needed()), found.held(), len(found.lost())) == (2, 0, 2)


@pytest.mark.parametrize(
    ("term", "summary", "is_held"),
    [
        ("A-1182", "See A-1182x.", False),
        ("A-1182", "See A-118.", False),
        ("src/app/main.go2", "in app/main.go2", True),
        ("src/app/main.go2", "in main.go2", True),
        ("src/app2/readme", "the readme", False),
        ("src/app2/read.me", "the read.me", True),
        ("src/app2/a.go", "the a.go", False),
    ],
)
def test_a_summary_holds_a_term_or_the_end_of_a_path(term, summary, is_held):
    found = evidence([UserMessage(term)], summary, [AiMessage(term)])
    assert terms(found)[term].is_held == is_held


def test_a_kept_message_holds_its_terms():
    before = [UserMessage("A-11"), UserMessage("Take A-11 and B-22.")]
    found = evidence(before, "None.", [AiMessage("A-11, B-22")], kept=[1])
    assert [(each.term, each.is_held) for each in found.terms] == [("A-11", True)]


def test_an_earlier_summary_is_replaced_with_the_rest():
    builder = SessionBuilder()
    builder.add(UserMessage("A-11"))
    builder.compact(UserMessage("It is A-11."))
    builder.compact(UserMessage("It is known."))
    builder.add(AiMessage("A-11"))
    first, second = compaction_evidence(builder.session())
    assert (first.held(), second.held()) == (1, 0)
    assert second.terms[0].said == 1


def test_cleared_results_were_not_in_the_window():
    builder = SessionBuilder()
    builder.add(tool("A-11"))
    builder.add(tool("B-22"))
    builder.clear([0])
    builder.compact(UserMessage("None."))
    builder.add(AiMessage("A-11, B-22"))
    (found,) = compaction_evidence(builder.session())
    assert terms(found).keys() == {"B-22"}


@pytest.mark.parametrize(
    ("after", "back", "came"),
    [
        ([tool("A-11"), UserMessage("A-11")], ReturnedBy.TOOL, 2),
        ([UserMessage("A-11"), tool("A-11")], ReturnedBy.USER, 2),
        ([UserMessage("Go on.")], ReturnedBy.UNKNOWN, None),
    ],
)
def test_a_lost_term_has_the_way_it_came_back(after, back, came):
    found = evidence([UserMessage("A-11")], "None.", [*after, AiMessage("A-11")])
    (lost,) = found.lost()
    assert (lost.said, lost.used, lost.back, lost.came) == (0, 2 + len(after), back, came)


def test_where_a_term_was_said_is_the_users_message_before_a_tools():
    before = [UserMessage("A-11"), tool("A-11 B-22"), AiMessage("B-22 C-33")]
    found = evidence(before, "None.", [AiMessage("A-11 B-22 C-33")])
    assert {each.term: each.said for each in found.terms} == {"A-11": 0, "B-22": 1, "C-33": 2}


def test_levels():
    """A term of the assistant is not told; a term of many sessions is not rare."""
    before = [AiMessage("I take A-11."), UserMessage("A-11, B-22 and C-33")]
    one = session(before, "None.", [AiMessage("A-11, B-22, C-33")])
    (found,) = compaction_evidence(one, mentions={"A-11": 1, "B-22": 3, "C-33": 2})
    needed = {level: [each.term for each in found.needed(level)] for level in Level}
    assert needed == {
        Level.ALL: ["A-11", "B-22", "C-33"],
        Level.TOLD: ["B-22", "C-33"],
        Level.RARE: ["C-33"],
    }
    assert terms_of(one) == {"A-11", "B-22", "C-33"}


def test_text_that_a_program_wrote_for_the_user_counts_as_a_tools():
    builder = SessionBuilder()
    builder.add(UserMessage("A-11 by a program"), by_program=True)
    builder.add(tool("B-22"))
    builder.compact(UserMessage("None."))
    builder.add(UserMessage("A-11"), by_program=True)
    builder.add(AiMessage("A-11"))
    (found,) = compaction_evidence(builder.session())
    assert found.dropped == ("B-22", "A-11")
    assert found.terms[0].back is ReturnedBy.TOOL


def test_plain_numbers_are_no_terms():
    words = "1200 3.14 2026-11-24 1.2.3 v1.0"
    found = evidence([UserMessage(words)], "None.", [AiMessage(words)])
    assert terms(found).keys() == set(found.dropped) == {"2026-11-24", "1.2.3", "v1.0"}


def test_a_date_is_lost_however_it_is_written():
    found = evidence([UserMessage("On May 20th, 2024")], "None.", [AiMessage("2024-05-20")])
    assert [(each.term, each.is_held) for each in found.terms] == [("2024-05-20", False)]
    assert found.dropped == ("May 20th, 2024",)
    held = evidence([UserMessage("On 2024-05-20")], "On 20 May.", [AiMessage("2024-05-20")])
    assert held.lost() == []


@pytest.mark.parametrize(("sessions", "level"), [(4, Level.TOLD), (5, Level.RARE)])
def test_the_headline_is_of_rare_terms_if_enough_sessions_tell_what_is_rare(sessions, level):
    assert headline(sessions) is level


def test_a_tail_holds_what_its_messages_mention():
    before = [UserMessage("A-11"), UserMessage("word " * 10_500), UserMessage("B-22")]
    found = evidence(before, "None.", [AiMessage("A-11, B-22")])
    assert (found.in_tail(10_000), found.in_tail(20_000)) == (1, 2)


@pytest.mark.parametrize(
    ("prompts", "coverage"),
    [
        ((200_000, 60_000), 10_000 / 155_000),
        ((30_000, 20_000), 1.0),
        ((30_000, 25_000), 2.0),
        ((), None),
        ((20_000, 20_000), None),
    ],
)
def test_a_compaction_of_which_the_file_lacks_a_part_is_left_out(prompts, coverage):
    builder = SessionBuilder()
    builder.add(UserMessage("word " * 9_999))
    before = builder.add(AiMessage("A-11"))
    builder.compact(UserMessage("None."))
    after = builder.add(AiMessage("A-11"))
    for place, tokens in zip((before, after), prompts, strict=False):
        builder.count_prompt(place, tokens)
    (found,) = compaction_evidence(builder.session())
    if coverage is None:
        assert found.coverage is None
    else:
        assert found.coverage == pytest.approx(coverage, rel=0.01)
    assert (found.why_left_out is None) == (coverage is None or coverage >= 0.5)


def test_an_encrypted_summary_is_left_out():
    found = evidence([UserMessage("A-11")], "[encrypted]", [AiMessage("A-11")], is_opaque=True)
    assert found.why_left_out == "its summary is encrypted"


# The terms that are appended


def test_dropped_terms_are_ranked_by_who_mentions_them_and_how_often():
    replaced = [
        UserMessage("A-11"),
        *[tool("B-22 C-33")] * 3,
        AiMessage("D-44"),
        tool("E-55 F-66"),
        tool("1200 G-77"),
    ]
    ranked = ["D-44", "B-22", "C-33", "A-11", "E-55", "F-66"]
    assert dropped_terms(replaced, "It is about G-77.") == ranked
    assert dropped_terms(replaced, "It is about G-77.", limit=2) == ranked[:2]
    assert dropped_terms(replaced, "B-22 D-44 G-77", 0) == []
    with pytest.raises(InvalidValue, match="0 or more"):
        dropped_terms(replaced, "", -1)


def test_the_text_that_is_appended():
    assert appended_terms(["A-11", "b/c2"]) == "Exact terms: A-11\nb/c2"
    assert appended_terms([]) == ""


# What holds for any session

TERMS = ["A-11", "src/b22/c33.go", "b22/c33.go", "1200", "2026-11-24", "v1.2", "x9y9"]
texts = st.lists(st.sampled_from([*TERMS, "word " * 4_000, "and"]), min_size=1, max_size=4)
spoken = texts.map(" ".join)
messages = st.one_of(
    st.builds(UserMessage, spoken), st.builds(AiMessage, spoken), st.builds(tool, spoken)
)


@st.composite
def sessions(draw):
    builder = SessionBuilder()
    for part in draw(st.lists(st.lists(messages, max_size=5), min_size=2, max_size=4)):
        if builder.messages:
            kept = draw(st.sets(st.sampled_from(builder.window), max_size=2))
            builder.compact(UserMessage(draw(spoken)), kept, draw(st.integers(0, 2)))
        for message in part:
            builder.add(message, draw(st.booleans()) and isinstance(message, UserMessage))
        if builder.messages and draw(st.booleans()):
            builder.clear([len(builder.messages) - 1])
    return builder.session()


@given(sessions())
def test_of_any_session(given):
    for found in compaction_evidence(given):
        summary = given.messages[found.compaction.summary].contents[0].text.split()
        assert not [each for each in found.lost() if each.term in summary]
        assert not [term for term in found.dropped if term in summary]
        for level in Level:
            appended = [found.held(level, terms) for terms in (0, *APPENDED)]
            tails = [found.in_tail(tokens, level) for tokens in (0, 10_000, 20_000, 10**9)]
            needed = len(found.needed(level))
            assert found.held(level) + len(found.lost(level)) == needed
            assert appended == sorted(appended)
            assert appended[-1] <= needed
            assert tails == sorted(tails)
            assert tails[-1] == needed


@given(sessions())
def test_an_agent_sees_the_kept_messages_and_later_ones(given):
    for place, compaction in enumerate(given.compactions):
        before = window_of(given, compaction.summary)
        after = window_of(given, compaction.summary + 1)
        assert sorted((*compaction.covered, *compaction.kept)) == sorted(before)
        assert after == list(compaction.window)
        assert compaction.summary in given.summaries
        assert given.summaries == {each.summary for each in given.compactions}, place


@given(st.lists(messages, max_size=8), spoken, st.integers(0, 5))
def test_dropped_terms_are_a_beginning_of_all_of_them(replaced, summary, limit):
    assert dropped_terms(replaced, summary, limit) == dropped_terms(replaced, summary)[:limit]


@given(st.lists(messages, max_size=8), spoken, st.lists(messages, max_size=3), st.integers(0, 5))
def test_terms_that_messages_which_stay_mention_are_counted(replaced, summary, stay, limit):
    terms, beside = dropped_and_beside(replaced, summary, stay, limit)
    assert terms == dropped_terms(replaced, summary, limit)
    in_memory = "\n".join([summary, *(text for each in stay for text in texts_with_facts(each))])
    assert beside == len({*terms} - {*dropped_terms(replaced, in_memory)})


@given(st.lists(messages, min_size=1, max_size=8), spoken)
def test_a_program_appends_what_the_evidence_measures(replaced, summary):
    found = evidence(replaced, summary, [AiMessage("-")])
    assert list(found.dropped) == dropped_terms(replaced, summary)
