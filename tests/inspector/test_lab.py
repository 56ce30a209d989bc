"""The lab of many conversations: slices, what the page says, and adopting a limit."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    UserMessage,
    explain,
    queries,
    recall_curve,
    services,
    text_of,
)
from chatmemory.core.recall.figures import Sums
from chatmemory.formats import read_transcripts
from chatmemory.models import Memory, Message, RecallFigures, Step
from chatmemory.queries import Fleet, LimitPoint
from chatmemory.queries.lab import chosen_of
from chatmemory.services import findings
from inspector.lab.asked import FleetAsked
from inspector.lab.curve import MARGIN, NARROW, TICKS, WIDE, Curve, Mark, labels_in
from inspector.lab.files import csv_file

from ..conversations import create_and_add, users
from .markup import tree, words

SAID = [
    UserMessage("Orders A-1182 and B-2231."),
    AiMessage("Yes?"),
    UserMessage("Hm"),
    AiMessage("A-1182, B-2231"),
]
COUNT = 6
MESSAGES = "kind=message_window"
TWO = MessageWindow(2)


@pytest.fixture
def conversations(db):
    for n in range(COUNT):
        create_and_add(f"shop/{n}", TWO, SAID, {"team": "ab"[n % 2]})


@pytest.fixture
def lab(operator_client, conversations):
    """The page after everything was computed, as text without markup."""

    def get(query: str = MESSAGES) -> str:
        services.compute_figures(asked(query).query, 60)
        html = operator_client.get(f"/lab/?{query}").content.decode()
        return " ".join(re.sub(r"<[^>]*>", " ", html.partition("<main")[2]).split())

    return get


def asked(query: str = MESSAGES) -> FleetAsked:
    return FleetAsked.read(QueryDict(query).dict())


@pytest.mark.database
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite locks the whole file")
def test_conversations_are_locked_one_by_one(conversations):
    """Citus cannot lock rows of several conversations with one statement."""
    for n in range(COUNT):
        services.keep(f"shop/{n}")
    with CaptureQueriesContext(connection) as sent:
        services.compute_figures(asked().query, 60)
    locks = [each["sql"] for each in sent if "FOR UPDATE" in each["sql"]]
    assert len(locks) == COUNT
    assert not [sql for sql in locks if " IN (" in sql]


def test_the_answer_is_a_sentence_and_the_table_has_what_it_compares_with(operator_client, lab):
    text = lab()
    assert "3 messages hold 100 % of what the assistant needed, for 100 % of the tokens" in text
    assert "It needed 12 facts that had been said before" in text
    rows = table(operator_client, f"{MESSAGES}&input=2.5&currency=€")
    assert rows["today"][:3] == ("is-today loses", "2 msg", "12")
    (found,) = queries.recall_of_stored(queries.MemoryFilter(), [None]).rows
    cost = found.prompt_tokens / found.calls * 1_000 * 2.5 / 1e6
    assert rows["everything"] == ("", "no limit", "0", f"€{cost:,.2f}")
    assert "1 message holds 0 % of what" in lab(f"{MESSAGES}&limit=1")
    assert "At 1 message, 12 of them had already left." in lab(f"{MESSAGES}&limit=1")


def test_all_and_nothing_are_said_of_no_other_share():
    shares = [explain.percent(part, 1_588) for part in (0, 1, 1_500, 1_587, 1_588)]
    assert shares == ["0 %", "1 %", "94 %", "99 %", "100 %"]
    assert explain.percent(0, 0) == ""


def table(client, query: str) -> dict[str, tuple[str, str, str, str]]:
    """Of each row, by its label: its class, the limit, how many recalls are lost, and the price."""
    page = tree(client.get(f"/lab/?{query}").content.decode())
    found = {}
    for row in page.findall(".//tbody/tr"):
        label, *cells = [" ".join(cell.itertext()) for cell in row]
        found[label] = (row.get("class", ""), cells[0], cells[1], cells[-1])
    return found


def test_each_share_has_its_smallest_limit_and_rows_of_the_chosen_one_are_marked(
    operator_client, conversations
):
    services.compute_figures(asked().query, 60)
    rows = table(operator_client, MESSAGES)
    assert rows["90 %"] == rows["100 %"] == ("is-pick", "3 msg", "0", "100 %")
    for n in range(COUNT):
        create_and_add(f"long/{n}", TWO, [SAID[0], *SAID[1:3] * 2, SAID[3]])
    replaced = [SystemMessage(text_of(SAID[0])), SystemMessage("Hm"), *SAID[1:]]
    create_and_add("replaced", MessageWindow(9), replaced)
    services.compute_figures(asked().query, 60)
    rows = table(operator_client, f"{MESSAGES}&input=2.5&limit=3")
    assert rows["90 %"][:3] == ("", "5 msg", "2")
    assert rows["95 %"] == rows["100 %"] == ("", "no limit", "", "")
    assert rows["chosen"][:3] == ("is-pick", "3 msg", "14")


def test_conversations_whose_limit_is_only_measured_are_not_those_of_today(operator_client, db):
    create_and_add("measured", TWO.metering(), SAID)
    create_and_add("held", MessageWindow(1), SAID)
    services.compute_figures(asked().query, 60)
    rows = table(operator_client, MESSAGES)
    assert rows["today"][:3] == ("is-today loses", "1 msg", "2")
    services.delete("held")
    assert "today" not in table(operator_client, MESSAGES)


def test_it_is_computed_slice_by_slice(operator_client, conversations):
    assert services.compute_figures(asked("kind=token_window").query, 0) == COUNT - 1
    assert f"1 of {COUNT} conversations" in operator_client.get("/lab/").content.decode()
    answer = operator_client.post("/lab/", {}, headers={"HX-Request": "true"})
    assert b"hold" in answer.content
    assert operator_client.post("/lab/", {"kind": "token_window"})["Location"] == "/lab/"
    assert "<progress" not in operator_client.get("/lab/").content.decode()


def test_what_is_computed_is_kept_until_the_conversation_changes(conversations):
    query = asked().query
    assert services.compute_figures(query, 60) == 0
    services.add("shop/1", [AiMessage("A-1182 again")])
    assert queries.fleet(query).sums.count == COUNT - 1
    assert services.compute_figures(query, 0) == 0
    assert queries.fleet(query).sums.recalls == 2 * COUNT + 1
    other = asked(f"{MESSAGES}&estimator=gpt-4").query
    assert services.compute_figures(other, 0) == COUNT - 1


def test_figures_go_with_a_redaction_and_with_the_conversation(conversations, monkeypatch):
    services.compute_figures(asked().query, 60)
    services.redact("shop/1", 1)
    assert not RecallFigures.objects.filter(memory_id="shop/1").exists()
    services.delete("shop/2")
    monkeypatch.setattr("chatmemory.services.erasure.AT_ONCE", 0)
    services.delete("shop/3")
    assert RecallFigures.objects.count() == COUNT - 3


def test_a_conversation_that_changes_while_it_is_computed_is_left_out(conversations, monkeypatch):
    compute = findings.figures_of

    def meanwhile(*arguments):
        services.add("shop/0", [UserMessage("one more")])
        monkeypatch.setattr(findings, "figures_of", compute)
        return compute(*arguments)

    monkeypatch.setattr(findings, "figures_of", meanwhile)
    services.compute_figures(asked().query, 60)
    assert set(RecallFigures.objects.values_list("memory_id", flat=True)) == {
        f"shop/{n}" for n in range(1, COUNT)
    }


def test_a_conversation_that_cannot_be_read_is_told(lab):
    Message.objects.filter(memory_id__in=["shop/1", "shop/2"], seq=1).update(frame="{")
    assert "2 conversations could not be read and are left out." in lab()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("label=team:a", "3 conversations labelled team:a"),
        ("prefix=shop/1", "1 conversation beginning with shop/1"),
        ("q=A-1182", "6 conversations with “A-1182”"),
        ("sample=2&seed=7", "a sample of 2 of the 6 conversations of this site"),
        ("since=2999-01-01", "No conversation matches."),
        ("kind=nothing&limit=x&sample=-1", "6 conversations of this site"),
    ],
)
def test_conversations_are_chosen(operator_client, conversations, query, words):
    html = operator_client.get(f"/lab/?{query}").content.decode()
    assert words in " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_a_sample_is_drawn_by_its_seed(conversations):
    drawn = [
        tuple(each.id for each in chosen_of(asked(f"sample=3&seed={seed}").query)[1])
        for seed in (1, 1, *range(2, 9))
    ]
    assert drawn[0] == drawn[1]
    assert {len(each) for each in drawn} == {3}
    assert len({*drawn}) > 2


def test_users_who_had_to_repeat_themselves_are_listed(operator_client, lab):
    services.add("shop/4", users("Hm", "Oh", "It was A-1182"))
    services.add("shop/5", [UserMessage("A-1182 it is")])
    text = lab()
    assert "shop/4 A-1182 said in #1, forgotten, said again in #7" in text
    assert "shop/5 A-1182" not in text


def test_csv_has_the_curve(operator_client, lab):
    lab()
    text = operator_client.get(f"/lab/?{MESSAGES}&as=csv").content.decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    found = [(row["limit"], row["held"], row["nothing_lost"]) for row in rows]
    assert found == [("1", "0", "0"), ("2", "0", "0"), ("3", "12", "6")]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("options=bogus=1", "no option"),
        ("options=low_water=0.5&limit=5", ""),
        ("options=meters_only=true", "With meters_only nothing is lost at any limit"),
        ("since=2026-13-40", "A date is written as 2026-01-31."),
        ("estimator=nobody", "nobody"),
        ("kind=nothing", "The kind of a policy is message_window or token_window"),
        ("sample=ten", "Sample must be a whole number of up to 9 digits"),
        ("limit=0", "Limit must be greater than zero"),
        ("cached=1000000", "The cached price must be a number below 1,000,000, such as 2.50"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_sent_or_adopted(
    operator_client, conversations, query, words
):
    adopted = operator_client.post(
        "/lab/adopt/", {"limit": "777", **QueryDict(query).dict(), "confirmed": "1"}
    )
    assert adopted.status_code == 422
    assert {row.policy for row in queries.all_memories(queries.MemoryFilter())} == {TWO}
    if words:
        page = operator_client.get(f"/lab/?{query}")
        assert words in page.content.decode()
        numbers = operator_client.get(f"/lab/?{query}&as=csv")
        assert numbers["Content-Type"] == "text/plain; charset=utf-8"
        assert words in numbers.content.decode()
        assert (page.status_code, numbers.status_code) == (422, 422)


@pytest.mark.parametrize("limit", ["", "&limit=4000"])
def test_nothing_used_again_is_said_and_no_limit_is_offered(operator_client, db, limit):
    create_and_add("m", TWO, [*SAID[:3], AiMessage("Well"), UserMessage("It was that")])
    operator_client.post("/lab/", {})
    html = operator_client.get(f"/lab/?{limit}").content.decode()
    assert "The assistant used no fact of earlier messages again." in html
    assert "said in <" not in html
    assert "Facts still held" not in html
    assert "Preview the change" not in html
    assert "Lost most" not in html
    assert list(table(operator_client, limit)) == ["today", "everything"]


def test_nothing_has_no_shares(operator_client, db):
    create_and_add("m", TWO, [UserMessage("hi")])
    operator_client.post("/lab/", {})
    assert not any("%" in cell for cell in table(operator_client, "")["everything"])
    assert "no prompts" in operator_client.get("/c/m/compare/?policy=everything").content.decode()


def test_a_limit_is_adopted_for_a_label_after_a_preview(operator_client, conversations):
    form = {"kind": "message_window", "limit": "3", "label": "team:a"}
    preview = operator_client.post("/lab/adopt/", form).content.decode()
    assert "Use Message window 3 for 3 conversations?" in preview
    assert queries.policy("shop/0") == TWO
    answer = operator_client.post("/lab/adopt/", form | {"confirmed": "1"})
    assert "label=team%3Aa" in answer["Location"]
    assert [queries.policy(f"shop/{n}").limit for n in range(4)] == [3, 2, 3, 2]
    assert Step.objects.filter(kind=Step.Kind.POLICY).count() == 3
    operator_client.post("/lab/adopt/", form | {"confirmed": "1"})
    assert Step.objects.filter(kind=Step.Kind.POLICY).count() == 3


def test_a_limit_tells_what_it_would_mend_before_it_is_in_force(operator_client, db, data_file):
    """Of the runs whose users had to repeat themselves, and of some others."""
    read = read_transcripts(data_file("tau_bench_airline.openai_chat.json").read_bytes())
    found = read.transcripts[40:80]
    list(services.import_all(replace(read, transcripts=found), TokenWindow(2_000), "tau-"))
    while services.compute_figures(asked("limit=4000").query, 60):
        pass
    mended = (
        "Limit 4,000: 1 incident instead of 3; 2,399 prompt tokens a call instead of 1,713 (+40 %)."
    )
    assert mended in words(operator_client.get("/lab/?limit=4000").content)
    rows = table(operator_client, "limit=4000")
    assert rows["today"][1:3] == ("2,000 tok", str(int(rows["today"][2])))
    assert mended in words(operator_client.post("/lab/adopt/", {"limit": "4000"}).content)
    counts = {point.limit: point.incidents for point in queries.fleet(asked("").query).points}
    assert [counts[limit] for limit in (1_000, 2_000, 4_000)] == [33, 3, 1]


def test_the_lab_has_the_conversations_of_a_flag(operator_client, db):
    create_and_add("over", MessageWindow(4), SAID)
    services.change("over", policy=TWO)
    create_and_add("fits", MessageWindow(9), SAID)
    html = operator_client.get(f"/lab/?{MESSAGES}&flagged=over_limit").content.decode()
    assert "1 conversation flagged “over limit”" in words(html.encode())
    assert 'name="flagged"' in html
    assert operator_client.get("/lab/?flagged=nonsense").status_code == 422
    form = {"kind": "message_window", "limit": "4", "flagged": "over_limit", "confirmed": "1"}
    operator_client.post("/lab/adopt/", form)
    assert [queries.policy(id).limit for id in ("over", "fits")] == [4, 9]


def test_many_conversations_change_in_slices(conversations):
    which = queries.MemoryFilter()
    assert services.adopt_policy(which, TokenWindow(99), seconds=0) == 1
    assert queries.adopting(which, TokenWindow(99)).differing == COUNT - 1
    assert services.adopt_policy(which, TokenWindow(99)) == COUNT - 1
    assert queries.adopting(which, TokenWindow(1)).over == COUNT


@pytest.mark.parametrize("is_readable", [True, False])
def test_one_that_cannot_be_changed_stops_no_other(operator_client, conversations, is_readable):
    if is_readable:
        Memory.objects.filter(pk="shop/0").update(imported=1)
    else:
        Message.objects.filter(memory="shop/0", seq=4).update(frame="{")
    form = {"kind": "token_window", "limit": "99", "estimator": "gpt-4", "confirmed": "1"}
    page = operator_client.post("/lab/adopt/", form).content.decode()
    assert f"{COUNT - 1} changed, 1 to go" in page
    page = operator_client.post("/lab/adopt/", form).content.decode()
    assert "1 conversation cannot be changed now" in page
    assert queries.policy("shop/1") == TokenWindow(99, estimator="gpt-4")


def test_what_a_policy_would_change(conversations):
    which, limit = queries.MemoryFilter(), MessageWindow(1)
    assert queries.adopting(which, TWO).differing == 0
    for other in (MessageWindow(2, low_water=0.5), MessageWindow(2, estimator="gpt-4")):
        assert queries.adopting(which, other).differing == COUNT
    assert queries.adopting(which, limit).over == COUNT
    assert queries.adopting(which, limit.metering()).over == 0, "it pushes nothing out"


def test_what_another_estimator_counts_is_not_foretold(operator_client, db):
    create_and_add("m", TokenWindow(245), [UserMessage("订单" * 20)] * 4)
    form = {"kind": "token_window", "limit": "245", "estimator": "gpt-4"}
    page = operator_client.post("/lab/adopt/", form).content.decode()
    assert "1 conversation will be counted by another estimator" in page
    assert "Nothing that is in memory now would leave" not in page


def test_without_a_limit_nothing_is_adopted(operator_client, db):
    assert operator_client.post("/lab/adopt/", {"confirmed": "1"})["Location"] == "/lab/"
    assert operator_client.get("/lab/adopt/").status_code == 405


@pytest.mark.parametrize("limit", [39, 41, 249, 250, 251, 999_999_999])
def test_a_typed_limit_is_taken_as_it_is(operator_client, lab, limit):
    """Also one between two of the grid, and one above the end of the curve."""
    text = lab(f"kind=token_window&limit={limit}")
    (found,) = queries.recall_of_stored(queries.MemoryFilter(), [TokenWindow(limit)]).rows
    assert f"{limit:,} tokens hold {explain.percent(found.held, found.recalls)} of what" in text
    assert f"chosen {limit:,} tok {found.lost} {found.nothing_lost} {found.said_again}" in text
    assert f"Use {limit:,} tokens for these 6 conversations?" in text
    assert "The figures are those" not in text
    assert operator_client.get(f"/lab/?kind=message_window&limit={limit}").status_code == 200


def test_options_that_need_a_larger_limit_are_told(lab):
    text = lab("kind=message_window&options=low_water=0.1&limit=5")
    words = "The figures are those of 10 messages, not of 5: these options need a larger limit."
    assert words in text


def test_limits_in_force_are_exact_and_short_chats_have_small_limits(operator_client, db):
    least = recall_curve(SAID).smallest_limit()
    assert least == 29, "no limit of the grid"
    for n in range(6):
        create_and_add(f"short/{n}", TokenWindow(least), SAID)
    services.compute_figures(asked("").query, 60)
    limits = [point.limit for point in queries.fleet(asked("").query).points]
    assert limits == [10, 20, 29, 30]
    page = words(operator_client.get("/lab/").content)
    assert "29 tokens hold 100 % of what the assistant needed" in page
    assert "Today’s 29 tokens already hold 100 %." in page


def test_old_questions_and_all_but_the_newest_are_forgotten(conversations, monkeypatch):
    monkeypatch.setattr("chatmemory.services.findings.QUESTIONS_KEPT", 2)
    for share in ("0.5", "0.6", "0.7"):
        services.compute_figures(asked(f"options=low_water={share}").query, 60)
    keys = RecallFigures.objects.values_list("key", flat=True).distinct()
    assert len(keys) == 3, "two, and the newest beside them"
    assert services.compute_figures(asked("options=low_water=0.7").query, 60) == 0
    RecallFigures.objects.update(computed_at=timezone.now() - timedelta(days=31))
    services.compute_figures(asked("options=low_water=0.8").query, 0)
    assert RecallFigures.objects.count() == 1
    RecallFigures.objects.update(computed_at=timezone.now() - timedelta(days=31))
    services.forget_old_figures()
    assert not RecallFigures.objects.exists()


def test_no_text_of_a_csv_is_taken_for_a_formula():
    texts = [f"{start}1+1" for start in "=+-@\t\uff1d\uff0b\uff0d\uff20"]
    content = csv_file(["name"], [{"name": text} for text in texts], "lab").content.decode()
    rows = csv.DictReader(io.StringIO(content))
    assert [row["name"] for row in rows] == [f"'{text}" for text in texts]


# The chart: its axis, and the labels of limits in force, which stand apart at any width

LAST = 3_000
LIMITS = st.lists(st.integers(1, 4_000), min_size=1, max_size=3, unique=True).map(sorted)
WIDTHS = st.sampled_from([NARROW, WIDE])


@given(st.integers(1, 2_000_000), st.integers(0, 10**9), WIDTHS)
def test_the_numbers_of_the_axis_are_round_few_and_not_cut(last, picked, width):
    curve = Curve(Fleet(1, 1, Sums(1), [LimitPoint(last, 0, 0, 0)]), LimitPoint(picked, 0, 0, 0))
    limits = [tick.limit for tick in curve.ticks]
    assert str(limits[0]).rstrip("0") in ("1", "2", "5")
    assert limits == list(range(limits[0], last + 1, limits[0]))
    assert min(last, 3) <= len(limits) <= TICKS
    for mark in (*curve.ticks, curve.picked):
        start, end = mark.label.span(width)
        assert start <= mark.x * width / 1_000 <= end <= width + MARGIN


def drawn(limits: list[int]) -> list[Mark]:
    return [Mark(limit, min(1_000.0, limit * 1_000 / LAST)) for limit in limits]


@given(LIMITS, WIDTHS, st.floats(1, 6))
def test_no_label_touches_another_or_the_line_of_another(limits, least, wider):
    """At the least width of a chart for which they are made, and at any larger one."""
    lines, width = drawn(limits), least * wider
    labels = labels_in(lines, least)
    spans = [label.span(width) for label in labels]
    assert all(end < start for (_, end), (start, _) in pairwise(spans))
    for start, end in spans:
        assert -MARGIN <= start < end <= width + MARGIN
        assert not [each for each in lines if start < each.x * width / 1_000 < end]
    if least == WIDE:
        named = ", ".join(label.text.removeprefix("today ") for label in labels)
        assert named == ", ".join(f"{limit:,}" for limit in limits), "each is named once"
