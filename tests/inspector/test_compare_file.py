"""A conversation of a file under several policies, of which nothing is stored."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from chatmemory import AiMessage, UserMessage, messages_to_json, queries
from chatmemory.models import Memory, Message, RecallFigures, Stay, Step
from chatmemory.services import protocol
from inspector import demo

PAGE = "/lab/compare/"
POLICIES = ["message_window:3", "token_window:300", "everything"]
SAID = [UserMessage("Order A-1182."), AiMessage("Yes?"), UserMessage("Hm"), AiMessage("A-1182")]
TABLES = (Memory, Message, Step, Stay, RecallFigures)


@pytest.fixture
def post(operator_client, db):
    def send(status: int = 200, **fields) -> str:
        before = [table.objects.count() for table in TABLES]
        response = operator_client.post(PAGE, fields)
        assert response.status_code == status
        assert [table.objects.count() for table in TABLES] == before
        return response.content.decode()

    return send


def file_of(value: object, name: str = "chat.json") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, json.dumps(value).encode())


def langchain4j(messages) -> list:
    return json.loads(messages_to_json(messages))


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def told(html: str) -> list[object]:
    """What a page says in its sentence, chart, tables and lists, without links and buttons."""
    html = re.sub(r"<tfoot>.*?</tfoot>", "", html, flags=re.DOTALL)
    found: list[object] = re.findall(r' d="([^"]*)"', html.partition('class="cmp__plot"')[2])
    found += map(words, re.findall(r"<p class=\"lab__big\">.*?</p>", html, re.DOTALL))
    found += map(words, re.findall(r"<table.*?</table>", html, re.DOTALL))
    lost = html.partition('class="cmp__lost"')[2].partition("</main>")[0].partition("<details")[0]
    return [*found, words(lost).replace(" ,", ",")]


def carried(html: str) -> dict[str, str]:
    """The hidden fields of the form, but not the policies."""
    form = html.partition('id="compare"')[2].partition("</form>")[0]
    pairs = re.findall(r'type="hidden"\s+name="(title|messages)"\s+value="([^"]*)"', form)
    return {name: unescape(value) for name, value in pairs}


def buttons(html: str) -> list[str]:
    return [unescape(value) for value in re.findall(r'name="go"\s+value="([^"]*)"', html)]


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"policy": POLICIES, "at": "20", "phrase": "A-1182", "input": "2.5", "cached": "1"},
        {"policy": POLICIES, "at": "0", "phrase": "nothing like it"},
        {"policy": POLICIES[:1], "kind": "token_window", "limit": "90", "options": ""},
    ],
    ids=lambda query: "-".join(query) or "nothing",
)
def test_it_says_what_the_page_of_the_same_messages_says(post, operator_client, query):
    demo.load()
    messages = queries.said("order-7741")
    protocol.update_messages("same", messages)
    stored = operator_client.get("/c/same/compare/", query).content.decode()
    read = post(file=file_of(langchain4j(messages), "my chat.json"), **query)
    assert told(read) == told(stored)
    assert len(told(read)) > 5
    assert told(post(**carried(read), **query)) == told(stored)
    for form in ("csv", "json"):
        numbers = operator_client.get("/c/same/compare/", {**query, "as": form})
        go = next(each for each in buttons(read) if f"as={form}" in each)
        assert post(**carried(read), go=go) == numbers.content.decode()
    answer = operator_client.post(PAGE, {**carried(read), "as": "csv"})
    assert 'filename="my_chat.json-policies.csv"' in answer["Content-Disposition"]


def test_its_buttons_lead_where_links_lead(post):
    page = post(file=file_of(langchain4j(SAID)), policy=["message_window:2", "everything"])
    assert "A-1182 said in #1, needed in #4" in words(page)
    follow = next(each for each in buttons(page) if "phrase=A-1182" in each)
    # The fields of the form go with a button, which decides.
    form = {**carried(page), "policy": "everything", "at": "1", "phrase": "Hm", "input": "7"}
    followed = post(**form, go=follow)
    assert "3 messages still hold “A-1182” at #3." in words(followed)
    more = next(each for each in buttons(followed) if "message_window%3A3" in each)
    assert "under 3 policies" in words(post(**carried(followed), go=more))
    assert "chat.json" in words(followed)


def test_it_belongs_to_the_lab_and_its_form_keeps_what_the_address_asks_for(operator_client, db):
    html = operator_client.get(f"{PAGE}?policy=message_window:7&input=3").content.decode()
    assert re.search(r'href="/lab/"\s+aria-current="page"', html)
    assert 'name="policy" value="message_window:7"' in html
    assert 'name="input" value="3"' in html


@pytest.mark.parametrize(
    ("wanted", "title"),
    [
        ("", "chat.json, conversation 1 (b)"),
        ("3", "chat.json, conversation 4 (3)"),
        ("c", "chat.json, conversation 3 (c)"),
        ("1", "chat.json, conversation 1 (b)"),
        ("5", "chat.json, conversation 5"),
    ],
)
def test_one_of_several_conversations_is_chosen(post, wanted, title):
    said = langchain4j(SAID)
    conversations = [{"id": name, "messages": said} for name in ("b", "", "c", "3")]
    conversations[1]["messages"] = [{"type": "USER"}]
    page = post(file=file_of([*conversations, {"messages": said}]), conversation=wanted)
    assert carried(page)["title"] == title
    assert title in words(page)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, 'Choose a file of at most 16 MB, the limit of INSPECTOR["UPLOAD_BYTES"].'),
        ({"file": SimpleUploadedFile("x", b"nonsense")}, "line 1"),
        ({"file": SimpleUploadedFile("x", b"[]")}, "No conversation"),
        ({"file": file_of([{"id": "a", "messages": [{"type": "USER"}]}])}, "Conversation 1 (a): "),
        (
            {"file": file_of(langchain4j(SAID)), "conversation": "<7>"},
            "no readable conversation “<7>”. It has 1, such as “1”",
        ),
        ({"messages": "[null]"}, "No conversation"),
        ({"messages": '{"a":1}'}, "No conversation"),
        ({"messages": "[" + "{}," * 9_000 + "{}]"}, "send less at a time"),
        ({"messages": '[{"type":"AI","text":"\\ud800"}]'}, "surrogate"),
        ({"messages": "[" * 9_000}, "Choose"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "-".join(value) or "none",
)
def test_what_is_wrong_is_said_beside_the_form(post, fields, said):
    page = post(422, **fields)
    assert said in words(page)
    assert 'type="file"' in page


def test_a_conversation_of_too_many_messages_is_refused(post, monkeypatch):
    monkeypatch.setattr("chatmemory.queries.recall.COMPARED_MAX", 3)
    page = post(422, file=file_of(langchain4j(SAID)))
    assert "has 4 messages, and up to 3 are" in words(page)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("MESSAGES_FORM_BYTES", "The conversation is larger than 99 bytes, the limit of "),
        ("UPLOAD_BYTES", "Choose a file of at most 99 bytes, the limit of "),
    ],
)
def test_what_is_too_large_is_refused(post, settings, setting, said):
    settings.INSPECTOR = {setting: 99, "WHOLE_SITE": True}
    file, carried = {"file": file_of(langchain4j(SAID))}, {"messages": messages_to_json(SAID)}
    for fields in (file,) if setting == "UPLOAD_BYTES" else (file, carried):
        assert f'{said}INSPECTOR["{setting}"]' in words(post(422, **fields))


def test_another_file_goes_before_the_one_that_is_carried(post):
    fields = {"title": "old", "messages": messages_to_json(SAID)}
    page = post(**fields, file=file_of(langchain4j(SAID[:2]), "new.json"), phrase="yes")
    assert "The same 2 messages" in words(page)
    assert carried(page)["title"] == "new.json"
    assert "“yes” first forgotten" in words(page)


def test_what_a_form_carries_is_shown_as_text(post):
    text = '"><script>alert(1)</script>'
    page = post(title=text, messages=messages_to_json([UserMessage(text)]), phrase=text)
    assert "<script>alert" not in page
    assert carried(page) == {"title": text, "messages": messages_to_json([UserMessage(text)])}


@pytest.mark.parametrize("form", ["", "csv", "json"])
def test_a_policy_that_is_none_is_told_and_no_numbers_are_sent_of_the_others(post, form):
    file = file_of(langchain4j(SAID))
    answer = post(422, file=file, policy=["nonsense", "everything"], **{"as": form})
    assert "is not a policy" in answer
    assert ("under 1 policy" in words(answer)) if not form else ("<" not in answer)
