"""One conversation under several policies: the page, its addresses and its forms."""

from __future__ import annotations

import csv
import io
import json
import re
from html import escape, unescape
from urllib.parse import parse_qs, quote

import pytest

from chatmemory import AiMessage, MessageWindow, SystemMessage, TokenWindow, UserMessage, services
from chatmemory.reading import conversations, history, windows
from chatmemory.reading.finding import MemoryFilter
from inspector.rooms.lab.stored import recall_of_stored
from tests.conversations import create_and_add, numbered, users
from tests.inspector.markup import tree, words

PAGE = "/c/order-7741/compare/"
NUMBERS = (
    *("recalls", "held", "calls", "prompt_tokens", "reusable_tokens"),
    *("user_repeated", "call_repeated"),
)
POLICIES = "?policy=message_window:3&policy=token_window:1000&policy=everything"


pytestmark = pytest.mark.usefixtures("demo_conversations_of_the_module")


@pytest.fixture
def page(operator_client):
    def get(query: str = POLICIES, status: int = 200) -> str:
        response = operator_client.get(PAGE + query)
        assert response.status_code == status
        return response.content.decode()

    return get


def hidden_fields(response) -> dict[str, str]:
    """What the hidden fields of a page's sheet send."""
    (sheet,) = tree(response.content.decode()).iterfind(".//main")
    hidden = sheet.iterfind(".//input[@type='hidden']")
    return {field.get("name"): field.get("value") for field in hidden}


def rows_of(page, query: str = POLICIES) -> list[dict]:
    return json.loads(page(f"{query}&as=json"))


def test_the_numbers_equal_those_of_commands_and_the_api(page):
    policies = [MessageWindow(3), TokenWindow(1_000), None]
    which = MemoryFilter(id_prefix="order-7741")
    for row, found in zip(rows_of(page), recall_of_stored(which, policies).rows, strict=True):
        for name in NUMBERS:
            assert row[name] == getattr(found, name), name


def test_csv_has_the_same_rows(page):
    rows = list(csv.DictReader(io.StringIO(page(f"{POLICIES}&as=csv"))))
    assert [(row["policy"], int(row["held"])) for row in rows] == [
        (row["policy"], row["held"]) for row in rows_of(page)
    ]


def test_a_spreadsheet_takes_no_cell_for_a_formula(page):
    for phrase in ("=1+1", "@SUM(A1)", "-2"):
        html = page(f"{POLICIES}&as=csv&phrase={quote(phrase)}")
        assert next(csv.DictReader(io.StringIO(html)))["phrase"] == f"'{phrase}"


def test_a_lost_fact_leads_to_the_limit_that_holds_it(page):
    html = page("?policy=message_window:3")
    link = next(part for part in html.split('"') if "phrase=A-1182" in part and "at=" in part)
    query = unescape(link).removeprefix(PAGE)
    followed, (row,) = page(query), rows_of(page, query)
    least = row["phrase_kept_by"]
    assert f"<b>A limit of {least} messages</b>" in followed
    at = int(link.partition("at=")[2].partition("&")[0])
    lost = {n: rows_of(page, f"?policy=message_window:{n}&at={at}")[0]["lost"] for n in (3, least)}
    assert lost[least] < lost[3]


def test_a_phrase_is_followed_to_its_first_loss(page):
    first, second, everything = rows_of(page, f"{POLICIES}&phrase=order+number+is+A-1182")
    assert first["phrase_forgotten_at"] == 27  # beside the system message there is room for two
    assert everything["phrase_forgotten_at"] is None
    assert "nobody said it" in page(f"{POLICIES}&phrase=nothing+like+it")
    assert second["phrase_kept_by"] > 0


def test_a_limit_to_try_has_the_options_of_its_policy(operator_client, db):
    said = users("x", "A-1182 " + "word " * 60)
    create_and_add("m", TokenWindow(20, oversized="keep"), said)
    url = "/c/m/compare/?policy=token_window:20,oversized%3Dkeep&phrase=A-1182"
    html = operator_client.get(url).content.decode()
    (offer,) = re.findall(r'href="([^"]*)"[^>]*>\s*<span>Compare with this limit', html)
    asked = parse_qs(unescape(offer).partition("?")[2])
    assert asked["policy"] == ["token_window:20,oversized=keep", "token_window:1,oversized=keep"]


def test_an_equal_system_message_is_ignored_and_not_forgotten(operator_client, db):
    create_and_add("m", MessageWindow(100), [SystemMessage("Be brief."), UserMessage("a")])
    services.clear_messages("m")
    services.add("m", [SystemMessage("Be brief."), UserMessage("b")])
    url = "/c/m/compare/?policy=message_window:100&policy=message_window:2"
    html = operator_client.get(url).content.decode()
    assert "ignored" in html
    assert "left at #3" not in html
    rows = json.loads(operator_client.get(f"{url}&as=json").content)
    assert [row["forgotten"] for row in rows] == [0, 1]


def test_without_policies_those_worth_a_look_are_compared(page):
    rows = rows_of(page, "?x=1")
    assert rows[0]["policy"] == "token_window:800"
    assert rows[-1]["policy"] == "everything"
    assert rows[1]["held"] >= 0.95 * rows[1]["recalls"]


def test_prices_can_be_given_by_the_user(page):
    assert "Cost of 1,000" not in page()
    html = page(
        f"{POLICIES}&provider=own&input=2.5&cached=1,25&output=10&currency=€&source=the+bill&as_of=May"
    )
    row = rows_of(page, f"{POLICIES}&provider=own&input=2.5&cached=1.25&output=10")[1]
    cost = (row["prompt_tokens"] - row["reusable_tokens"]) * 2.5 + row["reusable_tokens"] * 1.25
    cost = (cost + row["output_tokens"] * 10) / 1e6
    assert float(row["cost"]) == pytest.approx(cost)
    assert f"€{cost * 1_000:,.2f}" in html
    assert "the bill, as of May" in html
    assert "Cost of 1,000" not in page(f"{POLICIES}&input=-1&output=nan", 422)
    assert "$" in page(f"{POLICIES}&input=2.5").partition("Cost of 1,000")[2]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?policy=nonsense", "is not a policy"),
        ("?policy=token_window:30OO", "limit of token_window must be a whole number"),
        ("?policy=message_window:0", "greater than zero"),
        ("?policy=everything&limit=5&kind=token_window&options=colour=red", "no option"),
        (
            "?policy=message_window:1,message_window:2,message_window:3,everything,message_window:5",
            "At most 4",
        ),
        ("?" + "&".join(f"policy=message_window:{n}" for n in range(1, 7)), "At most 4"),
        (f"{POLICIES}&at=last", "After must be a whole number with at most 9 digits"),
        (f"{POLICIES}&input=cheap", "The input price must be a number"),
        (f"{POLICIES}&output=-1", "The output price must be a number below 1,000,000"),
    ],
)
def test_what_is_wrong_with_an_address_is_said_and_no_other_numbers_are_sent(page, query, words):
    assert words in page(query, status=422)
    for form in ("csv", "json"):
        answer = page(f"{query}&as={form}", status=422)
        assert words in answer
        assert "<" not in answer


FULL = "&".join(f"policy=message_window:{n}" for n in range(1, 5))


@pytest.mark.parametrize(
    ("policies", "options"),
    [("policy=everything", "low_water=abc"), (FULL, "low_water=abc"), (FULL, "low_water=0.5")],
)
def test_a_policy_that_is_refused_stays_in_the_form(page, policies, options):
    html = page(f"?{policies}&kind=token_window&limit=3&options={options}", 422)
    form = html.partition("<fieldset")[2].partition("</fieldset>")[0]
    assert re.search(r'value="token_window"\s+selected', form)
    assert re.search(r'name="limit"\s+min="1"\s+value="3"', form)
    assert f'value="{options}"' in form
    assert 'value="3"' not in page("?policy=nonsense&kind=message_window&limit=3", 422)


def test_the_tokens_in_memory_are_the_same_as_on_the_conversation(page, operator_client):
    def token_totals(query: str) -> list[str]:
        return re.findall(r'<span class="n">([0-9,]+) tok</span>', page(query))

    load = f"{windows.window('order-7741').load:,}"
    assert token_totals("?policy=token_window:800") == [load]
    assert load in operator_client.get("/c/order-7741/").content.decode()
    everything = conversations.memory("order-7741").history_tokens + 3
    assert token_totals("?policy=everything") == [f"{everything:,}"]
    assert token_totals("?policy=token_window:1&policy=everything&at=0") == ["0", "0"]


def test_the_form_adds_a_policy(page):
    rows = rows_of(page, "?policy=message_window:3&kind=token_window&limit=500&options=")
    assert [row["policy"] for row in rows] == ["message_window:3", "token_window:500"]


def test_of_a_long_conversation_the_latest_part_is_replayed(page, monkeypatch):
    """A phrase that was said before it is not called unsaid."""
    monkeypatch.setattr("inspector.rooms.simulation.comparison.MEASURED_MAX", 10)
    html = page(f"{POLICIES}&phrase=order+number+is+A-1182")
    assert "The latest 10 of 58 messages" in html
    assert "not said in the latest 10 messages" in html
    assert "nobody said it" not in html
    assert ">not said<" not in html
    assert rows_of(page)[0]["messages"] == 10


def test_an_empty_conversation_is_compared(operator_client, db):
    services.create("empty", None)
    html = operator_client.get("/c/empty/compare/").content.decode()
    assert "No advice: fewer than three model calls" in html
    assert "No message at this point." in html
    assert "no prompts" in html
    assert "accepts" not in html


def test_everything_is_as_large_as_the_whole_history_of_other_pages(operator_client, db):
    create_and_add("c", TokenWindow(30), numbered(8))
    load = conversations.memory("c").history_load
    assert f"Everything {load} tok" in words(operator_client.get("/c/c/compare/").content)


def test_one_message_and_one_call_are_not_called_messages_and_calls(operator_client, db):
    create_and_add("c", MessageWindow(3), [AiMessage("Hello")])
    page = words(operator_client.get("/c/c/compare/").content)
    assert "of 1 message " in page
    assert "average of 1 model call " in page
    assert "1 messages" not in page


def test_an_unknown_conversation_is_not_found(operator_client, db):
    get, post = operator_client.get, operator_client.post
    assert get("/c/nobody/compare/").status_code == 404
    assert post("/c/nobody/adopt/", {"policy": "message_window:3"}).status_code == 404
    assert get("/c/nobody/adopt/").status_code == post(PAGE).status_code == 405


ADOPT = "/c/order-7741/adopt/"
FORM = {"policy": "token_window:4000"}


def test_a_policy_is_adopted_after_a_confirmation(page, operator_client):
    asked = operator_client.post(ADOPT, FORM).content.decode()
    assert "Change the policy of order-7741 to Token window 4,000?" in asked
    assert conversations.policy("order-7741") == TokenWindow(800)
    answer = operator_client.post(ADOPT, FORM | {"confirmed": "1"})
    assert answer["Location"] == "/c/order-7741/"
    assert conversations.policy("order-7741") == TokenWindow(4_000)


def test_the_way_back_from_adopting_leads_to_the_same_comparison(page, operator_client):
    asked = "policy=message_window%3A3&policy=everything&at=20&phrase=A-1182&input=2.5"
    html = page(f"?{asked}")
    form = dict(re.findall(r'type="hidden" name="(policy|back)" value="([^"]*)"', html))
    assert unescape(form["back"]) == asked
    form = {"policy": "message_window:3", "back": asked, "recount": "1"}
    sheet = operator_client.post(ADOPT, form).content.decode()
    assert f'href="{PAGE}?{escape(asked)}"' in sheet
    assert f'name="back" value="{escape(asked)}"' in sheet
    del form["back"]
    assert f'href="{PAGE}"' in operator_client.post(ADOPT, form).content.decode()


def test_settings_that_others_changed_are_not_replaced_unseen(page, operator_client):
    seen = hidden_fields(operator_client.post(ADOPT, FORM))
    services.change("order-7741", policy=TokenWindow(600))
    refused = operator_client.post(ADOPT, seen | {"confirmed": "1"})
    assert refused.status_code == 412
    assert "Someone changed the policy meanwhile." in refused.content.decode()
    assert "come back" in refused.content.decode()
    assert conversations.policy("order-7741") == TokenWindow(600)
    operator_client.post(ADOPT, hidden_fields(refused) | {"confirmed": "1"})
    assert conversations.policy("order-7741") == TokenWindow(4_000)


def test_messages_and_labels_of_others_keep_no_policy_from_being_adopted(page, operator_client):
    seen = hidden_fields(operator_client.post(ADOPT, FORM))
    services.add("order-7741", [UserMessage("one more")])
    services.change("order-7741", labels={"team": "sales"})
    assert operator_client.post(ADOPT, seen | {"confirmed": "1"}).status_code == 302
    assert conversations.policy("order-7741") == TokenWindow(4_000)


def test_no_policy_is_adopted_where_the_client_decides(operator_client, db):
    services.create("theirs", None)
    answer = operator_client.post("/c/theirs/adopt/", FORM | {"confirmed": "1"})
    assert answer.status_code == 422
    assert "Only your client can change what memory holds" in answer.text
    assert conversations.policy("theirs") is None


def test_sending_everything_is_adopted_as_a_limit_that_only_measures(page, operator_client):
    operator_client.post(ADOPT, {"policy": "everything", "confirmed": "1"})
    assert conversations.policy("order-7741") == TokenWindow(800).metering()


def test_very_many_messages_are_counted_anew_only_if_asked(page, operator_client, monkeypatch):
    monkeypatch.setattr("chatmemory.reading.simulation.RECOUNTED_AT_ONCE", 5)
    form = {"policy": "message_window:2,estimator=gpt-4"}
    asked = operator_client.post(ADOPT, form).content.decode()
    assert "The new policy uses another token estimator, gpt-4." in asked
    assert "at the next add" not in asked
    asked = operator_client.post(ADOPT, form | {"recount": "1"}).content.decode()
    assert "would leave at the next add" in asked
    assert "counted anew" not in asked
    operator_client.post(ADOPT, form | {"confirmed": "1"})
    assert conversations.policy("order-7741").estimator == "gpt-4"


@pytest.mark.parametrize("text", ["", "nonsense", "token_window:0"])
def test_an_invalid_limit_is_not_adopted(page, operator_client, text):
    form = {"policy": text, "confirmed": "1"}
    assert operator_client.post(ADOPT, form).status_code == 422
    assert conversations.policy("order-7741") == TokenWindow(800)


def test_a_limit_that_is_only_measured_is_replayed_as_if_it_held(operator_client):
    said = history.all_messages("order-7741")
    for name, policy in (("held", TokenWindow(100)), ("measured", TokenWindow(100).metering())):
        create_and_add(name, policy, said)
    held, measured = (
        operator_client.get(f"/c/{name}/compare/?as=json").json() for name in ("held", "measured")
    )
    assert [row["user_repeated"] for row in measured] == [row["user_repeated"] for row in held]
    assert [row["prompt_tokens"] for row in measured][::2] == [
        row["prompt_tokens"] for row in held
    ][::2]
    assert measured[0]["lost"] > 0
    assert held[0]["recalls"] == measured[0]["recalls"], "what is needed follows from the messages"
    html = operator_client.get("/c/measured/compare/").content.decode()
    assert "in force" not in html
    asked = "/c/measured/compare/?policy=token_window:100,meters_only=true&phrase=A-1182"
    html = operator_client.get(asked).content.decode()
    assert "only measured" not in html
    assert "still holds “A-1182”" in html


def test_words_of_a_project_are_followed(operator_client, db, settings):
    settings.CHATMEMORY = {"FACT_TERMS": ["Lyon"]}
    create_and_add("m", MessageWindow(9), [UserMessage("To Lyon."), AiMessage("Lyon it is.")])
    (row,) = operator_client.get("/c/m/compare/?policy=message_window:1&as=json").json()
    assert (row["recalls"], row["held"]) == (1, 1)


def test_the_options_of_a_policy_are_shown(page):
    text = page("?policy=token_window:800&policy=token_window:800,low_water=0.6")
    assert text.count("trimmed to 60 %") >= 2


def test_a_comparison_says_that_it_leaves_out_pins(operator_client, db):
    create_and_add("c", MessageWindow(5), numbered(3))
    words = "Messages were pinned in this conversation. The replays ignore pins."
    assert words not in operator_client.get("/c/c/compare/").content.decode()
    services.pin("c", 1)
    assert words in operator_client.get("/c/c/compare/").content.decode()


def test_a_system_message_holds_a_phrase_while_others_leave(operator_client, db):
    said = [SystemMessage("Order A-1182"), UserMessage("A-1182 please"), *numbered(5)]
    create_and_add("m", MessageWindow(3), said)
    html = operator_client.get("/c/m/compare/?policy=message_window:3&phrase=A-1182").content
    assert "<b>A limit of 1 message</b> still holds “A-1182” at #7." in html.decode()


def test_no_limit_holds_a_phrase_of_a_replaced_system_message(operator_client, db):
    said = [SystemMessage("Order ZX-9911"), UserMessage("hi"), SystemMessage("Be kind.")]
    create_and_add("m", MessageWindow(3), [*said, *numbered(3)])
    html = operator_client.get("/c/m/compare/?policy=message_window:3&phrase=ZX-9911").content
    assert "<b>No limit</b> still holds “ZX-9911” at #6." in html.decode()


@pytest.mark.parametrize("form", ["csv", "json"])
def test_numbers_are_sent_as_a_file(page, operator_client, form):
    answer = operator_client.get(f"{PAGE}{POLICIES}&as={form}")
    name = f'attachment; filename="order-7741-policies.{form}"'
    assert answer["Content-Disposition"] == name


@pytest.mark.parametrize(
    ("query", "status"),
    [("?at=0", 200), ("?at=999999", 200), ("?at=1&phrase=%00", 200), ("?at=x", 422)],
)
def test_every_place_can_be_shown(page, query, status):
    assert "Messages in memory after" in page(query, status)
