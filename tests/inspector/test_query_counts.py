"""The number of queries of a page or an answer does not depend on the number of rows."""

from __future__ import annotations

from functools import partial

from django.core.cache import cache
from django.db import connection
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext

from chatmemory import AiMessage, MessageWindow, UserMessage, services
from chatmemory.reading.steps import _CHANGES, _evictions_around, _points, _stays_of
from inspector import demo
from inspector.conversation.page import ConversationPage, page_of
from inspector.conversation.state import conversation_state
from inspector.rooms.simulation.trials import WhatIf
from inspector.shell.state import ConversationQuery

from ..conversations import create_and_add, numbered
from ..rooms import room_modules

PAGES = [
    "/",
    "/?q=said&sort=fill",
    "/?flagged=any",
    "/now/",
    "/now/?id=c1&id=c2&q=said",
    "/tokens/",
    "/policies/",
    "/c/m/",
    "/c/m/?at=100",
    "/c/m/?at=100&msg=3",
    "/c/m/?at=100&msg=90",
    "/c/m/?at=100&find=said",
    "/c/m/?at=100&find=nothing+like+it",
    "/c/m/?at=100&with=20",
    "/c/m/?at=100&limit=30",
    "/c/m/?before=50",
    "/c/m/export/",
    "/c/m/compare/",
    "/c/m/compare/?policy=message_window:5&policy=everything&at=100&phrase=said",
]
API = "/api/v1/memories/m/"
ANSWERS = ["messages/", "messages/?at=100", "history/", "steps/", "steps/50/", "messages/7/"]
FORMS = [
    ("/c/m/simulate/", {"role": "user", "text": "what if", "at": "100"}),
    ("/c/m/simulate/", {"role": "user", "text": "what if", "limit": "5"}),
    ("/bulk/", {"action": "delete", "id": [f"c{n}" for n in range(25)]}),
]
for room in room_modules("routes"):  # each may have more
    PAGES += getattr(room, "COUNTED", [])
    FORMS += getattr(room, "COUNTED_FORMS", [])
MOST, MOST_OF_THE_API, MOST_OF_AN_ADD = 30, 10, 16
KEEPING = 9  # a trial, before the page


def fill(conversations: range, messages: range) -> None:
    if not conversations.start:
        services.create("m", MessageWindow(20))
    services.add("m", [(UserMessage, AiMessage)[n % 2](f"said {n}") for n in messages])
    for n in conversations:
        create_and_add(f"c{n}", MessageWindow(2), numbered(4, "said"))


def query_count(call) -> int:
    cache.clear()
    for kept in (_points, _stays_of, _evictions_around):
        kept.cache_clear()
    _CHANGES.clear()
    with CaptureQueriesContext(connection) as queries:
        assert call().status_code in (200, 201, 302)
    return len(queries)


def simulated(client):
    trial = services.keep_trial("m", numbered(30, "what if"), 10)
    return client.get(f"/c/m/?at=100&trial={trial}&draft=3&find=said")


def adding(api, count: int):
    messages = [{"role": "user", "content": f"said {n}"} for n in range(count)]
    return api.post(f"{API}messages/", {"messages": messages, "format": "openai_chat"})


def test_pages_forms_and_answers(operator_client, api):
    """All are measured in one database, since it takes longer to fill than to read."""
    calls = {path: partial(operator_client.get, path) for path in PAGES}
    calls |= {path: partial(api.get, f"{API}{path}") for path in ANSWERS}
    calls |= {
        f"POST {path} {form}": partial(operator_client.post, path, form) for path, form in FORMS
    }
    calls["a simulation"] = partial(simulated, operator_client)
    calls["an add"], calls["100 adds"] = partial(adding, api, 1), partial(adding, api, 100)
    fill(range(5), range(240))
    little = {name: query_count(call) for name, call in calls.items()}
    fill(range(5, 50), range(340, 800))
    much = {name: query_count(call) for name, call in calls.items()}
    few = dict.fromkeys(PAGES, 4)  # a page of little data may ask fewer than its kind
    allowed = {name: max(n, few.get(name, 0)) + 1 for name, n in little.items()}
    assert {name: n for name, n in much.items() if n > allowed[name]} == {}
    most = dict.fromkeys(calls, MOST) | dict.fromkeys(ANSWERS, MOST_OF_THE_API)
    most |= {"an add": MOST_OF_AN_ADD, "100 adds": MOST_OF_AN_ADD, "a simulation": MOST + KEEPING}
    assert {name: n for name, n in much.items() if n > most[name]} == {}


ASKED = [
    ConversationQuery(),
    ConversationQuery(at=0),
    ConversationQuery(at=43, msg=25),
    ConversationQuery(at=43, room_parameters={"find": "A-1182"}),
    ConversationQuery(at=43, room_parameters={"find": "a phrase that nobody said"}),
    ConversationQuery(at=43, other=20),
    ConversationQuery(before=30),
]


def rendered(page: ConversationPage) -> str:
    return render_to_string("inspector/conversation/_conversation.html", {"page": page})


def test_no_template_of_a_conversation_asks_the_database(db, django_assert_num_queries):
    demo.load()
    services.keep("order-7741")
    pages = [page_of("order-7741", query, {}) for query in ASKED]  # for which rooms read
    trial = WhatIf((UserMessage("what if"), AiMessage("then this")))
    simulated = ConversationQuery(room_parameters={"find": "A-1182"}, msg=-1)
    pages.append(page_of("order-7741", simulated, {"trial": trial}))
    with django_assert_num_queries(0):
        for page in pages:
            assert "order-7741" in rendered(page)


def test_a_page_reads_the_conversation_and_its_step_once(db):
    demo.load()
    with CaptureQueriesContext(connection) as captured:
        query = ConversationQuery(at=43, msg=25, room_parameters={"find": "A-1182"})
        conversation_state("order-7741", query)
    statements = [each["sql"].replace('"', "") for each in captured]
    assert sum("FROM chatmemory_memory" in each for each in statements) == 1
    assert sum("FROM chatmemory_step" in each and "n = 43" in each for each in statements) == 1
