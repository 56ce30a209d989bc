"""Times on the page of a conversation: of its history, and in its address."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import MessageWindow, services
from chatmemory.models import Step
from chatmemory.reading.conversations import any_memory
from chatmemory.reading.steps import step_at_time
from chatmemory.services import NewMessage
from inspector.conversation.page import ConversationPage
from inspector.conversation.state import conversation_state
from inspector.shell.state import ConversationQuery

from ..conversations import create_and_add, numbered
from ..properties import examples
from .markup import tree

START = datetime(2026, 11, 24, 14, 30, tzinfo=UTC)
TEN = timedelta(minutes=10)
GAPS = st.lists(st.sampled_from([-90_000, -5, 0, 1, 599, 600, 601, 5_000, 86_400]), max_size=70)


def say(*times: datetime) -> None:
    """Make the conversation "c" anew, of messages that were said at these times."""
    if any_memory():
        services.delete("c")
    services.create("c", MessageWindow(3))
    said = zip(numbered(len(times)), times, strict=True)
    services.add("c", [NewMessage(message, said_at=at) for message, at in said])


def date(*times: datetime) -> None:
    """Make the conversation "c" anew, with a step at each of these times."""
    say(*times)
    for n, at in enumerate(times, 1):
        Step.objects.filter(memory_id="c", n=n).update(at=at)


def after(*seconds: float) -> list[datetime]:
    """The start, and times at these distances in seconds, one after another."""
    return [START + timedelta(seconds=n) for n in accumulate([0, *seconds])]


def rows(**query):
    return ConversationPage(conversation_state("c", ConversationQuery(**query))).history_pane.rows


def days_and_times(html: str) -> list[str]:
    """The lines of days in the history, and the times that are always shown."""
    (history,) = (each for each in tree(html).iter("ol") if each.get("id") == "said")
    lines = []
    for row in history:
        words = [each.text for each in row.iter("text")]
        if row.get("class") == "day":
            lines += words
        if "is-after-pause" in row.get("class", ""):
            (time,) = row.iter("time")
            lines += [text.text for text in time]
    return lines


# The history


def test_a_time_follows_a_pause_and_a_date_is_between_days(operator_client, db):
    say(*after(20, 599, 600, 9 * 3600))
    assert days_and_times(operator_client.get("/c/c/").content.decode()) == [
        "24 November 2026 UTC",
        "14:30:00",
        "14:50:19",
        "23:50:19",
    ]


def test_every_message_has_its_time_and_a_draft_has_none(operator_client, db):
    say(*after(5, 5))
    key = services.keep_trial("c", numbered(1))
    html = operator_client.get(f"/c/c/?trial={key}").content.decode()
    assert re.findall(r"<time>(.*?)</time>", html) == ["14:30:00", "14:30:05", "14:30:10"]


def test_times_are_in_the_zone_of_the_site(operator_client, db, settings):
    settings.TIME_ZONE = "Asia/Tokyo"
    say(*after(1_900))
    assert days_and_times(operator_client.get("/c/c/").content.decode()) == [
        "24 November 2026 JST",
        "23:30:00",
        "25 November 2026 JST",
        "00:01:40",
    ]


@given(GAPS, st.data())
@examples(30)
def test_a_part_of_the_history_has_the_times_of_the_whole(db, gaps, data):
    """Also where the clock went back, and whichever message the part begins with."""
    times = after(*gaps)
    say(*times)
    edge = data.draw(st.integers(1, len(times) + 1))
    query = data.draw(st.sampled_from([{}, {"before": edge}, {"after": edge}, {"at": edge - 1}]))
    pause = {1} | {n for n, (a, b) in enumerate(pairwise(times), 2) if b - a >= TEN}
    day = {n for n, (a, b) in enumerate(pairwise(times), 2) if a.date() != b.date()}
    shown = rows(**query)
    seqs = {row.seq for row in shown}
    assert {row.seq for row in shown if "is-after-pause" in row.css.split()} == pause & seqs
    assert {row.seq for row in shown if row.day} == (day | {min(seqs, default=1)}) & seqs


def test_no_further_query_tells_when_the_message_before_a_part_was_said(db):
    say(*after(*[1] * 80))
    rows(at=50), rows(at=80)  # what is kept of their timelines
    with CaptureQueriesContext(connection) as whole:
        rows(at=50)
    with CaptureQueriesContext(connection) as part:
        rows(at=80)
    assert len(part) == len(whole)


# A time in the address


@pytest.mark.parametrize(
    ("time", "step"),
    [
        ("2026-11-24T14:32Z", 2),
        ("2026-11-24T14:31:59Z", 1),
        ("2026-11-24T14:32", 2),
        ("2026-11-24 14:32:00.4Z", 2),
        ("2026-11-24T14:32:00.2Z", 1),
        ("2026-11-24T15:40:00%2B01:00", 3),
        ("2026-11-23", 1),
        ("2027-01-01T00:00Z", 3),
        ("0001-01-01T00:00Z", 1),
        ("9999-12-31T23:59:59Z", 3),
    ],
)
def test_a_time_leads_to_the_step_that_was_in_force(operator_client, db, time, step):
    """To the second, as pages show times; without an offset in the zone of the site."""
    date(*after(120.4, 300))
    response = operator_client.get(f"/c/c/?time={time}")
    assert (response.status_code, response["Location"]) == (302, f"/c/c/?at={step}")


def test_the_zone_of_a_time_is_that_of_the_site(operator_client, db, settings):
    settings.TIME_ZONE = "Asia/Tokyo"
    date(*after(60, 60))
    html = operator_client.get("/c/c/?at=2").content.decode()
    assert "Go to a time, JST" in html
    (value,) = re.findall(r'name="time"\s+step="1"\s+value="(.*?)"', html)
    assert value == "2026-11-24T23:31:00"
    assert operator_client.get(f"/c/c/?time={value}")["Location"] == "/c/c/?at=2"


def test_the_rest_of_the_address_is_kept(operator_client, db):
    date(*after(60))
    response = operator_client.get("/c/c/?msg=1&time=2026-11-24T14:30Z&find=a+b&at=2&memory_id=d")
    assert response["Location"] == "/c/c/?msg=1&find=a+b&at=1&memory_id=d"


@pytest.mark.parametrize(
    "time", ["noon", "2026-13-01T00:00Z", "0001-01-01T00:00%2B23:00", "1", "2026-11-24T14:32 01:00"]
)
def test_an_invalid_time_is_refused(operator_client, db, time):
    date(*after(60))
    response = operator_client.get(f"/c/c/?time={time}")
    assert response.status_code == 404
    assert (
        "“time” in the address must be a date and time such as 2026-11-24T14:32Z"
        in response.content.decode()
    )


def test_a_conversation_without_steps_has_no_times(operator_client, db):
    services.create("c", None)
    assert operator_client.get("/c/c/?time=2026-11-24")["Location"] == "/c/c/?at=0"
    assert 'name="time"' not in operator_client.get("/c/c/").content.decode()
    assert operator_client.get("/c/none/?time=2026-11-24").status_code == 404


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(-1, 51))
@examples(40)
def test_the_step_of_a_time_is_the_one_that_reading_all_of_them_finds(db, seconds, moment):
    times = [START + timedelta(seconds=n) for n in sorted(seconds)]
    date(*times)
    sought = START + timedelta(seconds=moment)
    found = step_at_time("c", sought)
    assert found == max([n for n, at in enumerate(times, 1) if at <= sought], default=1)


@given(st.lists(st.integers(-9, 9), max_size=40), st.integers(-20, 20))
@examples(40)
def test_where_a_clock_went_back_the_step_was_one_of_the_last_at_that_time(db, gaps, moment):
    times = after(*gaps)
    date(*times)
    sought = START + timedelta(seconds=moment)
    found = step_at_time("c", sought)
    assert found == len(times) or times[found] > sought
    assert found == 1 or times[found - 1] <= sought


# A client's id in the address


def test_a_clients_id_leads_to_its_message_where_it_arrived(operator_client, db):
    services.create("c", MessageWindow(1))
    said = [NewMessage(m, f"trace/{n} ä") for n, m in enumerate(numbered(3), 1)]
    services.change("c", labels={"team": "x"})
    services.add("c", said)
    response = operator_client.get("/c/c/", {"client_id": "trace/2 ä"})
    assert (response.status_code, response["Location"]) == (302, "/c/c/?at=3&msg=2")
    page = operator_client.get("/c/c/", {"client_id": "trace/2 ä"}, follow=True).context["page"]
    assert (page.at, page.msg) == (3, 2)


def test_a_step_or_a_time_beside_a_clients_id_is_kept(operator_client, db):
    date(*after(60, 60))
    services.add("c", [NewMessage(numbered(1)[0], "x")])
    assert operator_client.get("/c/c/?client_id=x&at=2")["Location"] == "/c/c/?at=2&msg=4"
    url = "/c/c/?client_id=x&time=2026-11-24T14:31Z&at=3"
    assert operator_client.get(url)["Location"] == "/c/c/?at=2&msg=4"


@pytest.mark.parametrize("client_id", ["nobody", "x%00", "x" * 300])
def test_an_unknown_client_id_is_not_found(operator_client, db, client_id):
    create_and_add("c", MessageWindow(3), [NewMessage(numbered(1)[0], "x")])
    response = operator_client.get(f"/c/c/?client_id={client_id}")
    assert response.status_code == 404
    assert "“c” has no message with the client id" in response.content.decode()
    assert operator_client.get("/c/none/?client_id=x").status_code == 404
