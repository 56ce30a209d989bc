"""Evidence files: their contents, their masks, and texts of strangers that do no harm."""

from __future__ import annotations

import json
import re
from html import unescape
from itertools import count

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    MessageWindow,
    TokenWindow,
    ToolExecutionRequest,
    UserMessage,
    services,
)
from chatmemory.reading import conversations, history, steps, windows
from chatmemory.recall.incidents import Incident, IncidentKind
from inspector.conversation.history import without_escapes
from inspector.rooms.evidence_file.kinds import KINDS
from inspector.rooms.evidence_file.masking import Choice, Masker
from inspector.rooms.evidence_file.reads import STEPS_MAX, TEXT_MAX, evidence

from ...conversations import create_and_add, numbered
from ...inspector.test_conversation import HOSTILE as OF_PAGES
from ...properties import examples
from ...test_clearing import CLEARS, turn

CALL = AiMessage(None, [ToolExecutionRequest("a", "find", "{}")])
NUMBERS = count()
PAGE = "/c/order-7741/evidence/"


@pytest.fixture
def order(demo_conversations_of_the_module, db):
    """The example conversations, among them order-7741."""


def file_of(client, url: str, **form: object) -> str:
    answer = client.post(url, {**form, "download": "1"})
    assert answer.status_code == 200
    assert answer["Content-Disposition"].startswith("attachment; filename=")
    return answer.content.decode()


def data_of(html: str) -> dict:
    (found,) = re.findall(
        r'<script type="application/json" id="data">\s*(.*?)\s*</script>', html, re.S
    )
    return json.loads(found)


def test_a_conversation_without_a_step_offers_no_file(operator_client, db):
    services.create("c", MessageWindow(3))
    assert "/c/c/evidence/" not in operator_client.get("/c/c/").content.decode()
    services.add("c", numbered(1))
    assert "/c/c/evidence/" in operator_client.get("/c/c/").content.decode()
    assert operator_client.get("/c/c/evidence/?at=0").status_code == 200


@pytest.mark.needs("evidence")
def test_the_form_opens_at_the_newest_incident(order, operator_client):
    services.keep("order-7741")
    assert operator_client.get(PAGE).context["form"].data["at"] == 47
    assert operator_client.get(f"{PAGE}?at=12").context["form"].data["at"] == "12"
    green = operator_client.get("/c/classroom/evidence/").context["form"].data["at"]
    assert green == 16, "the user had to say the colour again"
    create_and_add("calm", MessageWindow(3), numbered(5))
    services.keep("calm")
    assert operator_client.get("/c/calm/evidence/").context["form"].data["at"] == ""


def test_the_file_says_why_the_order_number_was_forgotten(order, operator_client):
    html = file_of(operator_client, PAGE, at="43")
    data = data_of(html)
    (step,) = [each for each in data["steps"] if each["n"] == 43]
    (left,) = [each for each in step["left"] if each["seq"] == 25]
    change = steps.step("order-7741", 43).change
    assert [each["seq"] for each in step["left"]] == [each.seq for each in change.evicted]
    assert "There was no room" in left["why"]
    assert step["free"] == 800 - windows.window("order-7741", 43).load
    assert data["head"] == conversations.memory("order-7741").head
    assert data["head"] in html
    assert evidence("order-7741", 43, Masker(Choice())).digest in html


def test_windows_of_the_file_equal_those_of_the_ledger(order):
    found = evidence("order-7741", None, Masker(Choice())).data
    for n in (1, 20, 43, 58):
        held = [
            each["seq"]
            for each in found["messages"]
            if any(entered <= n and (left is None or left > n) for entered, left in each["times"])
        ]
        assert held == sorted(windows.window("order-7741", n).seqs)


def test_the_memory_of_a_file_is_without_interrupted_calls(db):
    services.create("c", MessageWindow(9, auto_recover_orphaned_tool_messages=True))
    services.add("c", [UserMessage("q"), CALL, UserMessage("Hello?")])
    before, in_flight, after = evidence("c", None, Masker(Choice())).data["steps"]
    ((seq, words, why),) = in_flight["unseen"]
    assert (seq, words, why.split(".")[0]) == (
        2,
        "waiting for results",
        "The tool call waits for results",
    )
    assert (before["unseen"], after["unseen"]) == ([], [])
    assert in_flight["held"] == before["held"] == "1 of 9 messages, 5 tokens"
    assert [each["seq"] for each in after["left"]] == [2]
    assert "not answered completely" in after["left"][0]["why"]


def test_a_file_asks_nothing_of_a_server(order, operator_client):
    html = file_of(operator_client, PAGE)
    (policy,) = re.findall(r'Content-Security-Policy"\s+content="([^"]*)"', html)
    assert unescape(policy).startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r'(?:src|href)="(?!#)', html)
    assert not re.search(r"\son\w+=", html.partition('<script type="application/json"')[0])
    assert len(html) < 1_000_000


MASKED = [
    ("mail", "write to ada@example.org", "ada@example.org"),
    ("card", "my card is 4111 1111 1111 1111", "4111 1111 1111 1111"),
    ("phone", "call +33 6 12 34 56 78", "+33 6 12 34 56 78"),
    ("id", "order A-1182 of today", "A-1182"),
    ("number", "order 48213, 12 mugs for 12.50", "48213"),
    ("URL", "see https://a.example/48213?x=1 now", "https://a.example/48213?x=1"),
]


@pytest.mark.parametrize(("kind", "text", "term"), MASKED)
def test_terms_are_masked_by_their_form(kind, text, term):
    masker = Masker(Choice(frozenset({kind})))
    assert masker.text(text) == text.replace(term, f"[redacted {kind} #A1]")
    assert masker.found == {kind: 1}


def test_all_kinds_and_words_are_masked_at_once():
    """Nothing is looked for in a mark, and a longer term is masked as a whole."""
    masker = Masker(Choice(frozenset(KINDS), ("redacted", "ada")))
    text = "redacted ada@a.example #A1182 A1 4111 1111 1111 1112 Ada https://b.example/A1"
    assert masker.text(text) == (
        "[redacted word #A1] [redacted mail #A2] #[redacted id #A3] [redacted id #A4] "
        "[redacted number #A5] [redacted number #A6] [redacted number #A6] [redacted number #A7] "
        "[redacted word #A8] [redacted URL #A9]"
    )


def test_texts_are_masked_before_they_are_cut(db):
    """A text or quote that is cut must not end with the beginning of a masked word."""
    long = "x" * (TEXT_MAX - 4) + " Maximilian"
    create_and_add("m", MessageWindow(9), [UserMessage(long)])
    found = evidence("m", None, Masker(Choice(words=("Maximilian",))))
    assert "Max" not in json.dumps(found.data["messages"])


@pytest.mark.needs("evidence")
def test_incidents_are_cards_of_the_file(order, operator_client):
    html = file_of(operator_client, PAGE, at="43")
    (incident,) = data_of(html)["incidents"]
    assert (incident["what"], incident["happened"]) == ("A-1182", "had to be repeated by the user")
    assert [(each["label"], each.get("seq"), each.get("step")) for each in incident["path"]] == [
        ("said", 25, None),
        ("left memory", None, 43),
        ("asked for", 46, None),
        ("repeated", 47, None),
    ]
    assert incident["path"][1]["text"] == "when #43 arrived: 55 tokens over the limit"
    assert (incident["enough"], incident["today"]) == ("902 tokens", "800")
    assert 'run.assert_holds("A-1182", at=46)' in incident["test"]
    page = operator_client.get("/c/order-7741/?at=47").text
    assert incident["test"] in unescape(page)
    assert "order-7741</span>: why <code>A-1182</code> had to be repeated by the user" in html
    price = (
        r"Relative cost: 1\.\d\d with this limit, 1\.\d\d with today’s\. Sending everything is 1"
    )
    live = operator_client.get("/c/order-7741/?incident=1").text
    assert re.search(price, html)[0] == re.search(price, live)[0]


codes = st.sampled_from(["B-7731", "C-2293"])
sayings = st.lists(st.tuples(codes, st.booleans()), min_size=4, max_size=10)


@pytest.mark.needs("evidence")
@pytest.mark.django_db
@given(sayings, st.integers(180, 300))
@examples(30)
def test_incidents_of_the_file_are_those_of_the_page(sayings, limit):
    """Also where tool results are cleared: what only a cleared result mentioned is forgotten."""
    said = [message for code, is_found in sayings for message in saying(code, is_found)]
    memory_id = f"cleared-{next(NUMBERS)}"
    create_and_add(memory_id, TokenWindow(limit, clear_tool_results=1), said)
    assert incidents_of_the_file(memory_id) == [
        (each.what, each.shown.left_step, each.step, limit_of(each))
        for each in services.current_incidents(memory_id).incidents
        if each.kind is not IncidentKind.USED_UNSEEN
    ]


def saying(code: str, is_found: bool) -> list:
    _, call, result, _ = turn(code)
    return [call, result] if is_found else [UserMessage(f"Is it {code}?")]


def incidents_of_the_file(memory_id: str) -> list[tuple]:
    found = evidence(memory_id, None, Masker(Choice())).data["incidents"]
    return [(each["what"], each["left"], each["step"], each["enough"]) for each in found]


def limit_of(incident: Incident) -> str:
    limit = incident.shown.keeping.limit
    return f"{limit:,} tokens" if limit else ""


@pytest.mark.needs("evidence")
def test_a_cleared_result_is_on_the_path_of_an_incident(db):
    said = [*turn("B-7731"), *turn(2), *turn(3), UserMessage("Is it B-7731?")]
    said[0] = UserMessage("Where is my parcel?")
    create_and_add("m", CLEARS, said)
    (incident,) = evidence("m", None, Masker(Choice())).data["incidents"]
    first, left, _ = incident["path"]
    assert (incident["what"], first["seq"], left["step"]) == ("B-7731", 3, 9)
    assert left["text"] == "it was cleared to make room"


@pytest.mark.needs("evidence")
def test_a_masked_term_is_in_no_incident(order, operator_client):
    for form in (
        {"kinds": ["id"]},
        {"words": "A-1182"},
        {"roles": ["user", "call", "result"]},
        {"seqs": "25 26 27 28 47 48 49 54", "words": ""},
    ):
        html = file_of(operator_client, PAGE, at="43", **form)
        (incident,) = data_of(html)["incidents"]
        assert "A-1182" not in html or form.get("seqs")
        assert "A-1182" not in json.dumps(incident), form
        assert incident["test"] == ""


def test_a_long_number_that_is_no_card_stays():
    assert Masker(Choice(frozenset({"card"}))).text("4111 1111 1111 1112") == "4111 1111 1111 1112"


def test_equal_terms_have_equal_marks(db, operator_client):
    said = [
        UserMessage("I am Zoë."),
        AiMessage('{"name": "Zo\\u00eb"}'),
        UserMessage("ZOË, with ë!"),
    ]
    create_and_add("Zoë-1", MessageWindow(9), said)
    html = file_of(operator_client, reverse("inspector:evidence-file", args=["Zoë-1"]), words="Zoë")
    texts = [each["text"] for each in data_of(html)["messages"]]
    assert texts == [
        *("I am [redacted word #A1].", '{"name": "[redacted word #A1]"}'),
        "[redacted word #A1], with ë!",
    ]
    assert "zoë" not in html.lower()
    assert "zo\\u00eb" not in html.lower()


def test_whole_messages_and_roles_are_left_out(order, operator_client):
    html = file_of(operator_client, PAGE, seqs="#25", roles=["result"])
    data = data_of(html)
    assert "Yes, my order number is" not in html
    assert "late-delivery" not in html
    assert 25 in data["left_out"]
    assert all(
        each["text"] == "[redacted message]"
        for each in data["messages"]
        if each["glyph"] == "result"
    )
    tokens = {each["seq"]: each["tokens"] for each in data["messages"]}
    assert tokens[25] == history.message("order-7741", 25).tokens


@given(
    st.lists(st.text('abcZë"\\/ %&<-1', min_size=2, max_size=8), min_size=1, max_size=4), st.data()
)
def test_no_spelling_of_a_word_is_left(words, data):
    words = [word.strip() for word in words if len(word.strip()) > 1 and "#A" not in word]
    masker = Masker(Choice(words=tuple(words)))
    filler = st.text("xyz.", max_size=5)
    text = "".join(part for word in words for part in (data.draw(filler), word, data.draw(filler)))
    masked = re.sub(r"\[redacted word #A\d+\]", "", masker.text(json.dumps({"a": text})))
    for word in words:
        assert json.dumps(word)[1:-1].lower() not in masked.lower()


HOSTILE = [
    *OF_PAGES,
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "<!--<script>",
    "\u2028\u2029</style><b>",
]


def test_texts_of_strangers_stay_texts(db, operator_client):
    create_and_add("m", MessageWindow(20), [UserMessage(text) for text in HOSTILE])
    html = file_of(operator_client, "/c/m/evidence/")
    shown = [without_escapes(text)[:TEXT_MAX] for text in HOSTILE]
    assert [each["text"] for each in data_of(html)["messages"]] == shown
    assert html.count("<script") == 2
    assert "<img" not in html


def test_a_long_conversation_is_a_part_around_the_step(db, operator_client):
    create_and_add("m", TokenWindow(200), numbered(STEPS_MAX + 50))
    found = evidence("m", 20, Masker(Choice()))
    assert found.is_part
    assert [found.data["steps"][0]["n"], len(found.data["steps"])] == [1, STEPS_MAX]
    html = file_of(operator_client, "/c/m/evidence/", at="20")
    assert "This file has steps 1 to 600 of 650." in " ".join(html.split())
    assert "a file holds a part" in operator_client.get("/c/m/evidence/?at=20").text


def test_mistakes_are_named(order, operator_client):
    assert operator_client.get(f"{PAGE}?at=x").status_code == 404
    assert operator_client.get(f"{PAGE}?at=99").status_code == 404
    answer = operator_client.post(PAGE, {"seqs": "one"})
    assert answer.status_code == 422
    assert "Write the numbers of the messages to mask, such as 12 27" in answer.text
    services.create("empty", MessageWindow(3))
    assert operator_client.get("/c/empty/evidence/").status_code == 409


def test_commands_write_the_file(order, tmp_path, capsys):
    call_command("export_conversations", "order-7741", html=True, at=43, output=tmp_path / "a.html")
    html = (tmp_path / "a.html").read_text("utf-8")
    assert data_of(html)["at"] == 43
    assert (tmp_path / "a.html").stat().st_mode & 0o777 == 0o600
    masks = ["--mask", "id", "--mask-word", "Lyon", "--mask-role", "ai", "--mask-message", "25"]
    capsys.readouterr()
    call_command("evidence_file", "order-7741", *masks)
    masked = data_of(capsys.readouterr().out)
    assert {each["seq"] for each in masked["messages"] if each["glyph"] == "ai"} | {25} == {
        *masked["left_out"]
    }
    assert not {"A-1182", "Lyon"} & set(re.findall(r"[\w-]+", json.dumps(masked)))
    for arguments in (["--all", "--html"], ["order-7741", "--html", "--format", "openai_chat"]):
        with pytest.raises(CommandError) as ended:
            call_command("export_conversations", *arguments)
        assert ended.value.returncode == 2


def test_without_a_script_the_file_is_one_page(order, operator_client):
    """The history once, the cards, and a line for each step with arrivals and evictions."""
    html = file_of(operator_client, PAGE, at="43").partition('<script type="application/json"')[0]
    assert len(re.findall(r'<li class="said ', html)) == 58
    assert "User message #43 arrived, +57 tokens. 4 messages left memory, −183 tokens" in html
    shown = re.sub(r"<(nav|section|svg|p|div)[^>]* hidden.*?</\1>", "", html, flags=re.DOTALL)
    assert "Step back" not in shown
    assert "Steps <span>what each step did</span>" in shown
