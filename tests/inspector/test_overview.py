"""The overview. What it says is in tests/golden."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from chatmemory import AiMessage, SystemMessage, UserMessage, services
from chatmemory.ledger import protocol, slices
from chatmemory.reading import conversations, steps
from chatmemory.reading import finding as searching
from chatmemory.reading.feed import feed, microseconds
from chatmemory.reading.finding import MENTIONS_COUNTED
from chatmemory.reading.overview import overview_stats
from chatmemory.services import keepers
from chatmemory.windows.policies import MessageWindow, TokenWindow
from inspector import demo
from inspector.overview import cases, causes, selection
from inspector.templatetags.inspector import ago
from inspector.views import overview

from ..conversations import create_and_add, keep, numbered, users
from ..images import made_once
from ..messages.letters import CALL
from . import markup


def say(memory_id: str, *words: str) -> None:
    services.add(memory_id, users(*words))


def test_the_examples_can_be_added_by_a_button(operator_client):
    assert operator_client.get("/demo/").status_code == 405
    operator_client.post("/demo/", follow=True)
    page = operator_client.post("/demo/", follow=True).content.decode()
    assert "order-7741" in page
    assert "lisbon-guide" in page


def test_headline_numbers_are_kept_for_a_while_and_say_when_they_were_counted(
    operator_client, memory_id, monkeypatch
):
    monkeypatch.setattr(causes, "LEAST_SECONDS", 30)
    first = operator_client.get("/").context["headlines"]
    say(memory_id, *"abcdef")
    again = operator_client.get("/")
    assert again.context["headlines"] == first
    assert f"{first.counted.at:%H:%M:%S}" in again.content.decode()
    monkeypatch.undo()
    assert [causes.kept_seconds(took) for took in (0.001, 0.2, 9)] == [1, 4, 30]


def test_a_deleted_conversation_is_not_counted(operator_client, api, fleet):
    """The numbers are kept for a while, but no longer than until the next deletion."""
    before = operator_client.get("/").context["headlines"].counted.stats.conversations
    api.delete("/api/v1/memories/dangling/")
    page = operator_client.get("/")
    assert page.context["headlines"].counted.stats.conversations == before - 1
    assert f"of {before - 1} conversations" in " ".join(page.text.split())


def test_conversations_that_no_keeper_has_examined_are_counted(operator_client, fleet):
    """Nothing is said to need nobody before it was looked at."""
    assert "not checked for problems yet" not in operator_client.get("/").text
    create_and_add("new", MessageWindow(5), users("hello"))
    say("oversized", "one more")
    causes.forget_headlines()
    page = operator_client.get("/")
    assert page.context["headlines"].counted.stats.unexamined == 2
    said = " ".join(page.text.split())
    assert "of 4 conversations · 2 conversations not checked for problems yet" in said


@pytest.mark.needs("evidence")
def test_the_time_until_all_are_examined_follows_from_the_last_minute(
    operator_client, fleet, monkeypatch
):
    monkeypatch.setattr("chatmemory.reading.overview.RATED", 3)
    now = microseconds(timezone.now())
    model = keepers()[-1].model
    for n, row in enumerate(model.objects.order_by("memory_id")):
        model.objects.filter(pk=row.pk).update(kept_at=now - n * 15_000_000)
    for n in range(6):
        create_and_add(f"new-{n}", MessageWindow(5), users("hello"))
    causes.forget_headlines()
    page = " ".join(operator_client.get("/").text.split())
    assert model.objects.filter(kept_at__gte=now - 60_000_000).count() == 3
    unchecked = "· 6 conversations not checked for problems yet (about 60 s left)"
    assert f'{unchecked} <progress max="9" value="3"' in page
    model.objects.update(kept_at=now - 120_000_000)
    causes.forget_headlines()
    _, _, after = operator_client.get("/").text.partition("not checked for problems yet")
    assert "about" not in after[:40]


@pytest.mark.parametrize(
    ("query", "shown", "hidden"),
    [
        ("?q=parcel", "alpha", "beta"),
        ("?q=bet", "beta", "alpha"),
        ("?policy=token_window", "beta", "alpha"),
        ("?active=1&sort=said", "alpha", "nobody"),
    ],
)
def test_it_filters(operator_client, db, query, shown, hidden):
    services.create("alpha", MessageWindow(3))
    services.create("beta", TokenWindow(100))
    say("alpha", "where is my parcel?")
    page = operator_client.get(f"/{query}").content.decode()
    assert f"/c/{shown}/" in page
    assert f'href="/c/{hidden}/"' not in page


def test_most_that_left_goes_by_the_number_that_is_shown(operator_client, db):
    """Also where clients put messages into memory that nobody said, which leave as others do."""
    for number in range(1, 5):
        services.create(f"m{number}", MessageWindow(2))
        say(f"m{number}", *"abcd"[:number])
        client, words = f"client{number}", [UserMessage(f"said {n}") for n in range(number)]
        protocol.update_messages(client, words)
        facts = [UserMessage(f"fact {n}") for n in range(number * 3 % 5)]
        protocol.update_messages(client, [*words[:1], *facts, *words[1:]])
        protocol.update_messages(client, [*words[:1], *facts[: number % 2]])
    shown = [
        row.memory.left_count for row in operator_client.get("/?sort=forgotten").context["rows"]
    ]
    assert shown == sorted(shown, reverse=True)
    assert len(set(shown)) > 3


def test_what_was_said_is_in_memory_or_has_left_beside_summaries(operator_client, db):
    """On the timeline: 6 said, 2 of them in memory beside a summary, and 4 left."""
    services.create("m", MessageWindow(5))
    say("m", *"abcd")
    for n in (1, 2):
        services.compact("m", f"Summary {n}.", keep_last=1)
        say("m", f"more {n}")
    page = operator_client.get("/c/m/")
    amounts = [
        getattr(page.context["page"], name).load for name in ("history", "kept", "forgotten")
    ]
    assert (amounts, page.context["page"].injected_count) == ([6, 3, 4], 1)
    words = " ".join(re.sub(r"<[^>]+>", "", page.text).split())
    assert re.search(r"3 msg · \d+ tok · 1 not in history", words)


@pytest.mark.parametrize("sort", ["activity", "said", "forgotten"])
def test_pages_are_stable_both_ways(operator_client, db, monkeypatch, sort):
    monkeypatch.setattr(overview, "PAGE_SIZE", 10)
    for number in range(25):
        services.create(f"m{number:02}", MessageWindow(3))
    url, seen = f"/?sort={sort}", []
    while url:
        context = operator_client.get(url).context
        seen.append([row.memory.id for row in context["rows"]])
        url = context["older"] and f"/{context['older']}"
    everyone = [memory_id for page in seen for memory_id in page]
    assert len(everyone) == len(set(everyone)) == 25
    back = operator_client.get(f"/{context['newer']}").context
    assert [row.memory.id for row in back["rows"]] == seen[-2]


def test_a_blank_id_can_be_seen_and_pressed(operator_client, db):
    services.create(" ", MessageWindow(3))
    (link,) = markup.tree(operator_client.get("/").text).findall(".//td[@class='who']/a")
    assert (link.get("href"), "".join(link.itertext()).strip()) == ("/c/~20/", "“ ”")


def test_htmx_gets_the_table_and_a_restore_the_page(operator_client, memory_id):
    fragment = operator_client.get("/", headers={"HX-Request": "true"})
    assert markup.roots(fragment) == [("title", None), ("div", "conversation-table")]
    assert "HX-Request" in fragment["Vary"]
    restore = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    assert b"<!DOCTYPE html>" in operator_client.get("/", headers=restore).content


def test_it_takes_a_bounded_number_of_queries(operator_client, db, django_assert_max_num_queries):
    for number in range(26):
        create_and_add(f"m{number}", MessageWindow(2), users(*"abc"))
    with django_assert_max_num_queries(18):
        operator_client.get("/")


def chips(page) -> dict[str, tuple[int, bool]]:
    return {chip.label: (chip.count, chip.pressed) for chip in page.context["query"].chips}


def row_of(page, memory_id: str) -> str:
    html = page.content.decode()
    return " ".join(html.split(f'<tr data-id="{memory_id}">')[1].split("</tr>")[0].split())


@made_once
def fleet() -> None:
    """Two conversations with flags and one without, under three policies."""
    create_and_add(
        "dangling",
        MessageWindow(5),
        [UserMessage("hi"), CALL, UserMessage("well?")],
        {"team": "blue"},
    )
    create_and_add(
        "oversized",
        TokenWindow(12),
        [UserMessage("hi"), UserMessage("too long " * 30)],
        {"team": "green"},
    )
    protocol.update_messages("bare", users("a refund"))
    keep()


def test_filters_count_what_they_would_show(operator_client, fleet):
    page = operator_client.get("/")
    assert chips(page) == {
        "Active today": (3, False),
        "Message window": (1, False),
        "Token window": (1, False),
        "Client decides": (1, False),
    }
    page = operator_client.get("/?policy=token_window")
    assert chips(page)["Token window"] == (1, True)
    assert chips(page)["Message window"] == (1, False), "another policy replaces this one"
    found = chips(operator_client.get("/?q=refund"))
    assert found["Client decides"] == (1, False)
    assert "Message window" not in found, "it would show nothing"


@pytest.mark.parametrize("flag", ["oversized", "dangling"])
def test_conversations_that_need_attention_can_be_listed(operator_client, fleet, flag):
    page = operator_client.get(f"/?flagged={flag}")
    assert [row.memory.id for row in page.context["rows"]] == [flag]
    words = {"oversized": "Oversized message", "dangling": "Tool call without its result"}
    assert chips(page)[words[flag]] == (1, True)
    assert len(operator_client.get("/?flagged=any").context["rows"]) == 2
    assert len(operator_client.get("/?flagged=burnt").context["rows"]) == 3


def test_a_conversation_with_two_flags_counts_once(operator_client, db):
    create_and_add(
        "both",
        TokenWindow(60),
        [UserMessage("hi"), CALL, UserMessage("too long " * 90), UserMessage("x")],
    )
    services.create("other", MessageWindow(3))
    keep()
    flagged = operator_client.get("/").context["headlines"].counted.stats.flagged
    assert flagged["any"] <= flagged["dangling"] + flagged["oversized"]
    assert flagged["any"] == len(operator_client.get("/?flagged=any").context["rows"])


def test_the_order_is_marked_and_can_be_changed_in_the_heads(operator_client, fleet):
    html = operator_client.get("/?sort=fill&policy=client").content.decode()
    marked = html.split('aria-sort="descending"')
    assert len(marked) == 2
    assert "Memory used" in marked[1].split("</th>")[0]
    assert 'href="?policy=client"' in html, "the last activity is the plain order"


def test_labels_are_shown_and_found(operator_client, fleet):
    page = operator_client.get("/?q=EAM:BLU")
    assert [row.memory.id for row in page.context["rows"]] == ["dangling"]
    assert "team:blue" in row_of(page, "dangling")
    assert 'href="?q=EAM%3ABLU&amp;label=team%3Ablue"' in row_of(page, "dangling")
    page = operator_client.get("/?label=team:green")
    assert [row.memory.id for row in page.context["rows"]] == ["oversized"]
    assert chips(page)["team:green"] == (1, True)
    services.create("many", MessageWindow(3), dict.fromkeys("abcdef", "x"))
    (row,) = operator_client.get("/?label=f:x").context["rows"]
    assert row.labels[0][0] == "f:x"


def test_the_label_of_an_import_is_neither_shown_nor_found(operator_client, imported):
    assert "import_digest" not in operator_client.get("/").content.decode()
    assert operator_client.get("/?q=import_digest").context["rows"] == []


def feed_entries() -> list[tuple[str, int]]:
    """What the feed has, the newest first."""
    return [(item.memory_id, item.last.seq) for item in feed()]


def test_what_left_unseen_or_while_a_conversation_was_made_is_not_forgotten_today(db):
    services.create("ours", MessageWindow(1))
    say("ours", "a", "b")
    many = numbered(slices.SLICE + 1)
    services.import_conversation("short", users("a", "b"), MessageWindow(1))
    services.import_conversation("long", many, MessageWindow(1))
    services.branch("long", "copied", users("a draft"))
    assert overview_stats(selection.midnight()).forgotten == 1
    assert feed_entries() == [("ours", 1)]
    for memory_id in ("short", "long", "copied"):
        say(memory_id, "said today")
    assert overview_stats(selection.midnight()).forgotten == 4
    assert {memory_id for memory_id, _ in feed_entries()} == {"ours", "short", "long", "copied"}
    for words in ("ab", "", "c"):
        protocol.update_messages("theirs", users(*words))
    assert overview_stats(selection.midnight()).forgotten == 6
    assert feed_entries()[0] == ("theirs", 2)
    assert conversations.memory("theirs").left_count == 2


def test_a_step_says_that_it_was_imported_or_copied(db):
    services.import_conversation("there", users("a"), MessageWindow(1))
    services.branch("there", "here", users("b"))
    say("here", "c")
    assert steps.step("there", 1).row.note == "imported"
    assert [steps.step("here", n).row.note for n in (1, 2, 3)] == ["branched", "branched", ""]


def test_a_search_shows_the_line_and_whether_it_is_remembered(operator_client, memory_id):
    say(memory_id, "my number is A-1182, thanks", "b", "c", "d", "A-1182 again")
    row = row_of(operator_client.get("/?q=a-1182"), memory_id)
    assert "#5 “<mark>A-1182</mark> again”" in row
    assert "said 2 times" in row
    assert "in memory" in row
    assert f'href="/c/{memory_id}/?find=a-1182"' in row
    say(memory_id, "e", "f", "g")
    row = row_of(operator_client.get("/?q=a-1182"), memory_id)
    assert "left memory at step 8" in row


def test_a_pinned_mention_is_in_memory_however_often_the_words_were_said_since(
    operator_client, memory_id
):
    say(memory_id, "my number is A-1182")
    services.pin(memory_id, 1)
    say(memory_id, *("not A-1182" for _ in range(MENTIONS_COUNTED + 1)), "b", "c", "d")
    row = row_of(operator_client.get("/?q=a-1182"), memory_id)
    assert "#1 “my number is <mark>A-1182</mark>”" in row
    assert "forgotten" not in row


def test_a_statement_of_a_user_comes_before_its_repetition(operator_client, memory_id):
    said = [SystemMessage("Ask for A-1182."), UserMessage("A-1182"), AiMessage("A-1182, fine")]
    services.add(memory_id, said)
    assert "#2 “<mark>A-1182</mark>”" in row_of(operator_client.get("/?q=A-1182"), memory_id)
    say(memory_id, "c")
    row = row_of(operator_client.get("/?q=A-1182"), memory_id)
    assert "#2 “" in row
    assert "left memory at step 4" in row
    assert "still mentioned by #3" in row


def test_a_hit_is_marked_in_any_case_and_script_where_it_is_written(operator_client, memory_id):
    say(memory_id, "İİİİ Ärger <b>mit</b> 返金 " + "x" * 500 + " needle " + "y" * 500)
    for words, marked in (("ärger", "Ärger"), ("返金", "返金"), ("<b>M", "&lt;b&gt;m")):
        row = row_of(operator_client.get("/", {"q": words}), memory_id)
        assert f"<mark>{marked}</mark>" in row
        found = operator_client.get(f"/c/{memory_id}/", {"find": words}).content.decode()
        assert f"<mark>{marked}</mark>" in found
    row = row_of(operator_client.get("/?q=needle"), memory_id)
    assert "“…xxxxxxxxxxxxxxx <mark>needle</mark> yyy" in row
    assert len(row) < 4_000


def test_mentions_are_counted_up_to_100(operator_client, memory_id):
    say(memory_id, *["needle"] * 100)
    assert "said 100 times" in row_of(operator_client.get("/?q=needle"), memory_id)
    say(memory_id, "needle")
    assert "said 100+ times" in row_of(operator_client.get("/?q=needle"), memory_id)


def test_one_or_two_letters_search_ids_and_labels_only(operator_client, memory_id):
    say(memory_id, "zz", "hello")
    note = "searched for in IDs and labels only"
    for query, is_noted in (("?q=zz", True), ("?q=zzz", False), ("", False)):
        page = operator_client.get(f"/{query}").content.decode()
        assert (note in page) == is_noted, query
    row = row_of(operator_client.get("/?q=77"), memory_id)
    assert f'href="/c/{memory_id}/"' in row
    assert "hello" in row, "without a hit, its last message"


def test_a_search_takes_a_bounded_number_of_queries(
    operator_client, db, django_assert_max_num_queries
):
    for number in range(12):
        create_and_add(f"m{number}", MessageWindow(2), users(*["a needle"] * (4 * number)))
    of_a_sample = 2 if connection.vendor == "postgresql" else 0
    with django_assert_max_num_queries(23 + of_a_sample):
        page = operator_client.get("/?q=needle")
    assert all(row.hit for row in page.context["rows"])


def test_a_search_that_finds_too_much_to_count_says_so(operator_client, memory_id, monkeypatch):
    monkeypatch.setattr(searching, "FEW", 2)
    say(memory_id, *["needle"] * 3)
    page = operator_client.get("/?q=needle")
    assert found_words(page) == "1 of 1 conversation", "the page has all of them"
    assert 'data-total="1"' in page.content.decode()
    monkeypatch.setattr(overview, "PAGE_SIZE", 1)
    create_and_add("other", MessageWindow(20), users("needle"))
    say(memory_id, "more")
    page = operator_client.get("/?q=needle")
    assert "said 3 times" in row_of(page, memory_id)
    assert found_words(page) == (
        "1 of many conversations · too many messages contain this to count them all"
    )
    assert {chip.count for chip in page.context["query"].chips} == {None}
    assert 'data-total=""' in page.content.decode()


@pytest.mark.parametrize("words", ["订单", "é", "ü"])
def test_short_words_in_other_letters_are_counted_as_far_as_they_are_shown(
    operator_client, memory_id, monkeypatch, words
):
    monkeypatch.setattr(overview, "PAGE_SIZE", 1)
    found = [found_words(operator_client.get("/", {"q": words}))]
    services.create("other", MessageWindow(20))
    for other in (memory_id, "other"):
        say(other, f"hier {words} da")
        found.append(found_words(operator_client.get("/", {"q": words})))
    assert found[:2] == ["0 of 0 conversations", "1 of 1 conversation"]
    if connection.vendor == "sqlite":  # its index has no words shorter than a trigram
        expected = "1 of many conversations · messages with so short a word are not counted"
    else:
        expected = "1 of 2 conversations"
    assert found[2] == expected


def found_words(page) -> str:
    (status,) = re.findall(r"<p[^>]*data-found>(.*?)</p>", page.content.decode(), re.DOTALL)
    return " ".join(status.split())


def ids_of_rows(page) -> list[str]:
    return [row.memory.id for row in page.context["rows"]]


def test_what_moves_is_the_page_as_it_is_now(operator_client, fleet):
    before = operator_client.get("/now/?sort=said&flagged=any")
    say("oversized", "hi", "hello", "one", "two")
    after = operator_client.get("/now/?sort=said&flagged=any")
    assert ids_of_rows(before) == ["dangling", "oversized"]
    assert ids_of_rows(after) == ["oversized", "dangling"]
    assert after.context["moment"] > before.context["moment"]
    html = after.content.decode()
    for part in ("data-stats", "data-chips", "data-found", "data-pager", "data-leaving"):
        assert part in html


def test_rows_in_use_stay_where_they_are(operator_client, fleet):
    say("dangling", "later")
    page = operator_client.get("/now/?policy=token_window&id=bare&id=dangling&id=gone&id=nul%00")
    assert ids_of_rows(page) == ["bare", "dangling"]
    assert "later" in row_of(page, "dangling")
    assert "data-pager" not in page.content.decode()


def test_departures_since_the_last_look_are_new(operator_client, memory_id):
    say(memory_id, "a", "b", "c", "d")
    seen = operator_client.get("/").context["newest"]
    assert "is-new" not in operator_client.get(f"/now/?seen={seen}").content.decode()
    say(memory_id, "e")
    assert operator_client.get(f"/now/?seen={seen}").content.decode().count("is-new") == 1


@pytest.mark.parametrize("seen", ["9" * 5_000, "²", "-1", "x"])
def test_a_moment_that_is_no_number_marks_nothing(operator_client, memory_id, seen):
    assert "is-new" not in operator_client.get("/now/", {"seen": seen}).content.decode()


def test_the_feed_has_one_entry_for_a_conversation(db):
    for memory_id, messages in (("first", 300), ("second", 3)):
        create_and_add(memory_id, MessageWindow(messages), numbered(messages))
    services.change("first", policy=MessageWindow(10))
    say("first", "b")
    say("second", "b")
    items = [(item.memory_id, item.last.seq, item.count) for item in feed(4)]
    assert items == [("second", 1, 1), ("first", 291, 291)]
    say("first", "c")
    (newest, _) = feed(2)
    assert (newest.memory_id, newest.last.seq, newest.count) == ("first", 292, 292)


def test_a_number_of_the_inbox_equals_the_rows_after_a_click(operator_client, fleet):
    """Each cause has as many conversations as its filter shows, and the head counts each once."""
    page = operator_client.get("/")
    headlines = page.context["headlines"]
    listed = {}
    for each in (*headlines.causes, *headlines.folded):
        rows = operator_client.get(f"/?flagged={each.flag}").context["rows"]
        listed[each.name] = {row.memory.id for row in rows}
        assert len(rows) == each.count, each.name
    needing = set().union(*(listed[cause.name] for cause in headlines.causes))
    assert headlines.needing == len(needing)
    for cause in headlines.causes:
        assert sum(cause.cases.by_day) <= cause.count
    assert f"{headlines.needing} of {headlines.counted.stats.conversations}" in " ".join(
        page.text.split()
    )


def test_the_last_words_are_of_a_message_not_of_a_summary(operator_client, memory_id):
    say(memory_id, "one", "my last words")
    services.compact(memory_id, "A summary of it.", keep_last=0)
    (row,) = operator_client.get("/").context["rows"]
    assert row.row.snippet == "my last words"


def test_the_inbox_says_when_nothing_needs_anybody(operator_client, db):
    create_and_add("calm", MessageWindow(3), numbered(2))
    assert "Nothing needs attention" in operator_client.get("/").text


def test_a_cause_names_its_newest_case_and_leads_to_what_mends_it(operator_client, db):
    demo.load()
    page = operator_client.get("/").text
    cause = page[page.index('class="cause') :]
    assert "repeated in #47" in cause
    assert "3 cases began today" in " ".join(cause.split())
    assert 'href="/lab/?flagged=user_repeated"' in cause


def test_a_cause_keeps_the_filter_of_the_overview_or_says_that_it_does_not(
    operator_client, db, monkeypatch
):
    demo.load()
    page = operator_client.get("/?label=demo:support").text
    assert 'href="/lab/?ids=order-7741"' in page
    assert "opens all conversations" not in page
    monkeypatch.setattr(cases, "IDS_MAX", 0)
    page = operator_client.get("/?policy=token_window").text
    assert 'href="/lab/?flagged=user_repeated"' in page
    assert "“Compare limits…” opens all conversations with this problem" in page


def test_today_begins_at_midnight_of_the_site(settings):
    settings.TIME_ZONE = "Asia/Tokyo"
    midnight = selection.midnight()
    assert (midnight.hour, str(midnight.tzinfo)) == (0, "Asia/Tokyo")
    assert timezone.now() - timedelta(days=1) < midnight <= timezone.now()


@pytest.mark.parametrize(("zone", "day"), [("UTC", "1 Jan 2026"), ("Asia/Tokyo", "2 Jan 2026")])
def test_old_dates_are_in_the_time_zone_of_the_site(settings, zone, day):
    settings.TIME_ZONE = zone
    assert ago(datetime(2026, 1, 1, 20, tzinfo=UTC)) == day


def test_a_search_from_a_list_by_last_activity_shows_the_best_match_first(operator_client):
    create_and_add("my late order", MessageWindow(9), [UserMessage("Hello")])
    create_and_add("m", MessageWindow(9), [UserMessage("about my late order")])
    form = markup.tree(operator_client.get("/").text)
    (sort,) = [each for each in form.iter("select") if each.get("name") == "sort"]
    (chosen,) = [each for each in sort if each.get("selected") is not None]
    sent = {"q": "my late order", "sort": chosen.get("value")}
    found = operator_client.get("/", sent)
    assert [row.memory.id for row in found.context["rows"]] == ["my late order", "m"]
    assert found.context["query"].sort == "match"
