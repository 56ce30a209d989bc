"""Hot paths are answered from indexes, and read no more than they show, however much is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.db.models import F, Model, Value
from django.db.models.functions import Concat

from chatmemory import AiMessage, MessageWindow, UserMessage, search, services
from chatmemory.ledger.windows import stays_at
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.reading import conversations, windows
from chatmemory.reading.feed import newest_change_or_erasure
from chatmemory.reading.history import Part, history
from chatmemory.reading.steps import step

from ..long_conversations import fleet, long_conversation
from ..rooms import room_modules
from .plans import plans_of, work_of

LONG, FLEET, LATELY = 20_000, 500, 20
MEMORY, MESSAGE, STAY, STEP = (
    f"chatmemory_{name} by key" for name in ("memory", "message", "stay", "step")
)
OVERVIEW = {"memory_by_activity", STEP, MESSAGE, "step_evicting", "stay_left"}
API = "/api/v1/memories/"

# What each of them must use at least.
INDEXES = {
    "add": {MEMORY, "stay_open"},
    "window at a step": {STEP, STAY, MESSAGE},
    "history at a step": {STEP, MESSAGE, "stay_of_message"},
    "page": {MESSAGE, STEP, "stay_left", "stay_of_message"},
    "page at a step": {MESSAGE, STAY, STEP, "stay_left"},
    "step at a time": {STEP},
    "message by a client's id": {"client_id_once"},
    "newest change": {"memory_by_activity"},
    "overview": OVERVIEW,
    "live overview": OVERVIEW,
    "search": {"texts", *OVERVIEW},
    "API: window": {MEMORY, "stay_open", MESSAGE},
    "API: history": {MESSAGE, "stay_of_message"},
    "API: steps": {STEP},
    "API: step": {STEP, STAY, "stay_left"},
    "API: message": {MESSAGE, "stay_of_message"},
    "API: list": {"memory_by_activity"},
    "API: next page": {"memory_by_activity"},
    "API: list by creation": {"memory_by_creation"},
    "API: search": {"texts"},
}
ROOM_ROWS = [*room_modules("plans")]


def fill() -> None:
    """A long conversation and many short ones, of which one has lost messages lately."""
    long_conversation("long", LONG)
    Message.objects.update(client_id=F("text"))
    long_conversation("fleet-0", 20, kept=10)
    Step.objects.update(at=F("at") - timedelta(days=30))
    fleet(FLEET)
    short = list(Memory.objects.exclude(pk="long"))
    for minutes, row in enumerate(short):
        row.updated_at -= timedelta(minutes=minutes)
    Memory.objects.bulk_update(short, ["updated_at"], batch_size=250)
    services.add("fleet-1", [UserMessage("bye")] * LATELY)
    for room in ROOM_ROWS:
        room.fill(FLEET)
    analyse(Memory, Message, Stay, Step, *(each for room in ROOM_ROWS for each in room.MODELS))


def analyse(*models: type[Model]) -> None:
    """Do what autovacuum does in time: count, and remove from indexes what other tests have rolled
    back. Nobody does it for a SQLite database.
    """
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        for model in models:
            cursor.execute(f"REINDEX TABLE {model._meta.db_table}")
            cursor.execute(f"ANALYZE {model._meta.db_table}")
        cursor.execute("SELECT gin_clean_pending_list('chatmemory_search_message')")


def calls(browser, api) -> dict[str, Callable[[], Any]]:
    half = LONG // 2
    found = {name: call for room in ROOM_ROWS for name, call in room.calls(browser, api).items()}
    return found | {
        "add": partial(services.add, "long", [UserMessage("one more")]),
        "window at a step": partial(windows.window, "long", half),
        "history at a step": partial(history, "long", Part(around=50), half),
        "page": partial(browser.get, "/c/long/"),
        "page at a step": partial(browser.get, f"/c/long/?at={half}&msg={half}&with={half - 99}"),
        "step at a time": partial(browser.get, "/c/long/?time=2020-01-01"),
        "message by a client's id": partial(browser.get, f"/c/long/?client_id=m{half}"),
        "newest change": newest_change_or_erasure,
        "overview": partial(browser.get, "/"),
        "live overview": partial(browser.get, "/now/"),
        "search": partial(browser.get, "/?q=m4321"),
        "API: window": partial(api.get, f"{API}long/messages/"),
        "API: history": partial(api.get, f"{API}long/history/"),
        "API: steps": partial(api.get, f"{API}long/steps/?after={half}"),
        "API: step": partial(api.get, f"{API}long/steps/{half}/"),
        "API: message": partial(api.get, f"{API}long/messages/{half}/"),
        "API: list": partial(api.get, API),
        "API: next page": partial(api.get, api.get(API).data["next"]),
        "API: list by creation": partial(api.get, f"{API}?ordering=-created"),
        "API: search": partial(api.get, f"{API}?search=m4321"),
    }


def test_hot_paths_use_indexes(operator_client, api):
    """All queries run on one database, since filling it takes longer than reading."""
    fill()
    unused, faults = {}, {}
    indexes = INDEXES | {name: each for room in ROOM_ROWS for name, each in room.INDEXES.items()}
    for name, call in calls(operator_client, api).items():
        plans = plans_of(call)
        if missing := indexes[name] - {index for plan in plans for index in plan.indexes}:
            unused[name] = missing
        if faulty := [(plan.faults, plan.sql) for plan in plans if plan.faults]:
            faults[name] = faulty
    assert faults == {}
    assert unused == {}


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite does not estimate rows")
def test_few_stays_are_expected_of_a_past_window(db):
    """PostgreSQL reads all messages of a conversation if it expects many of its stays."""
    long_conversation("long", 5_000, kept=20)
    analyse(Stay)
    step = Step.objects.get(memory="long", n=2_000)
    (plan,) = json.loads(stays_at(step).explain(format="json"))
    assert plan["Plan"]["Plan Rows"] < 100


@pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite's plans have no numbers of rows")
def test_an_early_step_is_read_without_the_stays_that_ended_later(db):
    long_conversation("long", LONG)
    early, late = (work_of(partial(step, "long", n)) for n in (100, LONG - 100))
    assert early < 2 * late


def test_messages_that_return_are_found_by_their_own_stays(db):
    """The last stay of each is looked up. A bad plan would go back through the stays of all."""
    long_conversation("long", 5_000, kept=20)
    analyse(Message, Stay)
    early = [UserMessage(f"m{n}") for n in range(1, 21, 2)]
    plans = plans_of(partial(services.set_messages, "long", early))
    assert conversations.memory("long").said_count == 5_000
    (plan,) = (plan for plan in plans if re.search('"text" (IN|= ANY)', plan.sql))
    assert "stay_of_message" in plan.indexes


def test_a_long_window_is_read_by_one_query_also_before_autovacuum_has_seen_it(db):
    long_conversation("wide", 4_000, kept=4_000)
    plans = plans_of(lambda: windows.window("wide"))
    (reading,) = (plan for plan in plans if '"frame"' in plan.sql)
    assert "chatmemory_message by key" in reading.indexes
    # Each row of the window once, which is the whole conversation here. Without statistics the
    # planner may sort the stays instead of asking their index for the order.
    assert set(reading.faults) <= {"reads 4000 rows: Index Scan", "sorts 4000 rows"}


def test_common_words_are_read_where_they_are_tried(db):
    """The index would list all texts that have them, for each conversation."""
    fleet(FLEET)
    Message.objects.update(text=Concat(F("text"), Value(" delivery")))
    analyse(Memory, Message)
    some = [f"fleet-{n}" for n in range(100)]
    tried = Memory.objects.filter(search.index().scan_filter("delivery"), id__in=some)
    mentions = partial(search.index().mentions, "delivery", some, 100)
    for call in (lambda: len(tried.all()), lambda: len(mentions())):
        assert call() == len(some)
        assert not any("texts" in plan.indexes for plan in plans_of(call))


def test_a_page_reads_no_more_where_there_is_one_conversation(operator_client):
    """PostgreSQL then estimates all rows to be about as many as the numbers it looks up."""
    long_conversation("long", LONG)
    analyse(Message, Stay, Step)
    plans = plans_of(partial(operator_client.get, "/c/long/?at=5000&msg=4999"))
    assert [(plan.faults, plan.sql) for plan in plans if plan.faults] == []


@pytest.mark.parametrize("messages", [1, 9, 10, 11, 60, 61])
def test_the_rows_of_a_long_conversation_equal_the_rows_of_adds(db, messages):
    own = {"id", "memory_id", "created_at", "updated_at", "at", "said_at", "ill_at"}
    own |= {"head", "labels_salt", "first_labels", "salt", "commitment", "digest"}

    def rows(memory_id: str) -> list[dict[str, Any]]:
        found = [*Memory.objects.filter(pk=memory_id).values()]
        for model in (Message, Stay, Step):
            found += model.objects.filter(memory=memory_id).order_by("pk").values()
        return [{name: row[name] for name in row.keys() - own} for row in found]

    long_conversation("made", messages, kept=5)
    said = [(AiMessage, UserMessage)[n % 2](f"m{n}") for n in range(1, messages + 1)]
    services.import_conversation("added", said, MessageWindow(5))
    assert rows("made") == rows("added")
