"""A phrase through time: whether it is in memory at a step, since when, and where it was said."""

from __future__ import annotations

import pytest

from chatmemory import MessageWindow, TokenWindow, UserMessage, services
from chatmemory.ledger import protocol
from inspector.rooms.phrase import answers, matches
from inspector.rooms.phrase.matches import Remembered
from inspector.rooms.phrase.page import SearchResult
from inspector.rooms.phrase.searching import search_on

from ...conversations import create_and_add, users
from ...inspector.markup import said, tree

pytestmark = pytest.mark.usefixtures("demo_conversations_of_the_module", "db")


@pytest.fixture
def few_looked_at(monkeypatch):
    for module in (matches, answers):
        monkeypatch.setattr(module, "MATCHES_MAX", 20)


def find(client, query: str, memory_id: str = "order-7741"):
    return client.get(f"/c/{memory_id}/?{query}").context["page"]


def found_on(page) -> SearchResult | None:
    search = search_on(page.state)
    return SearchResult(search) if search else None


def answer(client, query: str, memory_id: str = "order-7741"):
    return found_on(find(client, query, memory_id)).answer


def say(messages, window: int) -> None:
    create_and_add("said", MessageWindow(window), messages)


def answer_of(client, query: str = "") -> str:
    response = client.get(f"/c/said/?find=Anna&{query}")
    found = found_on(response.context["page"]).answer
    assert found.looked_at in response.content.decode()
    return f"{found.summary} {found.looked_at}"


ANSWERS = {
    "find=A-1182": "Yes, since #47. Forgotten at step 43, when #43 arrived, until #47 said it "
    "again. #47, #48, #49 and #54 are in memory.",
    "at=43&find=A-1182": "At step 43: no, forgotten at this step, when #43 arrived. User message "
    "#43 arrived, +57 tokens. 4 messages left memory, −183 tokens: #25 and #26 were the oldest, "
    "results #27 and #28 left with #26. Later: User #47 said it again, at step 47.",
    "at=30&find=a-1182": "At step 30: yes, since #25. #25, #26, #27 and #28 are in memory. Later: "
    "forgotten when #43 arrived, at step 43.",
    "at=3&find=A-1182": "At step 3: not said yet. Later: User #25 said it, at step 25.",
    "at=0&find=A-1182": "At step 0: not said yet. Later: User #25 said it, at step 25.",
    "find=your+confirmation": "Only in the assistant’s own words (#44). Forgotten at step 42, when "
    "#42 arrived, until #44 said it again. #44 is in memory.",
    "at=43&find=%2399999": "There is no message #99999. The newest is #58.",
}


@pytest.mark.parametrize("query", ANSWERS)
def test_the_answer_tells_since_when_and_how_it_went_on(operator_client, query):
    assert answer(operator_client, query).summary == ANSWERS[query]


def test_a_phrase_that_was_never_said(operator_client):
    assert "Nobody said these words." in answer(operator_client, "find=zebra").summary


def test_times_and_mentions_are_listed_with_their_steps(operator_client):
    now = answer(operator_client, "find=A-1182")
    assert now.question == "Does memory still have “A-1182”?"
    assert [(each.first, each.last, each.is_in) for each in now.periods] == [
        (1, 24, False),
        (25, 42, True),
        (43, 46, False),
        (47, 58, True),
    ]
    page = find(operator_client, "at=43&find=A-1182")
    assert page.marks.band == ((25, 42), (47, 58))
    assert found_on(page).answer.receipt[-1].label == "In memory after"
    mentions = found_on(page).groups[0][1]
    listed = [(each.row.seq, each.step) for each in mentions]
    assert listed == [(49, 49), (47, 47), (28, 43), (27, 43), (25, 43)]
    assert mentions[-1].tag == "left memory at step 43 · memory was full, when #43 arrived"
    assert mentions[0].tag == "said at step 49"


def test_a_phrase_only_of_the_assistant_and_the_system_message_is_distinguished(operator_client):
    """The bot asks for the order number, and its system message mentions it."""
    page = find(operator_client, "find=order+number")
    found = found_on(page)
    where = "nly in the assistant’s own words (#44) and the system message (#1)."
    assert found.answer.cause == f"O{where}"
    assert found.answer.detail.startswith(
        "What users and tools said left at step 43. User message #43 arrived"
    )
    assert found.answer.state is Remembered.ASIDE
    assert page.marks.band == ((1, 58),), "a band of all mentions"
    headings = [heading for heading, _ in found.groups]
    assert headings == ["Users and tools", "The assistant itself", "System messages"]
    alone = answer(operator_client, "find=your+confirmation")
    assert "No user and no tool said it" in alone.looked_at
    assert answer(operator_client, "at=45&find=the+order+number").cause == f"At step 45: o{where}"
    key = services.keep_trial("order-7741", [UserMessage("ok")], None)
    simulated = answer(operator_client, f"at=45&find=the+order+number&trial={key}")
    assert simulated.cause == f"O{where}"


def test_the_last_mention_explains_the_consequence(operator_client):
    consequence = "Without #25, #26, #27 and #28, nothing in memory mentions “A-1182”."
    for query, words in (("at=43&msg=26", consequence), ("at=43&msg=2", ""), ("at=30&msg=2", "")):
        assert found_on(find(operator_client, f"{query}&find=A-1182")).consequence == words


@pytest.mark.parametrize(
    ("phrase", "near"),
    [
        ("A-1183", "A-1182"),
        ("a-118299", "A-1182"),
        ("order zebra", "order"),
        ("A-1182", ""),
        ("zzzz", ""),
        ("  ", ""),
        ("allergy", ""),
        ("all the zebras", ""),
        ("160 elephants", "160"),
    ],
)
def test_a_similar_phrase_is_offered(operator_client, phrase, near):
    found = found_on(find(operator_client, f"find={phrase}"))
    assert (found.nearest if found else "") == near


@pytest.mark.parametrize(
    ("text", "phrase", "near"),
    [
        ("it was 1.182,50.", "1.182,59", "1.182,50"),
        ("on 2024-11-82?", "2024-11-89", "2024-11-82"),
        ("x" * 300 + "1182", "1182 zebra", ""),
        ("x" * 300 + "1182 or no-1182-b", "1182 zebra", "no-1182-b"),
    ],
)
def test_a_number_that_is_offered_is_not_cut(operator_client, text, phrase, near):
    say(users(text), 5)
    assert found_on(find(operator_client, f"find={phrase}", "said")).nearest == near


def test_the_phrase_is_marked_as_text_and_the_link_can_be_shared(operator_client):
    html = operator_client.get("/c/order-7741/?at=43&find=A-1182").content.decode()
    assert html.count("<mark>A-1182</mark>") > 4
    assert "&amp;find=A-1182" in html
    assert "is-hit" in html
    html = operator_client.get('/c/order-7741/?find="><script>x</script>').content.decode()
    assert "<script>x" not in html


def test_the_newest_mentions_and_those_in_memory_are_looked_at(operator_client, few_looked_at):
    page = find(operator_client, "find=e")
    here = {seq for seqs in found_on(page).matches.present.values() for seq in seqs}
    assert len(found_on(page).matches.speakers.keys() - here) <= 20
    assert (
        "There are more than 20 mentions: the newest 20 are examined"
        in found_on(page).answer.looked_at
    )
    html = operator_client.get("/c/order-7741/?find=e").content.decode()
    assert f'<span class="n">{found_on(page).count}+</span>' in html


def test_mentions_that_are_not_listed_are_counted(operator_client, request):
    say([UserMessage("Anna")] * 100, 90)
    assert "and 50 more mentions" in operator_client.get("/c/said/?find=Anna").content.decode()
    request.getfixturevalue("few_looked_at")
    html = operator_client.get("/c/said/?find=Anna").content.decode()
    assert "and at least 40 more mentions" in html
    assert answer_of(operator_client).startswith("Yes, since step 81 or earlier. #11 to #100 are")


PART = (
    "There are more than 20 mentions: the newest 20 are examined, and those in memory at this step."
)


def test_a_phrase_that_all_say_is_in_memory_at_an_early_step(operator_client, few_looked_at):
    say([UserMessage(f"Anna {n}") for n in range(100)], 5)
    assert answer_of(operator_client, "at=90") == (
        f"At step 90: yes, since step 81 or earlier. #86 to #90 are in memory. {PART}"
    )
    assert answer_of(operator_client, "at=3") == (
        "At step 3: yes, since step 3 or earlier. #1, #2 and #3 are in memory. "
        f"Later: in memory, at step 81. {PART}"
    )
    periods = answer(operator_client, "find=Anna&at=50", "said").periods
    assert [(each.steps, each.why) for each in periods] == [
        ("Steps 1 to 80", "not examined"),
        ("Steps 81 to 100", "in memory"),
    ]


def test_turns_are_found_though_very_many_followed(operator_client):
    say([UserMessage(("Anna", "hm")[n % 2]) for n in range(150)], 1)
    assert answer_of(operator_client, "at=3").startswith(
        "At step 3: yes, since #3. Forgotten at step 2, when #2 arrived, until #3 said it again. "
        "#3 is in memory. Later: forgotten when #4 arrived, at step 4."
    )


def test_a_phrase_over_the_lowered_limit_is_hidden(operator_client):
    say(users("the key is 17", "hm", "hm", "hm"), 9)
    services.change("said", policy=MessageWindow(2))
    assert answer(operator_client, "find=key", "said").summary == (
        "Only over the limit: #1. The model no longer sees it; the next add evicts #1."
    )


def test_a_message_that_never_fitted_was_never_in_memory(operator_client):
    create_and_add("big", TokenWindow(20), users("hi", "the key is 17 " * 20, "ok"))
    page = find(operator_client, "find=key", "big")
    assert page.marks.band == ()
    assert found_on(page).answer.cause == "No, it had no room when it was said, at step 2."
    assert [(each.steps, each.why) for each in found_on(page).answer.periods] == [
        ("Step 1", "not said yet"),
        ("Steps 2 to 3", "it had no room when it was said, at step 2"),
    ]
    assert answer(operator_client, "find=key&at=1", "big").summary == (
        "At step 1: not said yet. Later: it had no room when it was said, at step 2."
    )


def test_messages_that_the_client_put_in_were_never_said(operator_client):
    protocol.update_messages("client", users("a", "b"))
    protocol.update_messages("client", users("a", "the key is 17", "b"))
    found = found_on(find(operator_client, "find=key", "client"))
    assert found.answer.cause == "Yes, since #3."
    assert found.groups[0][0] == "Put into memory by the client, not in history"


def test_a_number_selects_its_message(operator_client):
    page = find(operator_client, "at=43&find=%2326")
    assert (page.msg, page.marks.kept) == (26, {})
    assert find(operator_client, "find=%23").marks.kept == {"find": "#"}
    assert operator_client.get("/c/order-7741/?msg=99999").status_code == 404


def test_a_search_keeps_the_selected_message_and_the_comparison(operator_client):
    response = operator_client.get("/c/order-7741/?at=43&msg=26&with=20")
    fields = tree(response.content.decode()).iterfind(".//*[@form='find']")
    sent = {each.get("name"): each.get("value") for each in fields}
    assert sent == {"at": "43", "msg": "26", "with": "20"}
    why = said(operator_client.get("/c/order-7741/?at=43&msg=26&with=20&find=A-1182"), "why")
    assert "At step 43: no, forgotten at this step" in why
    assert "Why did #26 leave?" in why


@pytest.mark.parametrize(
    ("at", "draft", "limit", "summary"),
    [
        (30, "ok", None, "Yes. #25, #26, #27 and #28 are in memory."),
        (42, "A-1182 " * 50, None, "Yes. Draft 1 is in memory. #25, #26, #27 and #28 would leave."),
        (42, "", 300, "No, #25, #26, #27 and #28 would leave."),
    ],
)
def test_a_simulation_answers_of_the_memory_that_would_be(
    operator_client, at, draft, limit, summary
):
    key = services.keep_trial("order-7741", users(*filter(None, [draft])), limit)
    assert answer(operator_client, f"at={at}&find=A-1182&trial={key}").summary == summary


def test_a_simulation_tells_what_would_be_forgotten_and_what_was_before(operator_client):
    def simulated(text: str, at: int):
        key = services.keep_trial("order-7741", users(text), None)
        return find(operator_client, f"at={at}&find=A-1182&trial={key}")

    would = found_on(simulated("Here is my mail once more. " * 12, 42)).answer
    assert would.question == "Would memory still have “A-1182”?"
    assert would.cause == "No, #25, #26, #27 and #28 would leave."
    assert "#25 and #26 are the oldest" in would.detail
    assert would.receipt[-1].label == "In memory after"
    assert would.periods == ()
    before = found_on(simulated("hm", 44)).answer
    assert before.cause == "At step 44: no, forgotten since step 43, when #43 arrived."
    assert "Later" not in before.detail
    page = simulated("My order is a-1182. " * 12, 42)
    assert found_on(page).groups[0][1][0].row.seq == -1
    assert found_on(page).count == 9
    html = operator_client.get(f"{page.url}{page.query(42)}").content.decode()
    assert "draft=1" in html
