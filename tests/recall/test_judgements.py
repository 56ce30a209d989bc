"""Incidents and lost terms of real conversations that people have read and judged.

judgements.json has each with whether a reader calls it right. A change of a definition finds those
that are right, and no more than these that are wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from chatmemory.formats import read_transcripts
from chatmemory.messages.message import MessageType
from chatmemory.recall.again import ReadMessage, read_messages
from chatmemory.recall.compactions import Level, compaction_evidence, terms_of
from chatmemory.recall.dates import dates_in
from chatmemory.recall.facts import texts_with_facts
from chatmemory.recall.incidents import (
    IncidentKind,
    MemoryTime,
    StepMessage,
    incidents_of,
    incidents_under,
)
from chatmemory.recall.lexicon import Lexicon, MessageFacts, speaker_of
from chatmemory.recall.sessions import recorded_messages
from chatmemory.windows.eviction import Reason
from chatmemory.windows.written_policies import policies_from_text

JUDGED = json.loads(Path(__file__).with_name("judgements.json").read_text())
USERS = {IncidentKind.USER_REPEATED, IncidentKind.USER_SUPPLIED}


def judged(rows, *names):
    return {tuple(row[name] for name in names): row["right"] for row in rows}


def check(found, expected):
    """All that are right are found, and no more that are wrong."""
    assert {each for each, is_right in expected.items() if is_right} <= found
    wrong = {each for each in found if not expected.get(each, True)}
    assert len(wrong) <= sum(not is_right for is_right in expected.values())


def test_the_incidents_of_the_public_runs(airline_runs):
    for limit in (1_000, 2_000):
        rows = [row for row in JUDGED["incidents"] if row.get("limit") == limit]
        expected = judged(rows, "conversation", "again", "kind", "fact")
        found = {
            (n, each.again, each.kind.value, each.fact)
            for n in range(len(airline_runs.messages))
            for each in airline_runs.incidents(n, limit)
        }
        check(found, expected)
        of_users = [(n, again) for n, again, kind, _ in found if kind in USERS]
        assert limit > 1_000 or len(of_users) <= 7


def check_policies(source, rows, messages_of):
    """Incidents of some conversations under other windows, of which only some were read."""
    for text in sorted({row["policy"] for row in rows}):
        (policy,) = policies_from_text(text)
        here = [row for row in rows if row["policy"] == text]
        for key in {row[source] for row in here}:
            found = {
                (each.again, each.kind.value, each.fact, each.is_same)
                for each in incidents_under(policy, messages_of(key))
            }
            expected: set[tuple[object, ...]] = set()
            gone: set[tuple[object, ...]] = set()
            for row in here:
                each = row["again"], row["kind"], row["fact"], row.get("same")
                is_gone = row.get("partly") or row.get("example")
                if row[source] == key and (row["right"] or is_gone):
                    (gone if is_gone else expected).add(each)
            assert expected <= found
            # Only a part of the fact was said before, or the fact is an example, such as `abc1234`
            assert not gone & found


def test_the_messages_that_incidents_name_contain_the_fact(airline_runs):
    for n in range(0, len(airline_runs.messages), 4):
        messages = airline_runs.messages[n]
        dates = known_dates(messages)
        for each in airline_runs.incidents(n, 1_000):
            for fact in each.facts:
                if fact.name not in dates:
                    value = fact.fact.partition("=")[2] if fact.is_pair else fact.fact
                    assert says(messages[fact.said - 1], value), (n, fact)


def known_dates(messages):
    """The names of dates, which are written in several ways."""
    return set().union(*(each.dates for each in Lexicon(messages).of))


def test_uses_under_larger_windows(airline_runs):
    rows = [row for row in JUDGED["incidents"] if "policy" in row and "conversation" in row]
    assert len(rows) == 55
    check_policies("conversation", rows, airline_runs.messages.__getitem__)


@pytest.mark.long
def test_the_sessions_under_other_windows(all_claude_sessions):
    def messages_in(name):
        (file,) = (each for each in all_claude_sessions if each.name == name)
        session = read_transcripts(file.read_bytes()).transcripts[0].session
        messages = enumerate(recorded_messages(session))
        return [message for place, message in messages if place not in session.summaries]

    rows = [row for row in JUDGED["incidents"] if "policy" in row and "conversation" not in row]
    assert Counter(row["kind"] for row in rows)["call_repeated"] == 49
    check_policies("source", rows, messages_in)


def test_what_a_user_had_to_say_again_is_right(data_file):
    forced = [row for row in JUDGED["incidents"] if row["forced"]]
    assert len(forced) == 3
    assert all(row["right"] for row in forced)


def incidents_of_session(session):
    """The incidents of a recorded session, with memory as its compactions left it."""
    messages, summaries = recorded_messages(session), session.summaries
    said = [place for place in range(len(messages)) if place not in summaries]
    lexicon = Lexicon([messages[place] for place in said])
    read = dict(zip(said, read_messages([messages[n] for n in said], lexicon), strict=True))
    for place in summaries:
        mentions = lexicon.mentioned_in(texts_with_facts(messages[place]))
        facts = MessageFacts({}, frozenset(), frozenset(), mentions, speaker_of(messages[place]))
        read[place] = ReadMessage(facts)
    arrivals = [StepMessage(n, n, messages[n], read[n], n not in summaries) for n in sorted(read)]
    left = {place: each.summary for each in session.compactions for place in each.covered}
    times = [MemoryTime(n, n, left.get(n), Reason.SUMMARIZED if n in left else None) for n in read]
    return incidents_of(arrivals, times)


@pytest.mark.parametrize(
    ("files", "levels"),
    [
        ("claude_sessions", ("all",)),  # which terms are rare depends on the other sessions
        pytest.param("all_claude_sessions", ("all", "rare"), marks=pytest.mark.long),
    ],
)
def test_the_incidents_and_the_lost_terms_of_the_sessions(request, files, levels):
    sessions = {
        file.name: read_transcripts(file.read_bytes()).transcripts[0].session
        for file in request.getfixturevalue(files)
    }
    rows = [row for row in JUDGED["incidents"] if row["source"] in sessions and "policy" not in row]
    found = {
        (name, each.again + 1, each.kind.value, each.fact)
        for name, session in sessions.items()
        for each in incidents_of_session(session)
    }
    expected = judged(rows, "source", "again", "kind", "fact")
    check(found, expected)
    assert found <= expected.keys()
    check_lost(sessions, levels)


def says(message, term):
    return any(term in text for text in texts_with_facts(message))


def has_date(message, name):
    """Return whether a message has a date of this name, such as `01-21`, in another notation."""
    dates = (date for text in texts_with_facts(message) for date in dates_in(text))
    return any(name.endswith(f"{date.month:02}-{date.day:02}") for date in dates)


def check_named(session, found):
    """Each message that the report names contains the term, a date in any notation."""
    for term in found.terms:
        for place in filter(lambda each: each is not None, (term.said, term.used, term.came)):
            message = session.messages[place]
            assert says(message, term.term) or has_date(message, term.name), (term.term, place)
        if term.came is not None:
            speakers = (MessageType.USER, MessageType.TOOL_EXECUTION_RESULT)
            assert session.messages[term.came].type in speakers


def check_lost(sessions, levels):
    for session in sessions.values():
        for each in compaction_evidence(session):
            check_named(session, each)
    mentions = Counter(term for session in sessions.values() for term in terms_of(session))
    lost = {
        (name, each.number, term.term, level)
        for name, session in sessions.items()
        for each in compaction_evidence(session, mentions=mentions)
        for level in levels
        for term in each.lost(Level(level))
        if not each.why_left_out
    }
    for level in levels:
        of_level = [row for row in JUDGED["lost"] if level in ("all", row["level"])]
        rows = [row for row in of_level if row["source"] in sessions]
        expected = {
            (*key, level): right
            for key, right in judged(rows, *["source", "compaction", "term"]).items()
        }
        here = {each for each in lost if each[3] == level}
        check(here, expected)
        assert here <= expected.keys()
    rare = [row["right"] for row in JUDGED["lost"] if row["level"] == "rare"]
    assert sum(rare) >= 0.75 * len(rare)
