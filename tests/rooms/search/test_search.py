"""Conversations are found by their messages, and not by erased texts."""

from __future__ import annotations

import random
import sqlite3
import sys
import unicodedata
from contextlib import closing

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatmemory import AiMessage, MessageWindow, UserMessage, search, services
from chatmemory.contradictions import Contradicted
from chatmemory.ledger.verification import verify
from chatmemory.messages.phrases import sought_words, squashed
from chatmemory.models import Memory, Message
from chatmemory.reading import conversations
from chatmemory.reading import finding as searching
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.history import nearest
from chatmemory.reading.overview import memory_page, overview_page
from inspector.conversation.state import conversation_state
from inspector.rooms.phrase.searching import search_on
from inspector.rooms.search import checking
from inspector.rooms.search.sqlite import EMPTY, PLACES, TABLES, trigrams_of
from inspector.rooms.simulation.comparison import comparison
from inspector.rooms.simulation.showing import simulated_state
from inspector.rooms.simulation.trials import WhatIf
from inspector.shell.state import ConversationQuery

from ...conversations import create_and_add, numbered, users

ON_SQLITE = pytest.mark.skipif(
    connection.vendor != "sqlite", reason="PostgreSQL indexes the texts themselves"
)
ON_POSTGRESQL = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has an index of its own"
)


def ids_with(words: str) -> list[str]:
    return sorted(Memory.objects.containing(words).values_list("pk", flat=True))


@pytest.fixture
def shop(db) -> None:
    for memory_id, *words in [
        ("alpha", "Where is my parcel?", "It is in Dijon."),
        ("beta", "100% cotton, size 'L' or \"XL\"?"),
        ("gamma", "Straße und Ärger", "お元気ですか", "<b>a_b\\c</b>"),
    ]:
        create_and_add(memory_id, MessageWindow(2), users(*words))


FOUND = {
    "parcel PARCEL lph|is my par": "alpha",
    "100% et|'L' or \"XL\"": "beta",
    "a_b\\c ärger ÄRGER 元気で 元気|<b>a": "gamma",
    "celpar 0_ a%b par* zz|parcel OR cotton|" + " ".join(f"parcel{n}" for n in range(500)): "",
}


def test_it_finds_exactly_the_messages(shop):
    for asked, memory_id in FOUND.items():
        first, *phrases = asked.split("|")
        for words in (*first.split(), *phrases):
            assert ids_with(words) == [memory_id] * bool(memory_id), words
    (row,) = overview_page(MemoryFilter(search="et")).rows
    assert (row.memory.id, row.mention) == ("beta", None), "two letters are sought in names only"


def test_the_index_follows_adds_changed_texts_and_deletions(shop):
    services.add("beta", [AiMessage("your parcel is late")])
    assert ids_with("parcel") == ["alpha", "beta"]
    services.delete("alpha")
    assert ids_with("parcel") == ["beta"]
    services.clear_messages("beta")
    assert ids_with("parcel") == ["beta"], "history keeps what memory forgot"
    Message.objects.filter(memory_id="beta", seq=2).update(text="[redacted]")
    assert [ids_with("parcel"), ids_with("redacted")] == [[], ["beta"]]


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Your booking is BW-583021, for two.", "BW583021|bw 583021|583021 booking|booking, two!"),
        ("It is BW 583 021.", "bw-583-021|BW583021"),
        ("Code BW583021 of 2026-11-28", "BW-583021|BW.583.021|2026.11.28|28 code"),
        ("Ein Café in Málaga, José.", "cafe malaga|JOSÉ cafe|jose|café"),
        ("Cafe\u0301 in Malaga", "CAFÉ|málaga café"),
        ("Die Größe der Straße", "STRASSE|grosse strasse|große"),
        ("I gave it to you a minute ago!", "a minute ago I gave it|“ago”: to you"),
    ],
)
def test_words_are_found_in_any_order_without_accents_and_separators(db, said, asked):
    create_and_add("other", MessageWindow(9), users("a minute", "gave it 583", "021 for two"))
    create_and_add("m", MessageWindow(9), users("Hello", said, "nothing"))
    for words in asked.split("|"):
        assert ids_with(words) == ["m"], words
        (row,) = overview_page(MemoryFilter(search=words), ordering="-match").rows
        assert row.mention, words
        assert row.mention.seq == 2, words


def test_part_of_two_words_is_no_word_and_a_short_code_is_taken_as_it_is(db):
    create_and_add("m", MessageWindow(9), users("a par celebrates 12 34", "to day"))
    assert [ids_with(words) for words in ("parcel", "1234", "today", "12 34")] == [
        [],
        [],
        [],
        ["m"],
    ]


def test_the_best_hit_comes_first(db):
    """The id, then the names, then the phrase, then words that are apart, the latest first."""
    said = {
        "apart": "order, my late",
        "phrase": "about my late order",
        "apart-2": "order! late, my",
    }
    create_and_add("my late order", MessageWindow(9), users("Hello"))
    create_and_add("named", MessageWindow(9), users("Hello"), {"about": "My late order"})
    for memory_id, text in said.items():
        create_and_add(memory_id, MessageWindow(9), users(text, "order late my"))
    which, best = MemoryFilter(search="my late order"), ["my late order", "named", "phrase"]
    for size in (9, 2):
        pages = [overview_page(which, ordering="-match", size=size)]
        while cursor := pages[-1].next:
            pages.append(overview_page(which, ordering="-match", size=size, cursor=cursor))
        rows = [row for page in pages for row in page.rows]
        assert [row.memory.id for row in rows] == [*best, "apart-2", "apart"]
        assert rows[2].mention.seq == 1, "the message with the phrase"


@ON_SQLITE
def test_several_messages_are_put_into_the_index_together(shop):
    """FTS5 writes at the end of each statement, which takes five times as long for many."""
    with CaptureQueriesContext(connection) as sent:
        services.add("alpha", numbered(50, "ribbon"))
    assert sum("last_seq = 5" in query["sql"] for query in sent) == 1, "it fires the trigger"
    bows = users("a bow", "a second bow", "ribbon 49")
    services.set_messages("alpha", bows)
    assert [indexed("rib"), indexed("bow")] == [50, 0], "synthetic ones are not searched"
    services.add("beta", numbered(50, "buckle"))
    services.add("beta", [UserMessage("a single buckle")])
    assert indexed("buc") == 51
    with connection.cursor() as cursor:  # a place that was left behind
        place = ["beta", conversations.memory("beta").last_seq + 1]
        cursor.execute(f"INSERT INTO {PLACES} (memory_id, seq) VALUES (%s, %s)", place)
    services.add("beta", users("another buckle"))
    assert indexed("buc") == 52
    assert [verify(memory_id) for memory_id in ("alpha", "beta")] == [None, None]


@ON_SQLITE
def test_triggers_are_there_after_every_migrate(shop):
    """A migration that rebuilds a table drops them, and earlier versions had none for messages."""
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER chatmemory_search_counted")
    services.add("beta", users("a ribbon"))
    assert ids_with("ribbon") == []
    call_command("migrate", "chatmemory_search", verbosity=0)
    services.add("beta", users("another ribbon"))
    assert indexed("rib") == 1
    assert search.index().repair("beta") == 1
    assert indexed("rib") == 2


@ON_SQLITE
def test_counting_messages_again_puts_none_into_the_index_twice(shop):
    before = indexed("par")
    Memory.objects.filter(pk="alpha").update(last_seq=0)
    Memory.objects.filter(pk="alpha").update(last_seq=2)
    assert indexed("par") == before
    checking.check_index("alpha")


@ON_SQLITE
def test_rows_of_another_program_are_found_after_a_repair(shop):
    said = Message.objects.get(memory_id="alpha", seq=2)
    said.seq, said.text = 3, "a ribbon"
    said.save(force_insert=True)
    assert ids_with("ribbon") == []
    with pytest.raises(Contradicted, match="is missing in the search index"):
        checking.check_index("alpha")
    assert search.index().repair("alpha") == 1
    checking.check_index("alpha")
    assert ids_with("ribbon") == ["alpha"]
    said.delete()
    assert [ids_with("ribbon"), indexed("rib")] == [[], 0]


def indexed(*trigrams: str) -> int:
    """Return the number of messages with one of the trigrams in SQLite's index."""
    any_of_them = " OR ".join(f'"{trigram}"' for trigram in trigrams)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COUNT(*) FROM chatmemory_search WHERE chatmemory_search MATCH %s", [any_of_them]
        )
        return int(cursor.fetchone()[0])


def test_synthetic_messages_are_not_found(db):
    create_and_add("m", MessageWindow(9), users("one", "two"))
    services.set_messages("m", users("a summary", "two"))
    assert ids_with("summary") == []


def rebuild_and(meanwhile) -> None:
    """Rebuild the index, and call something when it is empty."""

    def interrupt(run, sql, *args):
        if sql.startswith("INSERT INTO chatmemory_search (rowid"):
            meanwhile()
        return run(sql, *args)

    with connection.execute_wrapper(interrupt):
        search.index_of(connection).rebuild()


@ON_SQLITE
def test_an_interrupted_rebuild_leaves_the_index_as_it_was(committing):
    def stop() -> None:
        raise KeyboardInterrupt

    create_and_add("m", MessageWindow(2), [UserMessage("a needle in the hay")])
    with pytest.raises(KeyboardInterrupt):
        rebuild_and(stop)
    assert ids_with("needle") == ["m"]


@ON_SQLITE
def test_nobody_adds_to_the_index_while_it_is_empty(committing):
    def refuse_another() -> None:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")

    services.create("m", MessageWindow(2))
    file = connection.settings_dict["NAME"]
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as other:
        rebuild_and(refuse_another)


def test_an_index_that_is_rebuilt_or_installed_again_finds_the_same(transactional_db):
    create_and_add("m", MessageWindow(2), users("a needle in the hay"))
    index = search.index_of(connection)
    index.rebuild()
    assert ids_with("hay") == ["m"]
    index.remove()
    index.install()
    services.add("m", users("another needle"))
    assert ids_with("hay") == ids_with("another") == ["m"]
    services.delete("m")
    assert ids_with("needle") == []


def test_a_search_uses_the_index(shop):
    """Reading every text would take a second per million messages."""
    plan = Memory.objects.containing("parcel").explain()
    if connection.vendor == "sqlite":
        assert "chatmemory_search VIRTUAL TABLE INDEX" in plan
    else:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
        assert "chatmemory_search_message" in Memory.objects.containing("parcel").explain()


def test_names_are_found_as_they_are_now(shop):
    services.change("alpha", labels={"team": "Ärzte", "lane": "fast"})
    assert ids_with("TEAM:ärz") == ids_with("lane:fast") == ["alpha"]
    services.change("alpha", labels={"team": "red"})
    assert ids_with("lane:fast") == ids_with("ärzte") == []
    assert ids_with("team:red") == ids_with("alph") == ["alpha"]
    services.change("alpha", labels={"note": 'a "b\\c'})
    assert ids_with('note:a "b\\c') == ids_with("NOTE:A") == ["alpha"]
    services.delete("alpha")
    assert ids_with("note:a") == ids_with("alph") == []


def test_letters_that_a_reader_takes_for_the_same_are_the_same_in_the_index():
    """Otherwise it would depend on how common words are whether a conversation is found."""
    index = sqlite3.connect(":memory:")
    index.execute(TABLES[1])
    letters = [chr(n) for n in range(0x80, sys.maxunicode + 1) if not 0xD800 <= n < 0xE000]
    letters = [each for each in letters if not each.lower() == each.upper() == each]
    index.executemany(
        "INSERT INTO chatmemory_search (rowid, text) VALUES (?, ?)",
        [(ord(each), squashed(f"{each}一丁")) for each in letters],
    )
    assert len(letters) > 1_400
    for each in letters:
        trigrams = trigrams_of(sought_words(f"{each.lower()}一丁"))
        if not trigrams:
            assert unicodedata.combining(each), "an accent by itself is left out"
            continue
        found = index.execute(
            "SELECT rowid FROM chatmemory_search WHERE chatmemory_search MATCH ?",
            [trigrams],
        )
        assert ord(each) in [row for (row,) in found], f"U+{ord(each):04X}"
    index.close()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Приём заказа", "ПРИЁМ"),
        ("ΟΔΟΣ ΑΘΗΝΑΣ", "οδος αθηνας"),
        ("Größe FÜR Müller", "größe für müller"),
        ("東京タワー", "京タワ"),
        ("L'École, strasse", "école"),
        ("L'École, strasse", "STRASSE"),
        ("Σίσυφος: 100%", "ΣΊΣΥΦΟΣ"),
        ("Σίσυφος: 100%", "100%"),
        ("L'École", "é"),
    ],
)
def test_words_are_found_and_shown_everywhere_in_any_case(db, said, words):
    """In all conversations, in one of them, and where policies are compared."""
    create_and_add("m", MessageWindow(9), users(f"{'– ' * 5_000}{said}", "nothing"))
    assert ids_with(words) == ["m"]
    (row,) = overview_page(MemoryFilter(search=words)).rows
    assert row.mention
    assert said in row.mention.text
    state = conversation_state("m", ConversationQuery(room_parameters={"find": words}))
    assert [row.seq for row in state.shown.marks.rows] == [1]
    assert comparison("m", [MessageWindow(3)], phrase=words).sought.mentions == (0,)


WAYS = {
    "few places": {},
    "conversations in turn": {"FEW": 0},
    "conversations in turn, in vain": {"FEW": 0, "TRIED": (1,)},
    "very long conversations": {"FEW": 0, "READ_MAX": 0, "READ_AT_ONCE": 0},
}
PATCHED = {"READ_AT_ONCE": search.reading}


@pytest.fixture(params=WAYS)
def way(request, monkeypatch) -> str:
    """Each way in which a page of a search is found."""
    for name, value in WAYS[request.param].items():
        monkeypatch.setattr(PATCHED.get(name, searching), name, value)
    return request.param


WORDS = ["parcel", "Parcel", "PAR", "cel", "straße", "ÄRGER", "元気", "元気です", "masſe", "50%"]
ASKED = [*WORDS, "_", "vip", "masse", "ärg", "m1", "vip:yes", "pa", "parcel 50%", "nothing like it"]


def test_every_way_finds_the_same_pages(db, way):
    """Random conversations, whose pages are read forwards and backwards in each order."""
    chance = random.Random(7)
    said: dict[str, list[str]] = {}
    for n, memory_id in enumerate([*(f"m{n}" for n in range(22)), "M1/a", "m%1"]):
        lines = [" ".join(chance.choices(WORDS, k=2)) for _ in range(chance.randrange(4))]
        labels = {"vip": "yes"} if n % 5 == 0 else {}
        create_and_add(memory_id, MessageWindow(2), users(*lines), labels)
        names = [memory_id, *(f"{name}:{value}" for name, value in labels.items())]
        said[memory_id] = [
            line.replace("ſ", "s").replace("ß", "ss").lower() for line in ("\n".join(names), *lines)
        ]
    for words in ASKED:
        expected = set(ids_with(words))
        if words.isascii() and len(words) > 2:
            assert expected == {
                memory_id
                for memory_id, lines in said.items()
                if any(all(word in line for word in words.lower().split()) for line in lines)
            }, words
        ordering = chance.choice(["-activity", "id", "-said", "created"])
        assert_pages(MemoryFilter(search=words), ordering, expected)
        for prefix in ("m1", "M1", "m%", "none") if words in ("parcel", "元気") else ():
            own = {memory_id for memory_id in expected if memory_id.startswith(prefix)}
            assert_pages(MemoryFilter(search=words, id_prefix=prefix), ordering, own)


def assert_pages(which: MemoryFilter, ordering: str, expected: set[str]) -> None:
    """Read all pages to the last and back, and compare them with the exact rows."""
    every = memory_page(ordering=ordering, size=100).rows
    in_order = [row.id for row in every if row.id in expected]
    pages = [memory_page(which, ordering=ordering, size=4)]
    while cursor := pages[-1].next:
        pages.append(memory_page(which, ordering=ordering, size=4, cursor=cursor))
    assert [row.id for page in pages for row in page.rows] == in_order, which
    if len(pages) > 1:
        before = memory_page(which, ordering=ordering, size=4, cursor=pages[-1].previous)
        assert before.rows == pages[-2].rows


def test_the_latest_mentions_are_described_in_every_way(shop, way):
    services.add("alpha", [UserMessage("the parcel again"), AiMessage("parcel?")])
    assert search.index().mentions("parcel", ["alpha", "beta"], 2) == {"alpha": [4, 3]}
    assert search.index().mentions("元気で", ["alpha", "gamma"], 2) == {"gamma": [2]}
    assert search.index().mentions("alpha", ["alpha"], 2) == {}, "names are no messages"


# Of a text, the first 100,000 characters are searched.

HAY = "ha " * 40_000
EDGE = [("needle", "thread"), ("Nädel", "Fäden"), ("針", "糸")]


def at_the_edge(near: str, far: str) -> UserMessage:
    """A text with a word at its character 99,990, and one at 100,010 with known trigrams."""
    trigrams = "|".join(far[n : n + 3] for n in range(len(far) - 2)) + "| "
    begin = f"{trigrams}{HAY[len(trigrams) : 99_990]}{near} "
    return UserMessage(f"{begin}{HAY[: 100_010 - len(begin)]}{far} ")


@pytest.mark.parametrize(("near", "far"), EDGE)
def test_every_search_of_conversations_ends_at_the_same_character(db, way, near, far):
    create_and_add("m", MessageWindow(9), [at_the_edge(near, far), UserMessage("hello")])
    for words, ids in ((near, ["m"]), (far, [])):
        page = overview_page(MemoryFilter(search=words))
        assert [row.memory.id for row in page.rows] == ids
        assert all(row.mention and words in row.mention.text for row in page.rows)
        assert ids_with(words) == ids
        assert [row.pk for row in Memory.objects.filter(search.index().scan_filter(words))] == ids
        assert list(search.index().mentions(words, ["m"], 5)) == ids


@pytest.mark.parametrize(("near", "far"), EDGE)
def test_every_search_in_a_conversation_ends_at_the_same_character(db, monkeypatch, near, far):
    services.create("m", MessageWindow(9))
    said = [at_the_edge(near, far), UserMessage("hello")]
    services.add("m", said)
    drafts = WhatIf(drafts=(said[0],))

    def counts(words: str) -> list[int]:
        asked = ConversationQuery(room_parameters={"find": words})
        states = conversation_state("m", asked), simulated_state("m", asked, drafts)
        return [
            *(search_on(state).matches.count for state in states),
            len(comparison("m", [MessageWindow(3)], phrase=words).sought.mentions),
        ]

    assert counts(near) == [1, 2, 1]
    assert counts(far) == [0, 0, 0]
    services.add("m", [at_the_edge("needles", "needle")])
    assert nearest("m", "needlexy", 3) == "needles"
    monkeypatch.setattr("inspector.rooms.phrase.matches.MATCHES_MAX", 1)
    services.add("m", [UserMessage(f"{near} {far}")] * 2)
    assert [counts(words)[0] for words in (near, far)] == [3 + (near == "needle"), 2]


@ON_SQLITE
@pytest.mark.parametrize("change", ["add", "add one", "rebuild", "repair"])
def test_unsearched_and_redacted_text_is_not_in_the_index(db, change):
    """A search compares texts as well, so it would not tell."""
    services.create("m", MessageWindow(9))
    said = [at_the_edge("needle", "thread"), UserMessage("hello")]
    services.add("m", said[:1] if change == "add one" else said)
    if change == "rebuild":
        search.index_of(connection).rebuild()
    if change == "repair":
        with connection.cursor() as cursor:
            cursor.execute(EMPTY[0])
        assert search.index().repair("m") == 3, "two messages and the names"
    assert [indexed("nee"), indexed("ad ")] == [1, 0]
    services.redact("m", 1)
    assert [indexed("nee"), indexed("ha "), indexed("red")] == [0, 0, 1]
    assert verify("m") is None


@ON_POSTGRESQL
@pytest.mark.parametrize("known", [-1, 0])
def test_common_words_are_known_where_the_number_of_rows_is_not(db, known):
    """It is -1 before the first ANALYZE, and 0 on the coordinator of a cluster."""
    create_and_add("m", MessageWindow(5), [UserMessage("the delivery")] * 30)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_class SET reltuples = %s WHERE oid = 'chatmemory_message'::regclass", [known]
        )
    index = search.index_of(connection)
    with CaptureQueriesContext(connection) as sent:
        assert index.few("delivery", 1) is None
    assert "TABLESAMPLE" in sent[-1]["sql"]  # the index was not asked
    assert index.few("parcel", 1) == []
