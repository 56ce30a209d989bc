"""One conversation under several policies: what the page says, its addresses and its forms."""

from __future__ import annotations

import csv
import io
import json
from urllib.parse import quote

import pytest

from chatmemory import AiMessage, MessageWindow, TokenWindow, UserMessage, queries, recall, services
from inspector import demo

PAGE = "/c/order-7741/compare/"
POLICIES = "?policy=message_window:3&policy=token_window:1000&policy=everything"


@pytest.fixture
def page(operator_client, db):
    demo.load()

    def get(query: str = POLICIES, status: int = 200) -> str:
        response = operator_client.get(PAGE + query)
        assert response.status_code == status
        return response.content.decode()

    return get


def told(page, query: str = POLICIES) -> list[dict]:
    return json.loads(page(f"{query}&as=json"))


def test_the_numbers_are_those_of_the_library(page):
    policies = [MessageWindow(3), TokenWindow(1_000), None]
    for row, found in zip(told(page), recall(queries.said("order-7741"), policies), strict=True):
        assert (row["recalls"], row["held"], row["calls"]) == (
            found.recalls,
            found.held,
            found.calls,
        )
        assert row["prompt_tokens"] == found.prompt_tokens
        assert row["reusable_tokens"] == found.reusable_tokens
        assert row["said_again"] == found.said_again


def test_csv_has_the_same_rows(page):
    rows = list(csv.DictReader(io.StringIO(page(f"{POLICIES}&as=csv"))))
    assert [row["policy"] for row in rows] == [
        "message_window:3",
        "token_window:1000",
        "everything",
    ]
    assert [int(row["held"]) for row in rows] == [row["held"] for row in told(page)]


@pytest.mark.parametrize("phrase", ["=1+1", "@SUM(A1)", "-2"])
def test_a_spreadsheet_takes_no_cell_for_a_formula(page, phrase):
    html = page(f"{POLICIES}&as=csv&phrase={quote(phrase)}")
    assert next(csv.DictReader(io.StringIO(html)))["phrase"] == f"'{phrase}"


def test_a_lost_fact_leads_to_the_limit_that_holds_it(page):
    html = page("?policy=message_window:3")
    link = next(part for part in html.split('"') if "phrase=A-1182" in part and "at=" in part)
    followed = page(link.replace("&amp;", "&").removeprefix(PAGE))
    (row,) = told(page, link.replace("&amp;", "&").removeprefix(PAGE))
    least = row["phrase_kept_by"]
    assert f"<b>{least} messages</b>" in followed
    at = int(link.partition("at=")[2].partition("&")[0])
    lost = {n: told(page, f"?policy=message_window:{n}&at={at}")[0]["lost"] for n in (3, least)}
    assert lost[least] < lost[3]


def test_a_phrase_is_followed_to_its_first_loss(page):
    first, second, everything = told(page, f"{POLICIES}&phrase=order+number+is+A-1182")
    assert first["phrase_forgotten_at"] == 27  # beside the system message there is room for two
    assert everything["phrase_forgotten_at"] is None
    assert "nobody said it" in page(f"{POLICIES}&phrase=nothing+like+it")
    assert second["phrase_kept_by"] > 0


def test_without_policies_those_worth_a_look_are_compared(page):
    rows = told(page, "?x=1")
    assert rows[0]["policy"] == "token_window:800"
    assert rows[-1]["policy"] == "everything"
    assert rows[1]["held"] >= 0.95 * rows[1]["recalls"]


def test_prices_are_those_of_the_user(page):
    assert "no price given" in page()
    html = page(f"{POLICIES}&input=2.5&cached=1,25&output=10&currency=€&source=the+bill&as_of=May")
    row = told(page, f"{POLICIES}&input=2.5&cached=1.25&output=10")[1]
    cost = (row["prompt_tokens"] - row["reusable_tokens"]) * 2.5 + row["reusable_tokens"] * 1.25
    cost = (cost + row["output_tokens"] * 10) / 1e6
    assert float(row["cost"]) == pytest.approx(cost)
    assert f"€{cost * 1_000:,.2f}" in html
    assert "the bill, as of May" in html
    assert "no price given" in page(f"{POLICIES}&input=-1&output=nan")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?policy=nonsense", "is not a policy"),
        ("?policy=message_window:0", "greater than zero"),
        ("?limit=5&kind=token_window&options=colour=red", "no option"),
        (
            "?policy=message_window:1,message_window:2,message_window:3,everything,message_window:5",
            "At most 4",
        ),
    ],
)
def test_what_is_wrong_with_an_address_is_said(page, query, words):
    assert words in page(query)


def test_the_form_adds_a_policy(page):
    rows = told(page, "?policy=message_window:3&kind=token_window&limit=500&options=")
    assert [row["policy"] for row in rows] == ["message_window:3", "token_window:500"]


def test_a_phrase_that_was_said_before_the_replayed_part_is_not_called_unsaid(page, monkeypatch):
    monkeypatch.setattr("chatmemory.queries.comparing.COMPARED_MAX", 10)
    html = page(f"{POLICIES}&phrase=order+number+is+A-1182")
    assert "not said in the latest 10 messages" in html
    assert "nobody said it" not in html
    assert "never said" not in html


def test_a_phrase_of_another_alphabet_is_followed_in_both_cases(page, operator_client):
    services.create("said", MessageWindow(5))
    services.add("said", [UserMessage("Grüße aus MÜNCHEN"), AiMessage("hm")])
    asked = "/c/said/compare/?policy=message_window:5&phrase=aus+münchen"
    html = operator_client.get(asked).content.decode()
    assert "nobody said it" not in html
    assert "said in #1" in html


@pytest.mark.parametrize("query", ["?at=0", "?at=999999", "?at=x", "?at=1&phrase=%00"])
def test_every_place_can_be_shown(page, query):
    assert "Who is in memory after" in page(query)


def test_an_empty_conversation_is_compared(operator_client, db):
    services.create("empty", None)
    html = operator_client.get("/c/empty/compare/").content.decode()
    assert "used none of them again" in html
    assert "Nothing is said yet." in html


def test_an_unknown_conversation_is_not_found(operator_client, db):
    assert operator_client.get("/c/nobody/compare/").status_code == 404
    assert (
        operator_client.post("/c/nobody/adopt/", {"policy": "message_window:3"}).status_code == 404
    )
    assert operator_client.get("/c/nobody/adopt/").status_code == 405
    assert operator_client.post(PAGE).status_code == 405


def test_of_a_long_conversation_the_latest_part_is_replayed(page, monkeypatch):
    monkeypatch.setattr("chatmemory.queries.comparing.COMPARED_MAX", 20)
    assert "The latest 20 of 58 messages" in page()
    assert told(page)[0]["messages"] == 20


def test_a_policy_is_adopted_after_a_confirmation(page, operator_client):
    form = {"policy": "token_window:4000"}
    asked = operator_client.post("/c/order-7741/adopt/", form).content.decode()
    assert "Use Token window 4,000 for order-7741?" in asked
    assert queries.policy("order-7741") == TokenWindow(800)
    answer = operator_client.post("/c/order-7741/adopt/", form | {"confirmed": "1"})
    assert answer["Location"] == "/c/order-7741/"
    assert queries.policy("order-7741") == TokenWindow(4_000)


def test_very_many_messages_are_counted_anew_only_if_asked(page, operator_client, monkeypatch):
    monkeypatch.setattr("chatmemory.queries.simulation.RECOUNTED_AT_ONCE", 5)
    form = {"policy": "message_window:2,estimator=gpt-4"}
    asked = operator_client.post("/c/order-7741/adopt/", form).content.decode()
    assert "gpt-4 counts differently from the estimator in force" in asked
    assert "at the next add" not in asked
    asked = operator_client.post("/c/order-7741/adopt/", form | {"recount": "1"}).content.decode()
    assert "would leave at the next add" in asked
    assert "counted anew" not in asked
    operator_client.post("/c/order-7741/adopt/", form | {"confirmed": "1"})
    assert queries.policy("order-7741").estimator == "gpt-4"


@pytest.mark.parametrize("text", ["", "everything", "nonsense", "token_window:0"])
def test_what_is_no_limit_is_not_adopted(page, operator_client, text):
    form = {"policy": text, "confirmed": "1"}
    assert operator_client.post("/c/order-7741/adopt/", form).status_code == 422
    assert queries.policy("order-7741") == TokenWindow(800)


def test_why_leads_to_the_comparison_with_the_limit_that_would_have_kept_it(page, operator_client):
    html = operator_client.get("/c/order-7741/?at=43&msg=25").content.decode()
    assert f"{PAGE}?policy=token_window%3A800&amp;policy=token_window%3A855" in html


def test_words_of_a_project_are_followed(operator_client, db, settings):
    settings.CHATMEMORY = {"FACT_TERMS": ["Lyon"]}
    services.create("m", MessageWindow(9))
    services.add("m", [UserMessage("To Lyon."), AiMessage("Lyon it is.")])
    (row,) = operator_client.get("/c/m/compare/?policy=message_window:1&as=json").json()
    assert (row["recalls"], row["held"]) == (1, 1)


def test_the_options_of_a_policy_are_shown(page):
    text = page("?policy=token_window:800&policy=token_window:800,low_water=0.6")
    assert text.count("down to 60") >= 2


def test_a_comparison_says_that_it_leaves_out_pins(operator_client, db):
    services.create("c", MessageWindow(5))
    services.add("c", [UserMessage(f"message {n}") for n in range(3)])
    words = "Messages were pinned in this conversation. The replays leave that out."
    assert words not in operator_client.get("/c/c/compare/").content.decode()
    services.pin("c", 1)
    assert words in operator_client.get("/c/c/compare/").content.decode()
