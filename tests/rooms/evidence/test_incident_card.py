"""The card of an incident agrees with the ledger and the API, for all kinds and causes."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from itertools import count

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import event, given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    MessageWindow,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.access.scopes import Scope
from chatmemory.explain import receipts
from chatmemory.formats import read_transcripts
from chatmemory.reading import history, steps, windows
from chatmemory.recall.facts import facts_of
from chatmemory.recall.incidents import IncidentKind, incident_to_dict
from chatmemory.recall.loads import Keeping
from chatmemory.stores.database import DjangoChatMemoryStore
from inspector.conversation.keeping import SECTION, explain_keeping_limit
from inspector.conversation.state import conversation_state
from inspector.rooms.evidence import tools
from inspector.rooms.evidence.card import IncidentCard
from inspector.rooms.evidence.incidents import KeptIncident, incidents
from inspector.rooms.evidence.models import KeptIncidents
from inspector.rooms.evidence.panel import cards
from inspector.rooms.evidence.words import cure
from inspector.rooms.simulation.comparison import comparison
from inspector.rooms.simulation.showing import simulated_state
from inspector.shell.agents import Agent
from inspector.shell.state import ConversationQuery
from tests.conversations import create_and_add, numbered, users
from tests.inspector.markup import words
from tests.long_conversations import long_conversation
from tests.properties import examples
from tests.recall.test_incidents import FACTS, said

pytestmark = pytest.mark.usefixtures("demo_conversations_of_the_module", "db")
NUMBERS = count()
SAID = users("My order is A-1182.", "well", "well", "A-1182!")
ASKED = [*SAID[:3], AiMessage("Which order?"), SAID[3]]


def create_and_keep(memory_id: str, policy, messages) -> None:
    create_and_add(memory_id, policy, messages)
    services.keep(memory_id)


def page_html(client, query: str = "?incident=1", memory_id: str = "c") -> str:
    return client.get(f"/c/{memory_id}/{query}").content.decode()


def text_of(page: str) -> str:
    """The words of Why?."""
    why = page[page.index('<aside class="why"') : page.index("</aside>")]
    words = re.sub(r"<(summary|textarea)[^>]*>.*?</\1>", "", why, flags=re.S)
    return html.unescape(" ".join(re.sub(r"<[^>]+>", "", words).split()))


def card_at(memory_id: str, at: int | None = None, incident: int = 1) -> IncidentCard:
    query = ConversationQuery(at=at, room_parameters={"incident": str(incident)})
    shown = cards(conversation_state(memory_id, query))
    return next(each.context["card"] for each in shown if "card" in each.context)


@pytest.fixture
def order(operator_client):
    def get(query: str = "?incident=1") -> str:
        return page_html(operator_client, query, "order-7741")

    return get


def test_it_is_shown_at_its_step_and_where_it_is_asked_for(order):
    assert 'id="incident"' not in order("?at=46&incident=1")
    for query in ("?at=47", "?at=50&incident=1", "?incident=1&with=3", "?at=47&find=A-1182"):
        assert 'id="incident"' in order(query)
    for query in ("", "?at=50", "?find=A-1182", "?msg=47&incident=1", "?at=47&limit=902"):
        assert 'id="incident"' not in order(query)
    trial = services.keep_trial("order-7741", users("more"), None)
    assert 'id="incident"' not in order(f"?trial={trial}")


@pytest.mark.needs("settings")
def test_a_click_on_a_message_stays_at_the_step(order):
    page = order("?at=50&incident=1")
    card = page[page.index('id="incident"') : page.index("</section>", page.index('id="incident"'))]
    links = set(re.findall(r'href="([^"]+)"', card))
    own = "/c/order-7741/"
    messages = {f"{own}?at=50&amp;msg={seq}&amp;incident=1" for seq in (25, 46, 47)}
    assert links == messages | {f"{own}?at=43", f"{own}?at=47"}
    assert "A limit of 902 tokens would have kept it in memory" in words(card.encode())
    assert "Sending everything is 1.00." in words(card.encode())  # so it is no verb
    live = order()
    assert f'href="{own}?msg=25&amp;incident=1"' in live


def test_dots_stand_where_it_was_said_left_and_came_up_again(order):
    page = order("?at=50")
    dots = re.findall(r'id="cells-(\d+)">(?:(?!</li>).)*<i class="(cell__\w+)">', page, re.S)
    assert dots == [("25", "cell__was"), ("43", "cell__gone"), ("47", "cell__again")]
    assert '<i class="cell__' not in order("?at=50&msg=25")


def test_on_a_long_timeline_lines_stand_where_it_left_and_came_up_again(operator_client):
    create_and_keep("c", MessageWindow(2), [*SAID, *numbered(300, "well")])
    assert page_html(operator_client).count('<path class="c-incident"') == 2


def test_a_replay_without_a_policy_shows_what_happened(operator_client):
    DjangoChatMemoryStore().update_messages("c", SAID)
    assert "Replay of step" not in page_html(operator_client, "?at=1&limit=5")
    create_and_add("d", MessageWindow(2), SAID)
    assert operator_client.get("/c/d/?limit=0").status_code == 200
    assert operator_client.get("/c/d/?limit=many").status_code == 404


TWICE = users("A-1182", "well", "well", "A-1182", "well", "well", "A-1182", "well")


def test_the_copied_link_shows_the_same_card_also_later(operator_client):
    create_and_keep("c", MessageWindow(2), TWICE)
    for number in (1, 2):
        card = card_at("c", at=8, incident=number)
        page = page_html(operator_client, card.url.removeprefix("/c/c/"))
        again = f"#{[7, 4][number - 1]}"
        assert f"{card.what} was repeated by the user" in text_of(page)
        assert f"repeated {again}" in text_of(page)
    assert "data-copy-link" in page


def call(order: str = "A-1182", id: str = "1") -> list:
    request = ToolExecutionRequest(id, "get_order", f'{{"order": "{order}"}}')
    answer = ToolExecutionResultMessage(id, "get_order", '{"shipped": "2026-11-24"}')
    return [AiMessage(None, (request,)), answer]


def test_a_tool_that_was_called_again(operator_client):
    messages = [*users("Where is it?"), *call(), *users("well", "well", "well"), *call(id="2")]
    create_and_keep("c", MessageWindow(3), messages)
    words = text_of(page_html(operator_client))
    tokens = history.message("c", 8).tokens
    same = f"with the same result: {tokens} tokens; 1 term such as 2026-11-24"
    assert words.startswith(f"Why? get_order was called again, {same}")
    assert "called again #8 get_order" in words
    assert "asked for" not in words


def test_a_fact_that_the_assistant_did_not_ask_for_is_not_forced(operator_client):
    create_and_keep("c", MessageWindow(2), SAID)
    assert "A-1182 was repeated by the user after it had left memory" in text_of(
        page_html(operator_client)
    )
    create_and_keep("d", MessageWindow(3), ASKED)
    assert "A-1182 had to be repeated by the user" in text_of(
        page_html(operator_client, memory_id="d")
    )


def test_a_higher_limit_today_is_no_contradiction(operator_client):
    create_and_keep("c", MessageWindow(2), SAID)
    services.change("c", policy=MessageWindow(5))
    services.keep("c")
    words = text_of(page_html(operator_client))
    kept = "A limit of 3 messages from the first message on would have kept it in memory"
    assert f"{kept}; today’s limit is 5." in words
    services.change("c", policy=TokenWindow(500))
    services.keep("c")
    assert "A limit of 3 messages would have kept it in memory. Try limit 3" in text_of(
        page_html(operator_client)
    )


def cleared(memory_id: str) -> None:
    create_and_add(memory_id, MessageWindow(9), SAID[:1])
    services.clear_messages(memory_id)
    services.add(memory_id, SAID[3:])


def set_list(memory_id: str) -> None:
    create_and_add(memory_id, MessageWindow(9), SAID[:1])
    services.set_messages(memory_id, SAID[1:2])
    services.add(memory_id, SAID[3:])


def by_client(memory_id: str) -> None:
    client = DjangoChatMemoryStore()
    client.update_messages(memory_id, SAID[:1])
    client.update_messages(memory_id, SAID[1:3])
    client.update_messages(memory_id, SAID[1:])


def too_big(memory_id: str) -> None:
    create_and_add(memory_id, TokenWindow(20), users("A-1182 " * 50, "well", "A-1182!"))


@pytest.mark.parametrize(
    ("make", "left", "cure"),
    [
        (
            cleared,
            "step 2, memory was cleared",
            "No limit would have kept it in memory: memory was cleared.",
        ),
        (
            set_list,
            "step 2, the message list was replaced",
            "No limit would have kept it in memory: the message list was replaced.",
        ),
        (
            by_client,
            "step 2, the client left it out of its list",
            "No limit would have kept it in memory: the client decided what memory holds.",
        ),
        (
            too_big,
            "step 1, it was too large for the limit",
            "would have kept it in memory (today’s limit is 20).",
        ),
    ],
)
def test_other_causes(operator_client, make, left, cure):
    make("c")
    services.keep("c")
    words = text_of(page_html(operator_client))
    assert left in words
    assert cure in words
    assert ("Try" in words) is (make is too_big)


def test_limits_that_were_tried_apart_and_those_not_known():
    create_and_keep("c", MessageWindow(2), SAID)
    found = card_at("c")._shown
    coarse = with_keeping(found, Keeping(30, 5))
    assert cure(coarse, MessageWindow(2)) == (
        "A limit of about 30 messages",
        "would have kept it in memory (today’s limit is 2). Limits were tried in steps of 5.",
    )
    unknown = with_keeping(found, None)
    assert cure(unknown, None)[1].startswith(
        "Which limit would have kept it in memory is not known."
    )


def with_keeping(found, keeping):
    (fact,) = found.incident.facts
    facts = (replace(fact, keeping=keeping),)
    return replace(found, incident=replace(found.incident, facts=facts))


USED = [*users("A-1182"), *users("well", "well"), AiMessage("Is it A-1182?")]


def test_uses_are_one_line_that_unfolds(operator_client):
    create_and_keep("c", MessageWindow(2), USED)
    page = page_html(operator_client)
    assert 'id="incident"' not in page
    assert "Assistant used 1 term missing from memory" in text_of(page)
    assert "A-1182 #4" not in text_of(page)
    unfolded = text_of(page_html(operator_client, "?at=4&used=1"))
    line = "Assistant used 1 term missing from memory"
    assert f"{line} Hide terms A-1182 #4, said in #1, left memory at step 3" in unfolded
    assert "used without" not in text_of(page_html(operator_client, "?at=3"))


def test_uses_of_an_import_would_have_been_missing(operator_client):
    services.import_conversation("c", USED, MessageWindow(2))
    services.keep("c")
    assert "1 term would have been missing" in text_of(page_html(operator_client))


GOLD = [
    *users("Order A-1182, please."),
    AiMessage(tool_execution_requests=[ToolExecutionRequest("1", "find", '{"order": "A-1182"}')]),
    ToolExecutionResultMessage("1", "find", '{"order": "A-1182", "membership": "gold"}'),
    *users("well", "and", "so"),
    AiMessage(
        tool_execution_requests=[
            ToolExecutionRequest("2", "give", '{"order": "A-1182", "membership": "gold"}')
        ]
    ),
]


def test_terms_are_those_of_the_comparison_and_values_of_calls_are_counted_apart(
    operator_client,
):
    """The page, an agent and the comparison say the same of one conversation."""
    services.import_conversation("c", GOLD, MessageWindow(2))
    services.keep("c")
    words = "1 term and 1 value of calls would have been missing"
    unfolded = page_html(operator_client, "?used=1")
    assert words in text_of(unfolded)
    assert "it leaves out values of calls" in text_of(unfolded)
    told = tools.incidents(Agent("http://127.0.0.1:8000", Scope()), "c")
    assert f"{words}." in told.words
    (link,) = re.findall(r'href="(/c/c/compare/[^"]*)"', unfolded.partition('id="used"')[2])
    page = operator_client.get(html.unescape(link)).text
    (row,) = re.findall(r"<tr>\s*<th scope=\"row\">\s*Facts lost.*?</tr>", page, re.S)
    assert "values of tool calls, such as membership=gold, are not counted" in row
    assert re.findall(r"<td[^>]*>\s*(\d+)", row) == ["1"]


def test_a_page_says_that_nobody_has_looked_for_incidents_yet(operator_client):
    """Nobody may take the absence of a card for an answer before somebody has looked."""
    create_and_add("c", MessageWindow(2), SAID)
    assert "This step is not examined yet: incidents are found soon after a change" in text_of(
        page_html(operator_client)
    )
    services.keep("c")
    assert "not known yet" not in text_of(page_html(operator_client))


def test_kept_incidents_are_shown_with_their_step(operator_client):
    create_and_keep("c", MessageWindow(2), SAID)
    assert "Incidents as of" not in page_html(operator_client)
    services.add("c", users("one more"))
    assert "Incidents checked up to step 4." in page_html(operator_client)
    before = KeptIncidents.objects.get(memory_id="c").step
    KeptIncidents.objects.filter(memory_id="c").delete()
    assert 'id="incident"' not in page_html(operator_client)
    assert (before, KeptIncidents.objects.filter(memory_id="c").count()) == (4, 0)


# What would have kept a message, for the moment at which it was next needed


def test_the_policy_is_the_one_in_force_when_it_was_needed():
    create_and_add("c", MessageWindow(2), SAID[:3])
    services.change("c", policy=TokenWindow(20))
    services.add("c", SAID[3:])
    services.keep("c")
    query = ConversationQuery(at=3, msg=1, open=frozenset({SECTION}))
    answer = conversation_state("c", query).selection.would_keep
    assert (answer.step, answer.policy) == (5, TokenWindow(20))
    assert explain_keeping_limit(answer).cause == f"{card_at('c').enough} or more."


def test_a_message_that_was_not_needed_is_answered_for_the_step(order):
    words = text_of(order("?at=43&msg=20&open=kept"))
    assert "would still be in memory at step 43. Up to step 58, #20 was not needed again." in words
    KeptIncidents.objects.all().delete()
    words = text_of(order("?at=43&msg=25&open=kept"))
    assert "would still be in memory at step 43. A higher limit now" in words


# Properties

# Conversations in which a few facts leave soon, and come up again.
from_users = st.builds(UserMessage, st.sampled_from([*FACTS, *FACTS, "ab12 and cd34", "well"]))
forgetful = st.tuples(
    st.lists(st.one_of(*[from_users] * 6, said), min_size=6, max_size=14),
    st.one_of(
        st.builds(MessageWindow, st.integers(1, 3)),
        st.builds(TokenWindow, st.integers(12, 30)),
        st.builds(lambda limit: MessageWindow(limit, snap_to_user=True), st.integers(1, 3)),
    ),
)


@given(forgetful)
@examples(40)
def test_a_card_says_what_ledger_and_api_say(conversation):
    messages, policy = conversation
    memory_id = f"card-{next(NUMBERS)}"
    create_and_keep(memory_id, policy, messages)
    found = incidents(memory_id).incidents
    cards = [each for each in found if each.kind is not IncidentKind.USED_UNSEEN]
    for number, incident in enumerate(sorted(cards, key=lambda each: -each.step), 1):
        card = card_at(memory_id, incident=number)
        assert_agrees(memory_id, card, incident)
        if card.limit:
            assert_try_holds(memory_id, card, incident)
    event(f"{len(cards)} cards")


def assert_agrees(memory_id: str, card, incident) -> None:
    answer, first = incident_to_dict(incident), incident.shown
    told = answer.get("result") or answer["facts"][0]
    stops = {stop.label: stop for stop in card.path}
    assert card.limit == told.get("limit")
    if card.limit:
        assert f"{card.limit:,} " in card.enough
    left = stops["left memory"]
    change = steps.step(memory_id, told["left_step"]).change
    (evicted,) = [each for each in change.evicted if each.seq == first.last]
    assert (left.step, evicted.reason) == (told["left_step"], first.cause)
    if over := re.search(r"[\d,]+ over", left.text):
        assert any(
            over[0] in line.label for line in receipts.receipt(change) if line.kind == "over"
        )
    began, again = card.path[0], card.path[-1]
    assert (began.seq, again.seq) == (told["said"], answer["again"])
    assert stops["asked for"].seq == answer["asked"] if answer["asked"] else len(stops) == 3
    memory = {row.seq for row in windows.outline(memory_id, incident.step - 1).rows}
    assert first.last not in memory


def assert_try_holds(memory_id: str, card, incident) -> None:
    """Memory holds the fact in the replay that Try shows, and not with one less."""
    for limit, holds in ((card.limit, True), (card.limit - 1, False)):
        if limit >= 1:
            query = ConversationQuery(at=incident.step - 1, room_parameters={"limit": f"{limit}"})
            window = simulated_state(memory_id, query, None).window
            if incident.result:
                assert (incident.result.last in window.seqs) is holds
                continue
            held = {fact for seq in window.seqs for fact in facts_in(memory_id, seq)}
            assert (incident.fact in held) is holds


def facts_in(memory_id: str, seq: int) -> frozenset[str]:
    return facts_of(history.message(memory_id, seq).message)


def assert_card_and_message_agree(memory_id: str) -> int:
    """A card and the page of the fact's last mention have the same limit."""
    compared = 0
    for incident in incidents(memory_id).incidents:
        for part in (*incident.facts, *filter(None, [incident.result])):
            query = ConversationQuery(at=part.left_step, msg=part.last, open=frozenset({SECTION}))
            answer = conversation_state(memory_id, query).selection.would_keep
            if answer and answer.needed == incident and answer.need.fact == part and part.keeping:
                compared += 1
                assert answer.keeping == part.keeping
    return compared


@given(forgetful)
@examples(40)
def test_a_message_never_contradicts_its_card(conversation):
    messages, policy = conversation
    memory_id = f"both-{next(NUMBERS)}"
    create_and_keep(memory_id, policy, messages)
    assert_card_and_message_agree(memory_id)


# Costs


def test_a_card_costs_a_bounded_number_of_queries(operator_client, order):
    order()
    with CaptureQueriesContext(connection) as with_card:
        order()
    KeptIncidents.objects.all().delete()
    with CaptureQueriesContext(connection) as without:
        order()
    assert len(with_card) <= len(without) + 8


def test_a_card_among_10_000_messages_reads_its_own_messages_only(operator_client):
    """What is kept here are 6,000 uses and a card, of a conversation that has none of them."""
    long_conversation("c", 10_000)
    create_and_keep(
        "model", MessageWindow(2), [*users("m1 is A-1182"), *numbered(3), *users("A-1182")]
    )
    model = KeptIncidents.objects.get(memory_id="model")
    services.add("c", users("A-1182"))
    (row,) = json.loads(model.content)
    card = changed_row(
        row, again=10_001, step=10_001, facts=[[*row[-1][0][:3], 21, *row[-1][0][4:]]]
    )
    uses = [changed_row(row, kind="used_unseen", again=n, step=n) for n in range(3_000, 9_000)]
    content = json.dumps([*uses, card])
    KeptIncidents.objects.create(
        memory_id="c", step=10_001, version=model.version, kept_at=0, content=content
    )
    with CaptureQueriesContext(connection) as asked:
        assert "1 of 1" in text_of(page_html(operator_client))
    read = [each["sql"] for each in asked if "chatmemory_message" in each["sql"]]
    assert not [sql for sql in read if "8999" in sql]
    assert "6,000 terms would have been missing" in text_of(page_html(operator_client))
    with CaptureQueriesContext(connection) as asked:
        page_html(operator_client, "?used=1")
    assert [each for each in asked if "8999" in each["sql"]]


def changed_row(row: list, **changes) -> list:
    return list(KeptIncident(*row)._replace(**changes))


@pytest.mark.needs("lab")
def test_the_card_of_the_demo(order):
    words = text_of(order())
    assert words.startswith(
        "Why? A-1182 had to be repeated by the user Incident 1 of 1 said #25 Yes, my order number"
    )
    assert "left memory step 43, when #43 arrived: 55 tokens over the limit" in words
    assert "asked for #46 I'm sorry, I no longer have it in front of me. Could you" in words
    assert "repeated #47 A-1182. Two saucers, please." in words
    assert "A limit of 902 tokens would have kept it in memory (today’s limit is 800)." in words
    assert re.search(
        r"Relative cost: 1\.\d\d with this limit, 1\.\d\d with today’s\. .* Copy link", words
    )
    assert words.index("Copy link") < words.index("Step 58")


def test_compare_opens_where_the_remedy_holds_the_fact_and_the_limit_below_does_not():
    under = [TokenWindow(902), TokenWindow(901)]
    found = comparison("order-7741", under, 46, "A-1182")
    assert [each.keeping for each in found.sought.fates] == [Keeping(902), Keeping(902)]
    held = [any(each.has(place, 46) for place in found.sought.mentions) for each in found.policies]
    assert held == [True, False]


@pytest.mark.needs("lab")
def test_the_limit_of_a_card_costs_what_comparisons_say(order, operator_client):
    told = re.search(r"Relative cost: (\S+) with this limit, (\S+) with today’s", text_of(order()))
    address = "/c/order-7741/compare/?policy=token_window:902,token_window:800&as=json"
    costs = [f"{row['relative_cost']:.2f}" for row in operator_client.get(address).json()]
    assert costs == [told[1], told[2]]


def test_a_limit_that_sending_everything_beats_has_no_verb(order, operator_client):
    """On the demo, which it would keep: at 902 tokens prompts cost more than sending everything."""
    assert "Try 902" not in order()
    create_and_keep(
        "cheap", MessageWindow(2), [*users("It is A-1182."), *numbered(3), *users("A-1182")]
    )
    page = text_of(operator_client.get("/c/cheap/").content.decode())
    assert "Try " in page


def test_try_shows_what_memory_would_have_held(order):
    page = order("?at=46&limit=902")
    assert "Replay of step 46 with a limit of 902." in page
    words = text_of(page)
    assert "What would memory hold with a limit of 902?" in words
    assert "It would also hold #26, #27 and #28." in words
    assert 'id="composer"' not in page
    assert 'href="/c/order-7741/?at=46"' in page  # back to what happened
    assert "/c/order-7741/?at=47&amp;limit=902" in page  # a step further in the replay
    assert "Why is #26 still in memory?" in order("?at=46&limit=902&msg=26")
    gone = text_of(order("?at=46&limit=902&msg=25&open=kept"))
    assert "No. With 902 tokens from the first message on, memory would not hold it" in gone
    assert "Which limit would have kept this message?" not in gone


@pytest.mark.parametrize("limit", [901, 902])
def test_try_holds_what_a_conversation_under_that_limit_holds(limit):
    said = history.all_messages("order-7741", 46)
    create_and_add("real", TokenWindow(limit), said)
    state = simulated_state(
        "order-7741", ConversationQuery(at=46, room_parameters={"limit": f"{limit}"}), None
    )
    assert state.window.seqs == windows.window("real").seqs
    assert (26 in state.window.seqs) is (limit == 902)
    assert windows.window("order-7741", 46).policy == TokenWindow(800)


def test_one_leafs_through_several(operator_client):
    create_and_keep("c", MessageWindow(2), TWICE)
    heads = []
    for number in (1, 2):
        page = page_html(operator_client, f"?at=8&incident={number}")
        heads.append(
            re.search(r"Why\? A-1182 was repeated by the user .* repeated #(\d)", text_of(page))[1]
        )
        assert f"{number} of 2" in text_of(page)
        for other in (number - 1, number + 1):
            link = f'href="/c/c/?at=8&amp;incident={other}"'
            assert (link in page) is (other in (1, 2))
    assert heads == ["7", "4"]
    assert "2 of 2" in text_of(page_html(operator_client, "?incident=9"))
    assert "1 of 1" in text_of(page_html(operator_client, "?at=5&incident=1"))


def test_a_link_of_a_card_keeps_the_incident_for_which_its_message_answers(operator_client):
    create_and_keep("c", MessageWindow(2), TWICE)
    for number, again in ((1, 7), (2, 4)):
        words = text_of(page_html(operator_client, f"?at=8&msg=1&incident={number}&open=kept"))
        assert f"just before #{again}, in which A-1182 came up again" in words


def test_a_message_is_answered_for_when_it_was_next_needed(order):
    words = text_of(order("?at=43&msg=25&open=kept"))
    assert "925 tokens or more. With that limit from the first message on, #25 would still" in words
    assert "in memory just before #47, in which A-1182 came up again." in words
    assert "A limit of 902 tokens was enough for A-1182: #28 mentions it too." in words
    assert "902 tokens or more." in text_of(order("?msg=28&open=kept"))
    compared = "policy=token_window%3A925&amp;at=46&amp;phrase=A-1182"
    assert compared in order("?at=43&msg=25&open=kept")


def test_no_message_of_the_tau_bench_runs_contradicts_its_card(data_file):
    content = data_file("tau_bench_airline.openai_chat.json").read_bytes()
    compared = 0
    for n, run in enumerate(read_transcripts(content).transcripts[:12]):
        create_and_keep(f"run-{n}", TokenWindow(2000), run.messages)
        compared += assert_card_and_message_agree(f"run-{n}")
    assert compared > 10
