"""A database of an earlier version is migrated, with all that it holds.

`site.sqlite3.gz` was made when 0001 was the only migration; `make.py` says what is in it. On
PostgreSQL its rows are copied into the tables of 0001, which are then migrated. Tests read the
tables of 0001 from its migration, never from today's models, so they hold for any later migration.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, connections, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.models import Field, Model
from django.test import Client

from chatmemory import UserMessage, services
from chatmemory.access.tokens import create_token
from chatmemory.models import Memory
from chatmemory.reading import conversations

from ..connecting import connected_to
from ..serving import database

APP, FIRST = "chatmemory", "0001_schema_of_2026_11_25_e"
SITE, HEADS = (Path(__file__).with_name(name) for name in ("site.sqlite3.gz", "heads.tsv"))
IDS = [line.split("\t")[0] for line in HEADS.read_text("utf-8").splitlines()]
SESSION = next(each for each in IDS if each.startswith("session-"))


@pytest.fixture(scope="module")
def upgraded_once(django_db_blocker, tmp_path_factory) -> Iterator[None]:
    """A copy of the stored database, migrated to the newest version."""
    folder = tmp_path_factory.mktemp("stored")
    file = folder / "stored.sqlite3"
    file.write_bytes(gzip.decompress(SITE.read_bytes()))
    with django_db_blocker.unblock():
        if connection.vendor == "sqlite":
            with connected_to(f"sqlite:///{file}"):
                call_command("migrate", verbosity=0)
                yield
            return
        with database(folder) as url, connected_to(url):
            call_command("migrate", APP, FIRST, verbosity=0)
            with stored_as(file) as alias:
                copy_rows(alias)
            call_command("migrate", verbosity=0)
            yield


@contextmanager
def stored_as(file: Path) -> Iterator[str]:
    """Give the name of a connection to a SQLite file."""
    alias, default = "stored", connections.settings["default"]
    connections.settings[alias] = {
        **default,
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(file),
        "OPTIONS": {},
    }
    try:
        yield alias
    finally:
        connections[alias].close()
        del connections[alias], connections.settings[alias]


def copy_rows(alias: str) -> None:
    """Copy all rows of our tables from another database, both as 0001 has them."""
    models = tables_of_the_first()
    for model in models:
        rows = list(model._base_manager.using(alias).all())
        assert rows, f"the stored database has no row of {model.__name__}"
        model._base_manager.bulk_create(rows)
        assert model._base_manager.count() == len(rows)
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)


def tables_of_the_first() -> list[type[Model]]:
    """Return the models of 0001, those first to which others have foreign keys."""
    state = MigrationLoader(connection).project_state((APP, FIRST))
    models = list(state.apps.get_app_config(APP).get_models())
    for model in models:
        for field in model._meta.local_concrete_fields:
            keep_time(field)
    return sorted(models, key=lambda model: model.__name__ != "Memory")


def keep_time(field: Field) -> None:
    """Have the rows keep their times of creation, which Django would set anew."""
    if getattr(field, "auto_now_add", False):
        field.auto_now_add = False  # type: ignore[attr-defined]


@pytest.fixture
def upgraded(upgraded_once) -> Iterator[None]:
    """The migrated copy. Changes of a test are rolled back."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def operator(upgraded, django_user_model) -> Client:
    """A signed-in operator of the upgraded database."""
    client = Client()
    client.force_login(django_user_model.objects.create_superuser("operator"))
    return client


def test_it_is_the_newest_version(upgraded):
    call_command("migrate", check_unapplied=True, verbosity=0)
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)
    call_command("check", databases=["default"])


def test_it_has_the_schema_of_a_new_database(upgraded, tmp_path):
    """Its tables, columns and indexes, by name, are those that an empty database gets."""
    upgraded_schema = schema()
    with database(tmp_path) as url, connected_to(url):
        call_command("migrate", verbosity=0)
        new = schema()
    assert upgraded_schema == new


def schema() -> dict[str, tuple[list[str], dict[str, Any]]]:
    """Return the columns of our tables with their types, and what is unique, indexed and keyed.

    The primary key of a table that was handed over has kept its name.
    """
    introspection = connection.introspection
    with connection.cursor() as cursor:
        return {
            name: (
                sorted(map(str, introspection.get_table_description(cursor, name))),
                {
                    "" if each["primary_key"] else constraint: each
                    for constraint, each in introspection.get_constraints(cursor, name).items()
                },
            )
            for name in introspection.table_names(cursor)
            if name.startswith(APP)
        }


@pytest.mark.needs("integrity")
def test_its_conversations_verify(upgraded, capsys):
    call_command("verify_memories", heads=HEADS)
    assert "9 conversations verified" in capsys.readouterr().out


def test_its_heads_are_as_they_were_written(upgraded, capsys):
    call_command("verify_memories", *IDS, print_heads=True)
    printed = sorted(capsys.readouterr().out.splitlines())
    assert printed == sorted(HEADS.read_text("utf-8").splitlines())


@pytest.mark.parametrize("memory_id", [*IDS, "shop~2Fempty"])
def test_a_page_shows_each_conversation(operator, memory_id):
    answer = operator.get(f"/c/{memory_id}/")
    assert answer.status_code == 200
    assert "tau" not in memory_id or "flight" in answer.content.decode()


@pytest.mark.needs("simulation")
def test_a_trial_keeps_its_address(operator):
    """Its table was handed over to the room of simulations."""
    page = operator.get("/c/classroom/?trial=dXlUCfcKNF7QoMtV")
    assert page.status_code == 200
    assert "Is my favourite colour red?" in page.text


@pytest.mark.needs("doctor", "lab", "settings")
@pytest.mark.parametrize("address", ["/", "/doctor/", "/lab/", "/policies/", "/tokens/"])
def test_the_other_pages_answer(operator, address):
    assert operator.get(address).status_code == 200


@pytest.mark.parametrize("memory_id", IDS)
def test_the_api_answers_for_each_conversation(upgraded, memory_id):
    token = create_token("tests", role="viewer")
    for part in ("", "history/", "steps/", "messages/1/"):
        answer = Client().get(
            f"/api/v1/memories/{memory_id}/{part}", headers={"Authorization": f"Bearer {token}"}
        )
        assert answer.status_code == 200, answer.content


def test_a_search_finds_its_words(upgraded):
    assert {row.pk for row in Memory.objects.containing("A-1182")} == {"order-7741", "support"}
    assert SESSION in [row.pk for row in Memory.objects.containing("session")]


def test_erased_words_are_not_in_it(upgraded):
    assert not Memory.objects.containing("4242").exists()


def test_its_conversations_go_on(upgraded):
    services.add("support", [UserMessage("From Grindelwald.")])
    assert conversations.memory("support").last_step == 10
    assert [row.pk for row in Memory.objects.containing("Grindelwald")] == ["support"]
    call_command("verify_memories", "support")
