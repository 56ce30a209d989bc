"""The wheel in a project whose routers keep conversations in a database beside the accounts.

Whatever read the replica of the project would fail: it is empty.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from django.apps import apps
from django.test import override_settings

from chatmemory.database import check_tables_are_together

from ..rooms.live.test_stream import following
from ..serving import ROOT, Served, database

pytestmark = pytest.mark.database
SETTINGS = "tests.routed.settings"
ROUTERS = "tests.routed.router"
GRANTED = """SELECT auth_group.name, codename FROM auth_group
    JOIN auth_group_permissions ON group_id = auth_group.id
    JOIN auth_permission ON auth_permission.id = permission_id
    WHERE auth_group.name IN ('Viewers', 'Operators')"""
LIBRARY = """
import json
import chatmemory
from chatmemory import MemoryNotFound, MessageWindowChatMemory, UserMessage, services
from chatmemory.reading import conversations, history
from chatmemory.stores.database import DjangoChatMemoryStore

memory = MessageWindowChatMemory("library", 2, DjangoChatMemoryStore())
memory.add(*map(UserMessage, ("one", "two", "three")))
DjangoChatMemoryStore().update_messages("client", [UserMessage("by a client")])

def refused():
    raise ValueError

def half(change):
    try:
        with services.atomic():
            change()
            refused()
    except ValueError:
        pass

half(lambda: memory.add(UserMessage("half of a change")))
half(lambda: services.delete("client"))
try:
    services.label(["library", "unknown"], "seen", "by nobody")
except MemoryNotFound:
    pass
print(json.dumps({
    "package": chatmemory.__file__,
    "window": [message.single_text() for message in memory.messages()],
    "said": [message.single_text() for message in history.all_messages("library")],
    "labels": conversations.memory("library").labels,
    "client": len(history.all_messages("client")),
}))
"""


@pytest.fixture(scope="module")
def routed(installed, tmp_path_factory):
    """A server of the project, which is migrated as Django's documentation says."""
    folder = tmp_path_factory.mktemp("routed")
    inspector = [sys.executable, "-P", "-m", "inspector"]
    with database(folder) as url, Served(url, folder, "", inspector) as served:
        served.environment["DJANGO_SETTINGS_MODULE"] = SETTINGS
        served.environment["PYTHONPATH"] = f"{installed}{os.pathsep}{ROOT}"  # of it, the tests
        token = commands(
            served,
            ["migrate", "--verbosity", "0"],
            ["migrate", "--verbosity", "0", "--database", "conversations"],
            ["create_token", "tests", "--role", "admin"],
        ).strip()
        served.api.headers["Authorization"] = f"Bearer {token}"
        served.start()
        yield served


def commands(served: Served, *commands: list[str]) -> str:
    """Run commands in one process and return their output."""
    calls = "\n".join(f"call_command(*{command!r})" for command in commands)
    script = f"from django.core.management import call_command\n{calls}"
    return served.manage("shell", "--verbosity", "0", "-c", script)


def folder_of(served: Served) -> Path:
    return Path(served.environment["CHATMEMORY_VAR"])


def tables(file: Path) -> set[str]:
    with sqlite3.connect(file) as opened:
        return {name for (name,) in opened.execute("SELECT name FROM sqlite_master")}


def tables_of_conversations(served: Served) -> set[str]:
    url = served.environment["DATABASE_URL"]
    if url.startswith("sqlite"):
        return tables(Path(url.removeprefix("sqlite:///")))
    with psycopg.connect(url) as opened:
        found = opened.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return {name for (name,) in found}


def url_of(served: Served, memory_id: str, rest: str = "") -> str:
    return f"{served.url}/api/v1/memories/{memory_id}/{rest}"


def test_each_table_is_in_one_database(routed):
    ours = {f"chatmemory_{name}" for name in ("memory", "message", "stay", "step", "apitoken")}
    accounts = tables(folder_of(routed) / "accounts.sqlite3")
    assert ours <= tables_of_conversations(routed)
    assert not {name for name in accounts if name.startswith("chatmemory")}
    assert "auth_user" in accounts
    assert "auth_user" not in tables_of_conversations(routed)
    with sqlite3.connect(folder_of(routed) / "accounts.sqlite3") as opened:
        granted = set(opened.execute(GRANTED))
    assert granted == {
        ("Viewers", "view_memory"),
        ("Operators", "view_memory"),
        ("Operators", "change_memory"),
    }


def test_a_change_of_the_library_is_stored_as_a_whole_or_not_at_all(routed, installed):
    found = json.loads(routed.manage("shell", "--verbosity", "0", "-c", LIBRARY))
    assert Path(found.pop("package")).parents[1] == installed
    assert found == {
        "window": ["two", "three"],
        "said": ["one", "two", "three"],
        "labels": {},
        "client": 1,
    }


def test_the_api_and_the_stream_follow_a_conversation(routed):
    routed.create("order")
    with following(routed, "order") as steps:
        for number, word in enumerate(("one", "two", "three", "four"), start=1):
            routed.say("order", word)
            assert next(steps) == number
        routed.manage(
            "shell",
            "-c",
            "from chatmemory import *\nfrom chatmemory import services\n"
            "services.add('order', [UserMessage('elsewhere')])",
        )
        assert next(steps) == 5
    key = {"Idempotency-Key": "once"}
    body = {"messages": [{"role": "user", "content": "again"}], "format": "openai_chat"}
    first, second = (
        routed.api.post(url_of(routed, "order", "messages/"), json=body, headers=key)
        for _ in range(2)
    )
    assert first.json() == second.json()
    assert second.headers["Idempotency-Replayed"] == "true"
    assert routed.api.post(url_of(routed, "order", "simulate/"), json=body).status_code == 200
    assert routed.api.post(url_of(routed, "order", "messages/2/redact/")).status_code == 200
    said = routed.api.get(url_of(routed, "order", "history/?after=0")).json()["messages"]
    texts = [each["text"] for each in said]
    assert texts == ["one", "[redacted #2]", "three", "four", "elsewhere", "again"]
    stale = routed.api.delete(url_of(routed, "order"), headers={"If-Match": '"1"'})
    assert stale.status_code == 412
    assert routed.api.delete(url_of(routed, "order")).status_code == 204
    assert routed.api.get(url_of(routed, "order")).status_code == 404


def test_writers_of_one_conversation_take_turns(routed):
    routed.create("crowd")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: routed.say("crowd", f"word {n}"), range(20)))
    assert [seq for seq, _ in routed.history("crowd")] == [*range(1, 21)]


def test_pages_read_and_write(routed):
    session = routed.session()

    def post(path: str, **fields: str):
        page = session.get(f"{routed.url}/tokens/").text
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[1]
        return session.post(f"{routed.url}{path}", {**fields, "csrfmiddlewaretoken": token})

    assert post("/demo/").status_code == 200
    page = session.get(f"{routed.url}/?search=parcel").text
    assert "order-7741" in page
    assert session.get(f"{routed.url}/c/order-7741/").status_code == 200
    tried = post("/c/order-7741/simulate/", text="user: and now?", limit="2")
    assert "trial=" in tried.url
    labelled = post("/bulk/", action="label", id="order-7741", label_as_text="seen:yes")
    assert "order-7741" in labelled.text
    for status in (200, 422):
        assert post("/tokens/", name="twice", role="viewer").status_code == status
    gone = post("/bulk/", action="delete", id="classroom", confirmed="on")
    assert "classroom" not in gone.text
    assert session.get(f"{routed.url}/readyz").text == "ready\n"


def test_commands_use_the_database_of_conversations(routed, tmp_path):
    (tmp_path / "chats.json").write_text('[[{"role": "user", "content": "from a file"}]]')
    is_sqlite = routed.environment["DATABASE_URL"].startswith("sqlite")
    told = commands(
        routed,
        ["import_transcripts", str(tmp_path / "chats.json")],
        ["vacuum"],
        ["verify_memories", "--repair-index"],
        *([["backup", str(tmp_path / "copy.sqlite3")]] if is_sqlite else []),
    )
    assert "1 conversation with 1 message imported" in told
    assert "vacuumed" in told
    assert "all match their replay" in told
    if is_sqlite:
        assert "chatmemory_memory" in tables(tmp_path / "copy.sqlite3")


@pytest.mark.parametrize("model", [*apps.get_app_config("chatmemory").get_models()])
def test_every_table_is_read_where_it_is_written_and_points_to_no_other_app(model):
    with override_settings(DATABASE_ROUTERS=[f"{ROUTERS}.ConversationsRouter"]):
        assert {manager.all().db for manager in model._meta.managers} == {"conversations"}
        assert model._default_manager.using("replica").db == "replica"
    related = {field.related_model for field in model._meta.get_fields() if field.is_relation}
    labels = {each._meta.app_label for each in related}
    assert all(label == "chatmemory" or label.startswith("chatmemory_") for label in labels)


def test_routers_that_part_the_tables_are_an_error():
    with override_settings(DATABASE_ROUTERS=[f"{ROUTERS}.TokensRouter"]):
        (error,) = check_tables_are_together()
    assert (error.id, error.msg) == (
        "chatmemory.E001",
        (
            "DATABASE_ROUTERS write the model ApiToken to 'accounts', "
            "but the model Memory to 'default'"
        ),
    )
    assert not check_tables_are_together()


@pytest.mark.needs("search", "evidence")
def test_routers_that_forget_the_rooms_are_an_error():
    with override_settings(DATABASE_ROUTERS=[f"{ROUTERS}.KernelRouter"]):
        told = [error.msg for error in check_tables_are_together()]
    migrated = "DATABASE_ROUTERS do not migrate 'chatmemory_search' in 'conversations'"
    assert f"{migrated}, which has the table of Memory" in told
