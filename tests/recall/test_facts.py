"""What a fact is, and which facts a message mentions."""

from __future__ import annotations

import json

import pytest

from chatmemory import (
    AiMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.exceptions import InvalidValue
from chatmemory.recall.dates import Date, Dates, dates_in
from chatmemory.recall.facts import Words, facts_of
from chatmemory.recall.lexicon import Lexicon, nameable


def result(text):
    return ToolExecutionResultMessage("1", "find", text)


def call(**arguments):
    return AiMessage(None, [ToolExecutionRequest.of("find", arguments, id="1")])


def own(*messages, words=None):
    """The facts of the last message."""
    return set(Lexicon(messages, words or Words()).of[-1].own.values())


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Order A-1182, please.", {"A-1182"}),
        ("mail ada.l+7@example.org!", {"ada.l+7@example.org"}),
        ("--x9y8-- 123 1234", {"x9y8"}),
        ("v1.2.3 of src/app2/main.go", {"v1.2.3", "src/app2/main.go"}),
        ("1.2.3 and 10.0.0.1", {"1.2.3", "10.0.0.1"}),
        ("Zürich8001 naïve", {"rich8001"}),
        ("nothing to see", set()),
        ("[redacted #12345]", set()),
        ("", set()),
    ],
)
def test_a_fact_is_a_run_that_nobody_can_guess(text, facts):
    assert facts_of(UserMessage(text)) == facts


@pytest.mark.parametrize(
    "text",
    [
        "mode 0o755 of 0644 and 100644",
        "took 0.00s, 120ms, 1h30m, 24-hour and 12.5min",
        "   946→\tthe line",
        "12-34 and 1024-1050, 00+1",
        "at 03:00:00+1 and 10:31:36.517511Z, 20260128T220100Z",
        "G104 SA5011 E501 SC2086 int64 sha256 utf-8 arm64 1-indexed",
        "1,234.56 and 05/06 and 3/4",
        "the 20th, 10am, 24.6KB, 1080px",
        "abc1234, abc-123, DEF-456, abc123def456 and a1b2c3d4e5f6",
        "line1, tree2, agent10 and python3",
        "a 12-hex-char id of 8-character words, a 3-week wait",
    ],
)
def test_words_that_identify_no_case_are_no_facts(text):
    assert facts_of(UserMessage(text)) == set()


def test_a_fact_begins_behind_an_escaped_end_of_a_line():
    call = ToolExecutionRequest("1", "write", '{"content": "one\\nA-1182\\\\nB-2270\\tC-3"}')
    said = AiMessage(tool_execution_requests=[call])
    assert facts_of(said) == {"A-1182", "B-2270"}
    assert facts_of(UserMessage(r"see C:\new\report-17.txt")) == {"report-17.txt"}
    lexicon = Lexicon([UserMessage("A-1182"), said])
    assert "A-1182" in lexicon.of[1].mentions


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("4512 of 7334", set()),
        ("order 4512", {"4512"}),
        ("Order number: **4512**", {"4512"}),
        ("#4512, and ticket 99", {"4512"}),
        ("the card ending in 7334.", {"7334"}),
        ('"user_id": 88123', {"88123"}),
        ("account code is 1234-x", {"1234-x"}),
        ("border 4512 and codex 4513", set()),
    ],
)
def test_a_number_is_one_behind_its_name(text, facts):
    assert facts_of(UserMessage(text)) == facts


def test_a_code_is_one_in_a_conversation_that_has_it_as_a_whole_json_string():
    named = result('{"last_four": "7334", "code": "DGZSYX", "note": "HELLO THERE", "n": 4512}')
    said = UserMessage("My 7334 card for DGZSYX: HELLO, it was 4512.")
    assert own(said) == set()
    assert own(named, said) == own(said, named, said) == {"7334", "DGZSYX"}


def test_a_date_has_iso_order_or_the_name_of_a_month():
    text = "2026-01-28T22:01:00+11:00, on May 20th, 3 June 2024; 05/06, may 20 ways, 2026-13-01"
    assert dates_in(text) == {
        Date(1, 28, 2026): "2026-01-28",
        Date(5, 20): "May 20th",
        Date(6, 3, 2024): "3 June 2024",
    }
    assert facts_of(UserMessage("cut at 2026-01-28T22")) == {"2026-01-28"}


def test_dates_are_equal_if_no_two_years_differ():
    dates = Dates()
    first = dates.name(Date(5, 20))
    assert dates.name(Date(5, 20, 2024)) == dates.name(Date(5, 20)) == first
    other = dates.name(Date(5, 20, 2023))
    assert other != first
    assert dates.name(Date(5, 20)) == other
    assert dates.name(Date(5, 20, 2024)) == first
    assert dates.name(Date(5, 21)) != first


def test_a_pair_is_one_if_a_later_call_has_it():
    profile = result('{"membership": "gold", "user": {"cabin": "economy"}, "active": true}')
    used = call(membership="gold", cabin="business", active=True)
    lexicon = Lexicon([profile, used])
    assert [sorted(each.own) for each in lexicon.of] == [[], ["membership=gold"]]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (result('{"destination": "MIA"}'), True),
        (result("MIA-LAX"), True),
        (UserMessage("Gold members fly to MIA."), True),
        (SystemMessage("MIA is an airport."), True),
        (UserMessage("From Miami"), False),
        (UserMessage("MIAMI"), False),
    ],
)
def test_a_value_stands_in_a_text_as_a_word_whatever_its_key(text, is_one):
    lexicon = Lexicon([result('{"origin": "MIA"}'), call(origin="MIA"), text])
    assert ("origin=MIA" in lexicon.of[2].mentions) is is_one


@pytest.mark.parametrize("value", ["no", "1", "true", "None", "x", "12", True])
def test_what_tells_nothing_is_no_value(value):
    lexicon = Lexicon([result(json.dumps({"insurance": value})), call(insurance=value)])
    assert not lexicon.of[1].pairs


def test_a_message_mentions_every_fact_that_it_contains():
    address = "repos/o/r/comments/2772143680/replies"
    lexicon = Lexicon(
        [call(path=address), UserMessage("Comment 2772143680?"), UserMessage("x9y8z")]
    )
    assert [address in each.mentions for each in lexicon.of] == [True, True, False]
    assert lexicon.mentioned_in(["2772143680 and x9y8z"]) == {address, "x9y8z"}


def test_words_of_a_project():
    words = Words(("Zürich",), ("INV-",), (r"\bcase [A-Z]{3}\b",))
    assert facts_of(UserMessage("INV-new/7 in Zürich, case ABC, Zürichs"), words) == {
        "INV-new/7",
        "Zürich",
        "case ABC",
    }


@pytest.mark.parametrize("pattern", ["(", "a*", "", "(a+)+b", r"(\w+\s?)+;"])
def test_a_pattern_that_cannot_be_used_is_refused(pattern):
    with pytest.raises(InvalidValue, match=r"pattern|expression"):
        Words(patterns=(pattern,))


def test_every_possible_fact_of_a_message_has_a_place():
    message = call(order="A-1182", cabin="economy", on="2024-05-20", card="7334")
    assert nameable(message) == [
        "2024-05-20",
        "7334",
        "A-1182",
        "cabin=economy",
        "card=7334",
        "on=2024-05-20",
        "order=A-1182",
    ]
