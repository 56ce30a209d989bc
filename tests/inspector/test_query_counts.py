"""The number of queries of a page does not depend on the number of rows."""

from __future__ import annotations

from functools import partial

import pytest
from django.core.cache import cache
from django.db import connection
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext

from chatmemory import AiMessage, MessageWindow, UserMessage, queries, services
from chatmemory.queries import ConversationQuery
from chatmemory.queries.step_samples import _kept_points, _kept_stays
from inspector import demo
from inspector.conversation import ConversationPage
from inspector.forms import DraftForm

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
    "/c/m/?before=50",
    "/c/m/export/",
    "/c/m/compare/",
    "/lab/",
    "/lab/?limit=1000&q=said",
    "/c/m/compare/?policy=message_window:5&policy=everything&at=100&phrase=said",
]
FORMS = [
    ("/c/m/simulate/", {"role": "user", "text": "what if", "at": "100"}),
    ("/c/m/simulate/", {"role": "user", "text": "what if", "limit": "5"}),
    ("/lab/adopt/", {"kind": "message_window", "limit": "20"}),
    ("/bulk/", {"action": "delete", "id": [f"c{n}" for n in range(25)]}),
]
MOST = 30
KEEPING = 9  # a trial, before the page


def fill(conversations: range, messages: range) -> None:
    if not conversations.start:
        services.create("m", MessageWindow(20))
    services.add("m", [(UserMessage, AiMessage)[n % 2](f"said {n}") for n in messages])
    for n in conversations:
        services.create(f"c{n}", MessageWindow(2))
        services.add(f"c{n}", [UserMessage(f"said {line}") for line in range(4)])


def asked(call) -> int:
    cache.clear()
    _kept_points.cache_clear()
    _kept_stays.cache_clear()
    with CaptureQueriesContext(connection) as queries:
        assert call().status_code in (200, 302)
    return len(queries)


def simulated(client):
    drafts = [UserMessage(f"what if {n}") for n in range(30)]
    trial = services.keep_trial("m", drafts, 10)
    return client.get(f"/c/m/?at=100&trial={trial}&draft=3&find=said")


def test_pages_and_forms(operator_client, db):
    """All are measured in one database, since it takes longer to fill than to read."""
    calls = {path: partial(operator_client.get, path) for path in PAGES}
    calls |= {
        f"POST {path} {form}": partial(operator_client.post, path, form) for path, form in FORMS
    }
    calls["a simulation"] = partial(simulated, operator_client)
    fill(range(5), range(240))
    little = {name: asked(call) for name, call in calls.items()}
    fill(range(5, 50), range(240, 800))
    much = {name: asked(call) for name, call in calls.items()}
    few = dict.fromkeys(PAGES, 4)  # a page of little data may ask fewer than its kind
    allowed = {name: max(n, few.get(name, 0)) + 1 for name, n in little.items()}
    assert {name: n for name, n in much.items() if n > allowed[name]} == {}
    most = {"a simulation": MOST + KEEPING}
    assert {name: n for name, n in much.items() if n > most.get(name, MOST)} == {}


ASKED = [
    ConversationQuery(),
    ConversationQuery(at=0),
    ConversationQuery(at=43, msg=25),
    ConversationQuery(at=43, find="A-1182"),
    ConversationQuery(at=43, find="a phrase that nobody said"),
    ConversationQuery(at=43, other=20),
    ConversationQuery(before=30),
]


def rendered(page: ConversationPage) -> str:
    context = {"page": page, "form": DraftForm()}
    return render_to_string("inspector/conversation/_conversation.html", context)


@pytest.mark.parametrize("query", ASKED, ids=str)
def test_no_template_of_a_conversation_asks_the_database(db, query, django_assert_num_queries):
    demo.load()
    page = ConversationPage(queries.conversation_state("order-7741", query))
    with django_assert_num_queries(0):
        assert "order-7741" in rendered(page)


def test_no_template_of_a_simulation_asks_the_database(db, django_assert_num_queries):
    demo.load()
    trial = queries.Trial((UserMessage("what if"), AiMessage("then this")))
    query = ConversationQuery(find="A-1182", msg=-1)
    page = ConversationPage(queries.simulated_state("order-7741", query, trial))
    with django_assert_num_queries(0):
        assert "what if" in rendered(page)


def test_a_page_reads_the_conversation_and_its_step_once(db):
    demo.load()
    with CaptureQueriesContext(connection) as captured:
        queries.conversation_state("order-7741", ConversationQuery(at=43, msg=25, find="A-1182"))
    statements = [each["sql"].replace('"', "") for each in captured]
    assert sum("FROM chatmemory_memory" in each for each in statements) == 1
    assert sum("FROM chatmemory_step" in each and "n = 43" in each for each in statements) == 1
