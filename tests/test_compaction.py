"""Compaction: a summary takes the place of messages, which stay in history."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    InvalidValue,
    MemoryNotFound,
    MessageNotFound,
    MessageTooLarge,
    MessageWindow,
    MessageWindowChatMemory,
    NoRoomBesidePins,
    NotCompactable,
    NotPinnable,
    SystemMessage,
    TokenWindow,
    UserMessage,
    VersionConflict,
    services,
)
from chatmemory.explain import captions, receipts
from chatmemory.explain.reasons import why_left
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.models import Message, Stay, Step
from chatmemory.reading import conversations
from chatmemory.reading import steps as steps_reads
from chatmemory.reading import windows as windows_reads
from chatmemory.reading.summaries import (
    GENERATIONS,
    coverage_by_summary,
    covered_by,
    summaries_covering,
)
from chatmemory.stores.database import DjangoChatMemoryStore
from inspector.conversation.state import conversation_state
from inspector.shell.state import ConversationQuery

from .conversations import BRIEF, CALL, RESULT, create_and_add, seqs, users
from .properties import examples

pytestmark = pytest.mark.django_db
REFUSED = (NotCompactable, MessageNotFound, NotPinnable, NoRoomBesidePins)


@pytest.fixture
def talk(db) -> str:
    """A system message, an exchange with a tool, and what followed."""
    said = [BRIEF, UserMessage("Where is A-1182?"), CALL, RESULT]
    create_and_add("m", MessageWindow(10), [*said, AiMessage("On its way."), UserMessage("Thanks")])
    return "m"


def test_a_summary_takes_the_place_of_the_first_message(talk):
    result = services.compact(talk, "They asked for a parcel.", keep_last=1, actor="ada")
    assert (result.kind, result.step, result.seq) == ("compact", 7, 7)
    assert seqs() == [1, 7, 6]
    assert seqs(at=6) == [1, 2, 3, 4, 5, 6]
    summary = Message.objects.get(seq=7)
    assert (summary.origin, summary.text) == ("SYNTHETIC", "They asked for a parcel.")
    assert [m.text for m in Message.objects.filter(origin="SAID")][-1] == "Thanks"
    covered = Stay.objects.filter(reason="SUMMARIZED").order_by("seq")
    assert [(stay.seq, stay.left_step) for stay in covered] == [(2, 7), (3, 7), (4, 7), (5, 7)]
    step = Step.objects.get(n=7)
    assert (step.kind, step.actor, step.seq, step.count_after) == ("compact", "ada", 7, 3)
    assert verify(talk) is None


def test_it_stays_until_another_covers_it(talk):
    services.compact(talk, "First.", keep_last=1)
    services.add(talk, users(*"abcdefghij"))
    assert seqs() == [1, 7, *range(10, 18)]
    services.compact(talk, "Second.", keep_last=2)
    assert seqs() == [1, 18, 16, 17]
    assert verify(talk) is None


def test_captions_and_reasons_describe_a_compaction(talk):
    change = services.compact(talk, "They asked for a parcel.", covering=[2, 3, 4, 5])
    told = steps_reads.step(talk, 7).change
    assert told == change
    assert captions.caption(told).summary == ("4 messages became summary #7. 36 tokens became 10.")
    assert why_left(told, 3).summary == (
        "A summary took its place. #7 arrived at step 7; history keeps #3."
    )
    first, *_, last = receipts.receipt(told)
    assert (first.amount, last.amount) == (6, 3)


@pytest.mark.parametrize(
    ("arguments", "error", "why"),
    [
        ({"covering": [1, 2]}, NotCompactable, "the system message at the head stays"),
        ({"covering": [2]}, NotCompactable, "at least two"),
        ({"covering": []}, NotCompactable, "at least two"),
        ({"keep_last": 9}, NotCompactable, "at least two"),
        ({"covering": [2, 3]}, NotCompactable, "together with its results"),
        ({"covering": [4, 5]}, NotCompactable, "together with its results"),
        ({"covering": [5, 99]}, MessageNotFound, "#99 is not in memory, so no summary"),
        ({"covering": "25"}, InvalidValue, "a list of whole numbers"),
        ({"covering": [2, True]}, InvalidValue, "a list of whole numbers"),
        ({"keep_last": -1}, InvalidValue, "from 0 on"),
        ({"keep_last": 1, "keep_tokens": 1}, InvalidValue, "one of covering"),
        ({}, InvalidValue, "one of covering"),
        ({"keep_last": 1, "expected_version": 3}, VersionConflict, "at version 6"),
    ],
)
def test_messages_that_cannot_be_covered_are_named(talk, arguments, error, why):
    with pytest.raises(error, match=why):
        services.compact(talk, "S", **arguments)
    assert (seqs(), Step.objects.count()) == ([1, 2, 3, 4, 5, 6], 6)


def test_the_page_says_how_many_of_the_terms_stay_in_other_messages(operator_client):
    create_and_add("c", MessageWindow(20), users("A-1182 and B-2291", "two", "A-1182", "four"))
    form = {"summary": "In short.", "step": 4, "first": 1, "last": 2, "append_terms": 0}
    told = page_words(operator_client.post("/c/c/compact/", form))
    lost = (
        "The summary alone would lose 2 exact terms. "
        "Messages that stay also contain 1 of these terms."
    )
    assert lost in told


@pytest.mark.parametrize("by_memory", [True, False])
def test_a_call_that_stays_still_waits(db, by_memory):
    create_and_add("m", MessageWindow(10), [*users("a", "b"), CALL])
    if by_memory:
        MessageWindowChatMemory("m", 10, DjangoChatMemoryStore()).compact("S", keep_last=1)
    else:
        services.compact("m", "S", keep_last=1)
    assert conversation_state("m", ConversationQuery()).waiting_call == 3
    assert verify("m") is None


def test_a_pinned_message_and_an_open_call_cannot_be_covered(db):
    create_and_add("m", MessageWindow(10), [*users("a", "b"), CALL])
    with pytest.raises(NotCompactable, match="that waits for results"):
        services.compact("m", "S", covering=[1, 2, 3])
    services.pin("m", 1)
    with pytest.raises(NotCompactable, match="unpin the message first"):
        services.compact("m", "S", covering=[1, 2])
    with pytest.raises(MemoryNotFound):
        services.compact("other", "S", keep_last=1)


def test_a_summary_that_is_too_long_is_refused_with_the_sum(db):
    create_and_add("m", TokenWindow(60), users("one", "two", "three"))
    with pytest.raises(NotCompactable, match=r"would hold \d+ of 60 tokens: replace more"):
        services.compact("m", "word " * 80, covering=[1, 2])
    assert seqs() == [1, 2, 3]


def test_exact_terms_stand_behind_the_text(talk):
    services.compact(talk, "A parcel.", keep_last=1, append_terms=5)
    assert Message.objects.get(seq=7).text == "A parcel.\n\nExact terms: A-1182"


def test_terms_for_which_there_is_no_room_are_left_out(db):
    said = users(*(f"order A-{n} of {n}" for n in range(1000, 1020)))
    create_and_add("m", TokenWindow(400), said)
    services.compact("m", "Orders.", keep_last=2, append_terms=50)
    (summary,) = Message.objects.filter(origin="SYNTHETIC")
    services.compact("m", "Orders. " * 160, keep_last=1, append_terms=50)
    longer = Message.objects.filter(origin="SYNTHETIC").last()
    assert summary.text.count("A-1") == 18
    assert 0 < longer.text.count("A-1") < 18
    assert windows_reads.window("m").load <= 400
    assert verify("m") is None


def test_terms_make_no_summary_longer_than_a_text_may_be(db, settings):
    settings.CHATMEMORY = {"TEXT_CHARACTERS": 1_000}
    create_and_add("m", MessageWindow(9), users(*(f"A-{n:0150}" for n in range(9))))
    services.compact("m", "x" * 500, keep_last=0, append_terms=9)
    (summary,) = Message.objects.filter(origin="SYNTHETIC")
    assert summary.text.count("A-") == 3
    services.add("m", users("x"))
    with pytest.raises(MessageTooLarge):
        services.compact("m", "x" * 1_001, keep_last=0)


def test_a_summary_of_many_summaries_stands_for_all_of_them(db):
    """Behind the first generations, all are read at once."""
    create_and_add("m", MessageWindow(9), users("first"))
    for n in range(2 * GENERATIONS):
        services.add("m", users(f"message {n}"))
        newest = services.compact("m", f"summary {n}", keep_last=0).seq
    kept = coverage_by_summary("m", [newest])[newest]
    assert (kept.runs, kept.number, kept.seqs) == ((range(1, newest),), 2 * GENERATIONS + 1, ())
    opened = coverage_by_summary("m", [newest], newest)[newest]
    assert opened.seqs == (1, *range(2, newest, 2))
    assert [each.seq for each in summaries_covering("m", 1)] == [*range(3, newest + 1, 2)]


def test_summaries_are_followed_however_many_there_are():
    chain = {n: {n - 1: 1} for n in range(1, 5_000)}
    assert covered_by(chain, 4_999) == {0: 1}


@examples(100)
@given(
    st.sampled_from([MessageWindow(6), TokenWindow(80), MessageWindow(5, low_water=0.5)]),
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sampled_from(["call", "result", "user", "ai", "system"])),
            st.tuples(st.just("keep"), st.integers(0, 3)),
            st.tuples(st.just("tokens"), st.integers(0, 60)),
            st.tuples(st.just("cover"), st.lists(st.integers(1, 30), max_size=5)),
            st.tuples(st.sampled_from(["pin", "unpin"]), st.integers(1, 12)),
            st.tuples(st.just("clear"), st.none()),
        ),
        max_size=16,
    ),
)
def test_whatever_is_compacted_the_ledger_holds(db, policy, sequence):
    said = {
        "call": CALL,
        "result": RESULT,
        "user": UserMessage("where is it"),
        "ai": AiMessage("there"),
        "system": SystemMessage("brief"),
    }
    services.create("m", policy)
    windows = {0: []}
    try:
        for kind, value in sequence:
            before = seqs()
            try:
                change(kind, value, said)
            except REFUSED:
                assert seqs() == before
            memory = conversations.memory("m")
            windows[memory.last_step] = seqs()
        assert verify("m") is None
        for step, window in windows.items():
            if step:
                assert [row.seq for row in windows_reads.window("m", step).rows] == window
        stands = {
            stay.seq: Step.objects.get(n=stay.left_step).seq
            for stay in Stay.objects.filter(reason="SUMMARIZED")
        }
        origins = dict(Message.objects.values_list("seq", "origin"))
        assert {origins[summary] for summary in stands.values()} <= {"SYNTHETIC"}
    finally:
        services.delete("m")


def change(kind, value, said):
    match kind:
        case "add":
            services.add("m", [said[value]])
        case "keep":
            services.compact("m", "In short.", keep_last=value)
        case "tokens":
            services.compact("m", "In short.", keep_tokens=value)
        case "cover":
            services.compact("m", "In short.", covering=value)
        case "pin":
            services.pin("m", value)
        case "unpin":
            services.unpin("m", value)
        case "clear":
            services.clear_messages("m")


URL = "/api/v1/memories/m/compact/"


def test_the_api_compacts(talk, api):
    body = {"summary": "A parcel.", "keep_last": 1, "trigger": "auto"}
    assert api.post(URL, body, headers={"If-Match": '"3"'}).status_code == 412
    answer = api.post(URL, body, headers={"Idempotency-Key": "k"})
    assert (answer.status_code, answer["ETag"]) == (200, '"7"')
    assert api.post(URL, body, headers={"Idempotency-Key": "k"}).json() == answer.json()
    (change,) = answer.json()["changes"]
    assert {each["reason"] for each in change["evicted"]} == {"SUMMARIZED"}
    assert Step.objects.get(n=7).note == "auto"
    assert (
        api.get("/api/v1/memories/m/messages/2/").json()["why"]["summary"].startswith("A summary")
    )


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({"summary": "S"}, 422, "one of covering"),
        ({"summary": " ", "keep_last": 1}, 422, "blank"),
        ({"summary": "S", "keep_last": 1, "covering": [2, 3]}, 422, "one of covering"),
        ({"summary": "S", "covering": [1, 2]}, 409, "the system message at the head stays"),
        ({"summary": "S", "covering": [2, 99]}, 404, "#99 is not in memory, so no summary"),
        ({"summary": "S", "covering": 5}, 422, "must be a list of seqs"),
        ({"summary": "S", "keep": 5}, 400, "unknown member"),
    ],
)
def test_the_api_says_why_it_does_not(talk, api, body, status, told):
    answer = api.post(URL, body)
    assert (answer.status_code, told in answer.json()["detail"]) == (status, True)
    assert seqs() == [1, 2, 3, 4, 5, 6]


def test_pages_say_what_a_summary_stands_for(talk, operator_client):
    services.compact(talk, "First.", keep_last=1)
    services.add(talk, users("and", "then"))
    services.compact(talk, "Second.", keep_last=1)
    page = operator_client.get("/c/m/").content.decode()
    assert "replaces 6 messages" in page
    page = operator_client.get("/c/m/?msg=10").content.decode()
    words = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "Summary #10" in words
    assert "It is a summary. It stays until another summary replaces it" in words
    covered = coverage_by_summary("m", [10], 10)[10]
    assert covered.seqs == (2, 3, 4, 5, 6, 8)
    assert covered.runs == (range(2, 9),)
    assert f"This summary replaces 6 messages in memory: {covered.tokens} tokens became" in words
    assert 'href="/c/m/?msg=3"' in page
    page = operator_client.get("/c/m/?at=7").content.decode()
    assert "4 messages became summary #7. 36 tokens became 6." in " ".join(page.split())
    assert "summarised at step 7" in page
    assert coverage_by_summary("m", [7, 10, 1])[7] == ((range(2, 6),), 4, 36, ())


def test_a_page_without_summaries_asks_for_none(talk, operator_client):
    with CaptureQueriesContext(connection) as asked:
        operator_client.get("/c/m/")
    assert not [each for each in asked if "SUMMARIZED" in each["sql"]]


# Lists of clients

S, A, B, C, D = SystemMessage("S"), *users("a", "b", "c", "d")
SUM, NEW = UserMessage("They talked."), AiMessage("new")
MARKED = UserMessage(
    "They talked.",
    attributes={"langchain": {"differs": {"additional_kwargs": {"lc_source": "summarization"}}}},
)


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ([S, A, B, C], [S, SUM, C], ["compact"]),
        ([A, B, C], [SUM, C], ["compact"]),
        ([S, A, B, C], [S, MARKED], ["compact"]),
        ([S, A, B, C, D], [S, SUM, D, NEW], ["compact", "add"]),
        ([S, A, B, C, D], [S, SUM, D, NEW, UserMessage("more")], ["compact", "set"]),
        ([S, A, B, C], [S, MARKED, NEW], ["compact", "add"]),
        # A window that slid, or a list that was set
        ([S, A, B, C], [S, C, NEW], ["add"]),
        ([S, A, B, C], [S, SUM, NEW], ["set"]),
        ([S, A, B], [S, SUM, B], ["set"]),
        ([S, A, B, C], [S, A, SUM], ["set"]),
        ([S, A, B, C], [S, SUM], ["add"]),
        ([S, A, B, C], [SystemMessage("T"), B, C, NEW], ["set"]),
        ([S, A, CALL, RESULT], [S, SUM, RESULT], ["set"]),
    ],
)
def test_a_list_of_a_client_is_read(db, before, after, kinds):
    protocol.update_messages("c", before)
    last = conversations.memory("c").last_step
    protocol.update_messages("c", after)
    steps = Step.objects.filter(memory="c", n__gt=last).order_by("n")
    assert [step.kind for step in steps] == kinds
    assert all(step.by_client for step in steps)
    assert protocol.get_messages("c") == after
    assert verify("c") is None


def test_a_client_that_changes_its_system_prompt_each_turn_compacts_nothing(db):
    said = [each for n in range(30) for each in (UserMessage(f"q{n}"), AiMessage(f"a{n}"))]
    for turn in range(2, len(said), 2):
        window = [SystemMessage(f"It is turn {turn}."), *said[:turn][-9:]]
        protocol.update_messages("c", window)
    assert not Step.objects.filter(kind="compact").exists()
    assert verify("c") is None


# The page


def page_words(page) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page.content.decode()).split())


FORM = {"summary": "A parcel.", "step": 6, "first": 2, "last": 5, "append_terms": 0}


def test_the_page_shows_what_a_summary_would_lose_and_stores_nothing(talk, operator_client):
    page = operator_client.get("/c/m/compact/")
    assert "before anything is stored" in page_words(page)
    told = page_words(operator_client.post("/c/m/compact/", FORM))
    assert "#2 to #5: 4 messages, 36 tokens. 2 other messages in memory." in told
    assert re.search(r"4 messages would become one summary, 36 tokens would become \d+\.", told)
    assert "The summary alone would lose 1 exact term. A-1182" in told
    told = page_words(operator_client.post("/c/m/compact/", FORM | {"append_terms": 10}))
    assert "would lose 1 exact term. All terms would be appended to the summary: A-1182" in told
    assert (seqs(), Step.objects.count()) == ([1, 2, 3, 4, 5, 6], 6)


def test_the_page_compacts(talk, operator_client):
    form = FORM | {"append_terms": 10, "store": 1}
    assert operator_client.post("/c/m/compact/", form).url == "/c/m/"
    assert seqs() == [1, 7, 6]
    assert Message.objects.get(seq=7).text == "A parcel.\n\nExact terms: A-1182"
    assert 'href="/c/m/compact/"' in operator_client.get("/c/m/settings/").content.decode()


def test_chosen_messages_stay_chosen_whatever_comes_and_leaves_meanwhile(talk, operator_client):
    services.compact(talk, "They asked.", covering=[2, 3, 4])
    form = FORM | {"step": 7, "first": 3, "last": 2}  # in any order: #7 and #5
    services.add("m", users(*"abcdef"))
    told = page_words(operator_client.post("/c/m/compact/", form))
    assert "#7 to #5: 2 messages" in told
    services.add("m", users(*"ghi"))  # #5 leaves
    page = operator_client.post("/c/m/compact/", form)
    assert page.status_code == 422
    assert "essage #5 is not in memory, so no summary can replace it." in page_words(page)
    assert "A parcel." in page.content.decode()
    ends = re.findall(r'value="(\d+)"\s+aria-label="(?:First|Last) message', page.content.decode())
    assert ends == ["2", "2"]  # the summary is what is left of the choice


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"summary": ""}, "Write or paste a summary first."),
        ({"last": 2}, "A summary must replace at least two messages."),
        ({"first": 1}, "The system message at the head stays: no summary can replace it"),
        ({"last": 3}, "A summary must replace a tool call together with its results."),
        ({"last": 6}, "A summary cannot replace a pinned message: unpin the message first."),
        ({"summary": "long " * 900}, "With this summary memory would hold"),
        ({"first": 0}, "greater than or equal to 1"),
        ({"append_terms": 7}, "not one of the available choices"),
    ],
)
def test_the_page_says_why_it_does_not_and_loses_nothing(talk, operator_client, form, told):
    services.change(talk, policy=TokenWindow(500))
    services.pin(talk, 6)
    form = FORM | {"step": 8, "store": 1} | form
    page = operator_client.post("/c/m/compact/", form)
    assert (page.status_code, told in page_words(page)) == (422, True)
    text = form["summary"].strip()
    assert text in page.content.decode()
    if form["first"]:
        assert f'value="{form["last"]}"' in page.content.decode()
    assert len(seqs()) == 6


def test_the_tape_of_a_long_memory_is_bounded(db, operator_client):
    create_and_add("m", MessageWindow(2000), users(*map(str, range(1000))))
    with CaptureQueriesContext(connection) as asked:
        page = operator_client.get("/c/m/compact/")
    assert page.content.partition(b'id="main"')[2].count(b"<li class=") == 112
    assert "#1 to #996: 996 messages" in page_words(page)
    assert len(asked) <= 6


def test_brackets_lie_under_what_summaries_stand_for(talk, operator_client):
    def bracket(address: str) -> str:
        page = operator_client.get(address).content.decode()
        drawn = r'aria-label="Messages that summaries replaced">\s*<path d="([^"]*)"'
        return re.findall(drawn, page)

    services.compact(talk, "First.", keep_last=1)
    services.add(talk, users("and", "then"))
    services.compact(talk, "Second.", keep_last=1)
    assert bracket("/c/m/?at=6") == []
    assert bracket("/c/m/?at=7") == ["M1 0V3H5V0"]
    assert bracket("/c/m/") == ["M1 0V3H6V0M7 0V3H8V0"]  # not the summary at step 7
    create_and_add("long", MessageWindow(500), users(*map(str, range(150))))
    services.compact("long", "Numbers.", keep_last=2)
    assert bracket("/c/long/") == ["M31 3H148V0"]  # it goes on at the left


def test_a_summary_opens_to_what_it_stands_for_in_parts(db, operator_client):
    create_and_add("m", MessageWindow(500), users(*map(str, range(250))))
    services.compact("m", "Numbers.", keep_last=2)
    row = page_words(operator_client.get("/c/m/"))
    assert re.search(r"Numbers\. replaces 248 messages of [\d,]+ tok", row)
    first = operator_client.get("/c/m/?msg=251").content.decode()
    assert "and 148 more" in first
    assert 'href="/c/m/?msg=251&amp;past=100"' in first
    last = page_words(operator_client.get("/c/m/?msg=251&past=200"))
    assert "200 earlier messages," in last
    assert "#248" in last
    services.add("m", users("and"))
    history = operator_client.get("/c/m/?msg=2").content.decode()
    assert re.search(r'<a class="tag tag--link"\s+href="/c/m/\?at=251"', history)
    with CaptureQueriesContext(connection) as asked:
        operator_client.get("/c/m/?msg=251")
    assert len(asked) <= 30


def test_after_a_redaction_the_page_names_the_summaries_that_are_left(talk, operator_client):
    services.compact(talk, "About A-1182.", keep_last=1)
    services.add(talk, users("and"))
    services.compact(talk, "Still A-1182.", keep_last=1)
    services.redact(talk, 2, summaries=[7])
    told = page_words(operator_client.get("/c/m/?msg=2"))
    replaces = "replaces this message in memory and may contain its exact terms."
    assert f"Summary #9 {replaces} The summary is not redacted." in told
    assert "Summary #7" not in told


@examples(40)
@given(
    st.lists(st.sampled_from(["A-1182", "b/c2.py", "nothing", "v1.2.3 of A-7"]), max_size=8),
    st.integers(0, 4),
    st.integers(0, 5),
)
def test_a_compaction_does_what_its_preview_shows(db, said, keep_last, terms):
    create_and_add("p", TokenWindow(300), users(*said))
    options = {"keep_last": keep_last, "append_terms": terms}
    try:
        preview = services.preview_compaction("p", "In short.", **options)
    except NotCompactable as error:
        with pytest.raises(NotCompactable, match=str(error)):
            services.compact("p", "In short.", **options)
    else:
        assert services.compact("p", "In short.", **options) == preview.change
        summary = Message.objects.get(memory="p", origin="SYNTHETIC").text
        assert summary.count("\n") == max(0, preview.appended + (preview.appended > 0))
        assert all(term in summary for term in preview.terms[: preview.appended])
    finally:
        services.delete("p")
