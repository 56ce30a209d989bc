"""The lab of many conversations: slices, what the page says, and adopting a limit."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    UserMessage,
    explain,
    queries,
    services,
    text_of,
)
from chatmemory.models import Memory, Message, RecallFigures, Step
from chatmemory.services import figures
from inspector.lab.asked import FleetAsked
from inspector.lab.downloads import csv_file

from .markup import tree

SAID = [UserMessage("Order A-1182."), AiMessage("Yes?"), UserMessage("Hm"), AiMessage("A-1182")]
COUNT = 6
MESSAGES = "kind=message_window"


@pytest.fixture
def conversations(db):
    for n in range(COUNT):
        services.create(f"shop/{n}", MessageWindow(2), {"team": "ab"[n % 2]})
        services.add(f"shop/{n}", SAID)


@pytest.fixture
def lab(operator_client, conversations):
    """The page after everything was computed, as text without markup."""

    def get(query: str = MESSAGES, compute: bool = True) -> str:
        if compute:
            services.compute_figures(asked(query).query, 60)
        html = operator_client.get(f"/lab/?{query}").content.decode()
        return " ".join(re.sub(r"<[^>]*>", " ", html.partition("<main")[2]).split())

    return get


def asked(query: str = MESSAGES) -> FleetAsked:
    return FleetAsked.read(dict(part.split("=", 1) for part in query.split("&")))


@pytest.mark.database
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite locks the whole file")
def test_conversations_are_locked_one_by_one(conversations):
    """Citus cannot lock rows of several conversations with one statement."""
    with CaptureQueriesContext(connection) as sent:
        services.compute_figures(asked().query, 60)
    locks = [each["sql"] for each in sent if "FOR UPDATE" in each["sql"]]
    assert len(locks) == COUNT
    assert not [sql for sql in locks if " IN (" in sql]


def test_the_answer_is_a_sentence(lab):
    assert "3 messages hold 100 % of what the assistant needed, for 100 % of the tokens" in lab()
    assert "It used 6 facts that had been said before" in lab()


def test_the_table_compares_with_today_and_with_everything(operator_client, lab):
    lab()
    html = operator_client.get(f"/lab/?{MESSAGES}&input=2.5&currency=€").content.decode()
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", html, re.DOTALL)
    cells = [re.sub(r"<[^>]*>", " ", row).split() for row in rows]
    today = next(row for row in cells if row[:1] == ["today"])
    assert today[1:5] == ["2", "msg", "6", "0"]
    everything = next(row for row in cells if row[:1] == ["everything"])
    (found,) = queries.recall_of_stored(queries.MemoryFilter(), [None])
    per_call = found.prompt_tokens / found.calls
    assert everything[-5:-1] == [f"{round(per_call)}", "tok", "100", "%"]
    assert everything[-1] == f"€{per_call * 1_000 * 2.5 / 1e6:,.2f}"


@pytest.mark.parametrize(
    ("part", "whole", "words"),
    [
        (0, 1_588, "0 %"),
        (1, 1_588, "1 %"),
        (8, 1_588, "1 %"),
        (1_500, 1_588, "94 %"),
        (1_582, 1_588, "99 %"),
        (1_587, 1_588, "99 %"),
        (1_588, 1_588, "100 %"),
        (0, 0, ""),
    ],
)
def test_all_and_nothing_are_said_of_no_other_share(part, whole, words):
    assert explain.percent(part, whole) == words


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
        services.create(f"long/{n}", MessageWindow(2))
        services.add(f"long/{n}", [SAID[0], *SAID[1:3] * 2, SAID[3]])
    services.create("replaced", MessageWindow(9))
    services.add("replaced", [SystemMessage("Order A-1182."), SystemMessage("Hm"), *SAID[1:]])
    services.compute_figures(asked().query, 60)
    rows = table(operator_client, f"{MESSAGES}&input=2.5&limit=3")
    assert rows["90 %"][:3] == ("", "5 msg", "1")
    assert rows["95 %"] == rows["100 %"] == ("", "no limit", "", "")
    assert rows["chosen"][:3] == ("is-pick", "3 msg", "7")


def test_a_cost_has_a_column_if_there_is_a_price_and_a_currency_in_any_case(
    operator_client, conversations
):
    services.compute_figures(asked().query, 60)

    def heads(query: str) -> list[str]:
        page = tree(operator_client.get(f"/lab/?{MESSAGES}{query}").content.decode())
        return [" ".join(head.itertext()) for head in page.findall(".//thead/tr/th")]

    assert heads("")[-1] == "Of everything"
    assert heads("&input=0")[-1] == "1,000 calls source and date not given"
    for query, currency in (("", "$"), ("&currency=€", "€")):
        rows = table(operator_client, f"{MESSAGES}&input=2.5{query}")
        assert {cost[:1] for *_, cost in rows.values() if cost} == {currency}
    html = operator_client.get(f"/lab/?{MESSAGES}").content.decode()
    assert 'name="currency" value="$"' in html
    assert "currency=" not in html


def test_conversations_whose_limit_is_only_measured_are_not_those_of_today(operator_client, db):
    for name, policy in (("measured", MessageWindow(2).metering()), ("held", MessageWindow(1))):
        services.create(name, policy)
        services.add(name, SAID)
    services.compute_figures(asked().query, 60)
    rows = table(operator_client, MESSAGES)
    assert rows["today"][:3] == ("is-today loses", "1 msg", "1")
    services.change("held", policy=MessageWindow(9))
    services.compute_figures(asked().query, 60)
    rows = table(operator_client, MESSAGES)
    assert rows["today"][:3] == ("is-today", "9 msg", "0")
    services.delete("held")
    page = operator_client.get(f"/lab/?{MESSAGES}").content.decode()
    assert "3 messages</b> hold" in page
    assert "today" not in page


def test_it_does_not_hold_100_percent_while_a_fact_is_lost(lab):
    services.create("many", MessageWindow(2))
    services.add("many", [SAID[0]] + [AiMessage("A-1182")] * 300)
    text = lab(f"{MESSAGES}&limit=1")
    assert "1 message holds 98 % of what the assistant" in text
    services.add("many", [AiMessage("A-1182")] * 900)
    assert "99 % of what the assistant" in lab(f"{MESSAGES}&limit=1")
    assert "At this limit 6 of them had already left." in lab(f"{MESSAGES}&limit=1")


def test_it_is_computed_slice_by_slice(operator_client, conversations):
    first = operator_client.get("/lab/").content.decode()
    assert f"0 of {COUNT} conversations" in first
    assert services.compute_figures(asked("kind=token_window").query, 0) == COUNT - 1
    page = operator_client.get("/lab/").content.decode()
    assert f"1 of {COUNT} conversations" in page
    assert 'hx-trigger="load, submit"' in page
    assert "<progress" in page
    stopped = operator_client.get("/lab/?stop=1").content.decode()
    assert 'hx-trigger="submit"' in stopped
    answer = operator_client.post("/lab/", {"kind": "token_window"})
    assert answer["Location"] == "/lab/"
    assert "<progress" not in operator_client.get("/lab/").content.decode()


def test_htmx_gets_the_page_with_the_next_slice(operator_client, conversations):
    answer = operator_client.post("/lab/", {}, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert b"hold" in answer.content


def test_what_is_computed_is_kept_until_the_conversation_changes(conversations):
    query = asked().query
    assert services.compute_figures(query, 60) == 0
    services.add("shop/1", [AiMessage("A-1182 again")])
    assert services.compute_figures(query, 0) == 0
    assert queries.fleet(query).sums.recalls == COUNT + 1
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
    compute = figures.figures_of

    def meanwhile(*arguments):
        services.add("shop/0", [UserMessage("one more")])
        monkeypatch.setattr(figures, "figures_of", compute)
        return compute(*arguments)

    monkeypatch.setattr(figures, "figures_of", meanwhile)
    services.compute_figures(asked().query, 60)
    assert set(RecallFigures.objects.values_list("memory_id", flat=True)) == {
        f"shop/{n}" for n in range(1, COUNT)
    }


def test_a_conversation_that_cannot_be_read_is_told(lab):
    Message.objects.filter(memory_id="shop/1", seq=1).update(frame="{")
    assert "1 conversation could not be read and is left out." in lab()
    Message.objects.filter(memory_id="shop/2", seq=1).update(frame="{")
    RecallFigures.objects.all().delete()
    assert "2 conversations could not be read and are left out." in lab()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("label=team:a", "3 conversations labelled team:a"),
        ("prefix=shop/1", "1 conversation beginning with shop/1"),
        ("q=A-1182", "6 conversations with “A-1182”"),
        ("sample=2&seed=7", "a sample of 2 of the 6 conversations of this site"),
        ("since=2999-01-01", "No conversation matches."),
        ("since=soon", "A date is written as"),
        ("options=colour=red", "no option"),
        ("estimator=nobody", "nobody"),
        ("options=meters_only=true", "With meters_only nothing is lost at any limit"),
        ("kind=nothing&limit=x&sample=-1", "6 conversations of this site"),
    ],
)
def test_conversations_are_chosen(operator_client, conversations, query, words):
    html = operator_client.get(f"/lab/?{query}").content.decode()
    assert words in " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_a_sample_is_drawn_by_its_seed(conversations):
    def drawn(seed: int) -> list[str]:
        query = asked(f"sample=3&seed={seed}").query
        services.compute_figures(query, 60)
        return sorted(RecallFigures.objects.values_list("memory_id", flat=True))

    first = drawn(1)
    assert len(first) == 3
    assert drawn(1) == first
    assert len({*map(tuple, map(drawn, range(2, 9)))}) > 1


def test_the_conversations_that_lose_most_lead_to_their_comparison(operator_client, lab):
    text = lab(f"{MESSAGES}&limit=2")
    assert "Lost most at 2 messages" in text
    assert "1 of 1" in text
    html = operator_client.get(f"/lab/?{MESSAGES}&limit=2").content.decode()
    link = re.search(r'href="(/c/shop~2F\d/compare/[^"]*)"', html)
    page = operator_client.get(link[1].replace("&amp;", "&")).content.decode()
    assert "still hold “A-1182”" in page


def test_users_who_had_to_repeat_themselves_are_listed(operator_client, lab):
    services.add("shop/4", [UserMessage("Hm"), UserMessage("Oh"), UserMessage("It was A-1182")])
    services.add("shop/5", [UserMessage("A-1182 it is")])
    text = lab()
    assert "shop/4 A-1182 said in #4, forgotten, said again in #7" in text
    assert "shop/5 A-1182" not in text


def test_csv_has_the_curve(operator_client, lab):
    lab()
    text = operator_client.get(f"/lab/?{MESSAGES}&as=csv").content.decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["limit"], row["held"], row["nothing_lost"]) for row in rows] == [
        ("1", "0", "0"),
        ("2", "0", "0"),
        ("3", "6", "6"),
    ]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("options=bogus=1", "No option"),
        ("since=31.01.2026", "A date is written as 2026-01-31."),
        ("kind=nothing", "The kind of a policy is message_window or token_window"),
        ("sample=ten", "Sample must be a whole number"),
        ("limit=0", "Limit must be greater than zero"),
        ("cached=1000000", "The cached price must be a number below 1,000,000, such as 2.50"),
    ],
)
def test_no_numbers_are_sent_that_were_not_asked_for(operator_client, lab, query, words):
    answer = operator_client.get(f"/lab/?{query}&as=csv")
    assert (answer.status_code, answer["Content-Type"]) == (422, "text/plain; charset=utf-8")
    assert words.lower() in answer.content.decode().lower()


@pytest.mark.parametrize("limit", ["", "&limit=4000"])
def test_nothing_used_again_is_said_and_no_limit_is_offered(operator_client, db, limit):
    services.create("m", MessageWindow(2))
    services.add("m", [*SAID[:3], AiMessage("Well"), UserMessage("It was A-1182")])
    operator_client.post("/lab/", {})
    html = operator_client.get(f"/lab/?{limit}").content.decode()
    assert "The assistant used no fact of earlier messages again." in html
    assert "said in <" not in html
    assert "Facts still held" not in html
    assert "Preview the change" not in html
    assert "Lost most" not in html
    assert "said in #1, forgotten, said again in #5" in html
    assert list(table(operator_client, limit)) == ["today", "everything"]


def test_nothing_has_no_shares(operator_client, db):
    services.create("m", MessageWindow(2))
    services.add("m", [UserMessage("hi")])
    operator_client.post("/lab/", {})
    (body,) = tree(operator_client.get("/lab/").content.decode()).iterfind(".//tbody")
    assert "everything" in " ".join(body.itertext())
    assert "%" not in " ".join(body.itertext())
    assert "no prompts" in operator_client.get("/c/m/compare/?policy=everything").content.decode()


def test_a_limit_is_adopted_for_a_label_after_a_preview(operator_client, conversations):
    form = {"kind": "message_window", "limit": "3", "label": "team:a"}
    preview = operator_client.post("/lab/adopt/", form).content.decode()
    assert "Use Message window 3 for 3 conversations?" in preview
    assert queries.policy("shop/0") == MessageWindow(2)
    answer = operator_client.post("/lab/adopt/", form | {"confirmed": "1"})
    assert "label=team%3Aa" in answer["Location"]
    assert [queries.policy(f"shop/{n}").limit for n in range(4)] == [3, 2, 3, 2]
    assert Step.objects.filter(kind=Step.Kind.POLICY).count() == 3
    operator_client.post("/lab/adopt/", form | {"confirmed": "1"})
    assert Step.objects.filter(kind=Step.Kind.POLICY).count() == 3


def test_many_conversations_change_in_slices(conversations):
    which = queries.MemoryFilter()
    assert services.adopt_policy(which, TokenWindow(99), seconds=0) == 1
    assert queries.adopting(which, TokenWindow(99)).differing == COUNT - 1
    assert services.adopt_policy(which, TokenWindow(99)) == COUNT - 1
    assert queries.adopting(which, TokenWindow(1)).over == COUNT


def test_one_that_cannot_be_read_stops_no_other(operator_client, conversations):
    Message.objects.filter(memory="shop/0", seq=4).update(frame="{")
    form = {"kind": "token_window", "limit": "99", "estimator": "gpt-4", "confirmed": "1"}
    page = operator_client.post("/lab/adopt/", form).content.decode()
    assert f"{COUNT - 1} changed, 1 to go" in page
    page = operator_client.post("/lab/adopt/", form).content.decode()
    assert "1 conversation cannot be changed now" in page
    assert queries.policy("shop/1") == TokenWindow(99, estimator="gpt-4")


def test_one_that_is_being_imported_stops_no_other(conversations):
    Memory.objects.filter(pk="shop/0").update(imported=1)
    assert services.adopt_policy(queries.MemoryFilter(), TokenWindow(99)) == COUNT - 1


@pytest.mark.parametrize(
    "other", [MessageWindow(2, low_water=0.5), MessageWindow(2, estimator="gpt-4")]
)
def test_another_option_or_estimator_makes_another_policy(conversations, other):
    assert queries.adopting(queries.MemoryFilter(), MessageWindow(2)).differing == 0
    assert queries.adopting(queries.MemoryFilter(), other).differing == COUNT


def test_what_another_estimator_counts_is_not_foretold(operator_client, db):
    services.create("m", TokenWindow(245))
    services.add("m", [UserMessage("订单" * 20)] * 4)
    form = {"kind": "token_window", "limit": "245", "estimator": "gpt-4"}
    page = operator_client.post("/lab/adopt/", form).content.decode()
    assert "1 conversation will be counted by another estimator" in page
    assert "Nothing that is in memory now would leave" not in page


def test_a_policy_that_only_measures_pushes_nothing_out(conversations):
    which, limit = queries.MemoryFilter(), MessageWindow(1)
    assert queries.adopting(which, limit).over == COUNT
    assert queries.adopting(which, limit.metering()).over == 0


@pytest.mark.parametrize(
    "wrong", [{"options": "low_watr=0.6"}, {"since": "2026-13-40"}, {"estimator": "nobody"}]
)
def test_nothing_is_adopted_where_the_question_is_wrong(operator_client, conversations, wrong):
    before = [row.policy for row in queries.all_memories(queries.MemoryFilter())]
    form = {"limit": "777", "confirmed": "1", **wrong}
    assert operator_client.post("/lab/adopt/", form).status_code == 422
    assert [row.policy for row in queries.all_memories(queries.MemoryFilter())] == before


def test_without_a_limit_nothing_is_adopted(operator_client, conversations):
    assert operator_client.post("/lab/adopt/", {"confirmed": "1"})["Location"] == "/lab/"
    assert operator_client.get("/lab/adopt/").status_code == 405


def test_the_answer_for_real_conversations(operator_client, data_file, db):
    """The figures of the design: 4,000 tokens hold 95 % for 91 % of the tokens."""
    from chatmemory.formats import read_transcripts
    from chatmemory.services.imports import import_all

    content = data_file("tau_bench_airline.openai_chat.json").read_bytes()
    reading = read_transcripts(content)
    for _ in import_all(reading, TokenWindow(1_000), "tau-"):
        pass
    query = asked("kind=token_window").query
    services.compute_figures(query, 60)
    found = queries.fleet(query)
    shares = (0.9, 0.95, 0.99, 1.0)
    points = [queries.smallest_limit(found.points, found.sums.recalls, share) for share in shares]
    assert [point.limit for point in points] == [3_250, 4_000, 6_500, 7_500]
    calls = found.sums.calls
    assert [round(point.prompts / calls) for point in points] == [2_264, 2_434, 2_666, 2_679]
    assert [found.sums.recalls - point.held for point in points] == [143, 76, 12, 0]
    assert [point.lossless for point in points] == [75, 89, 99, 100]
    assert round(found.sums.everything / calls) == 2_688


def uploaded(client, content: bytes, **form):
    file = SimpleUploadedFile("chat.json", content)
    response = client.post("/lab/file/", {"file": file, **form})
    return response.status_code, " ".join(
        re.sub(r"<[^>]*>", " ", response.content.decode()).split()
    )


def test_a_file_is_read_and_not_stored(operator_client, db):
    roles = ("user", "assistant")
    said = [{"role": roles[n % 2], "content": text_of(each)} for n, each in enumerate(SAID)]
    content = json.dumps([{"messages": said}] * 2).encode()
    status, text = uploaded(operator_client, content, kind="message_window", limit="2")
    assert status == 200
    assert "2 conversations in chat.json" in text
    assert "2 messages hold 0 % of what the assistant needed" in text
    assert "A-1182 , said in #1, needed in #4" in text
    assert "Preview the change" not in text
    assert not queries.any_memory()
    assert not RecallFigures.objects.exists()


def test_the_page_of_a_file_asks_for_the_file_and_not_for_conversations_of_the_site(
    operator_client, db
):
    roles = ("user", "assistant")
    said = [{"role": roles[n % 2], "content": text_of(each)} for n, each in enumerate(SAID)]
    asked = {"kind": "message_window", "limit": "2", "options": "low_water=1", "input": "2.5"}
    file = SimpleUploadedFile("chat.json", json.dumps(said).encode())
    html = operator_client.post("/lab/file/", {"file": file, "q": "shop", **asked}).content.decode()
    main = tree(html).find(".//main")
    assert [form.get("action") for form in main.iter("form")] == ["/lab/file/"]
    assert {link.get("href") for link in main.iter("a")} == {"/lab/", "#lost", "/lab/compare/"}
    fields = {each.get("name"): each.get("value") for each in main.iter("input")}
    (kind,) = main.findall(".//option[@selected]")
    asked_again = {name: fields.get(name) for name in asked} | {"kind": kind.get("value")}
    assert asked_again == asked
    assert "q" not in fields


@pytest.mark.parametrize("refused", [1, 2, 9])
def test_conversations_of_a_file_that_are_refused_are_told(operator_client, db, refused):
    said = [{"type": "USER", "contents": [{"type": "TEXT", "text": "Order A-1182"}]}]
    robots = [{"id": f"r{n}", "messages": [{"type": "USER"}]} for n in range(refused)]
    content = json.dumps([*robots, {"id": "good", "messages": said}]).encode()
    status, text = uploaded(operator_client, content)
    assert status == 200
    assert "1 conversation in chat.json" in text
    number = "1 conversation could not be read and is left out."
    numbers = f"{refused} conversations could not be read and are left out."
    assert (number if refused == 1 else numbers) in text
    assert "conversation 1 (r0): " in text
    assert ("conversation 2 (r1): " in text) is (refused > 1)
    assert ("and 4 more" in text) is (refused == 9)


def test_a_file_whose_conversations_are_all_refused_says_why(operator_client, db):
    robots = [{"id": f"r{n}", "messages": [{"type": "USER"}]} for n in range(2)]
    status, text = uploaded(operator_client, json.dumps(robots).encode())
    assert status == 422
    assert "Conversation 1 (r0): " in text


@pytest.mark.parametrize(
    ("content", "words"), [(b"nonsense", "line 1"), (b"[]", "No conversation"), (b"", "Choose")]
)
def test_what_is_wrong_with_a_file_is_said(operator_client, db, content, words):
    status, text = uploaded(operator_client, content)
    assert status == 422
    assert words in text


def test_a_file_with_too_much_is_refused(operator_client, db, monkeypatch):
    monkeypatch.setattr("chatmemory.queries.lab.READ_AT_ONCE", 1)
    content = json.dumps([{"role": "user", "content": "a"}] * 2).encode()
    assert "The file has 2 messages" in uploaded(operator_client, content)[1]


@pytest.mark.parametrize(
    ("limit", "used"),
    [("1", "250"), ("249", "250"), ("250", "250"), ("251", "251"), ("999999999", "999,999,999")],
)
def test_a_limit_above_the_curve_is_taken_as_it_is(operator_client, lab, limit, used):
    """The curve ends at 250 tokens, from which on nothing changes."""
    text = lab(f"kind=token_window&limit={limit}")
    assert f"{used} tokens hold 100 % of what" in text
    assert f"chosen {used} tok 0 6" in text
    assert f"Use {used} tokens for these 6 conversations?" in text
    is_said = "The figures are those of 250 tokens" in text
    assert is_said is (int(limit) < 250)
    assert operator_client.get(f"/lab/?kind=message_window&limit={limit}").status_code == 200


def test_a_limit_between_two_of_the_grid_says_whose_figures_are_shown(operator_client, lab):
    services.add("shop/1", [AiMessage("word " * 600), AiMessage("A-1182")])
    text = lab("kind=token_window&limit=387")
    assert "250 tokens hold" in text
    assert (
        "The figures are those of 250 tokens, not of 387: limits are computed on a grid of 250 "
        "tokens." in text
    )
    assert "Use 250 tokens for" in text
    assert "The figures are those" not in lab("kind=token_window&limit=500")


def test_a_limit_that_the_options_do_not_allow_is_told(operator_client, lab):
    text = lab("kind=message_window&options=low_water=0.1&limit=5")
    words = "The figures are those of 10 messages, not of 5: these options need a larger limit."
    assert words in text


def test_a_limit_that_does_not_go_with_the_options_is_not_adopted(operator_client, lab):
    form = {"kind": "token_window", "options": "low_water=0.5", "limit": "5", "confirmed": "1"}
    assert operator_client.post("/lab/adopt/", form).status_code == 422
    assert queries.policy("shop/0") == MessageWindow(2)


def test_old_questions_and_all_but_the_newest_are_forgotten(conversations, monkeypatch):
    monkeypatch.setattr("chatmemory.services.figures.QUESTIONS_KEPT", 2)
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


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
)
def test_no_text_of_a_csv_is_taken_for_a_formula(start):
    content = csv_file(["name"], [{"name": f"{start}1+1"}], "lab").content.decode()
    assert list(csv.DictReader(io.StringIO(content))) == [{"name": f"'{start}1+1"}]
