"""A column of messages is added in a copy of the tree: a declared field, a migration, and a line of
a template. All else follows. Each forgotten place is found by a test that every tree has.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .test_rooms import migrated, tree_without
from .with_a_column import FIELD, PLACES, put_into

__all__ = ["migrated"]

MODELS, TEMPLATE = PLACES
BARE = 'mood = models.CharField(max_length=9, null=True, help_text="the mood")\n'
INSERTED = "tests/ledger/test_sql.py::test_inserted_rows_have_the_columns_of_their_models"
DRAWN = "tests/inspector/test_drawn_rows.py::test_each_name_of_a_row_is_in_its_template"


@pytest.fixture
def tree(tmp_path) -> Path:
    return tree_without([], tmp_path / "tree")


@pytest.fixture
def run(tree, migrated, tmp_path):
    environment = {**os.environ, "CHATMEMORY_VAR": str(tmp_path / "var"), "PYTHONPATH": str(tree)}
    environment["DATABASE_URL"] = f"sqlite:///{tmp_path / 'new.sqlite3'}"

    def run(*command: str) -> str:
        """Run a command in the tree, and return what it prints if it fails, or an empty text."""
        done = subprocess.run(
            [sys.executable, *command], cwd=tree, env=environment, capture_output=True, text=True
        )
        return done.stdout + done.stderr if done.returncode else ""

    return run


@pytest.fixture
def check(run, migrated, tmp_path):
    kept = shutil.copy(migrated, tmp_path / "migrated.sqlite3")
    return lambda: run("-m", "tests.with_a_column", str(kept))


def migrate(run) -> None:
    assert run("manage.py", "makemigrations", "chatmemory", "--name", "mood") == ""


def test_a_column(tree, run, check):
    put_into(tree, PLACES)
    migrate(run)
    assert check() == ""


@pytest.mark.long
class TestAForgottenPlace:
    def test_the_migration(self, tree, check):
        put_into(tree, PLACES)
        assert "Add field mood to message" in check()

    def test_the_template(self, tree, run, check):
        put_into(tree, {MODELS: PLACES[MODELS]})
        migrate(run)
        assert "AssertionError: the page has it" in check()
        assert "'mood'" in run("-m", "pytest", "-q", DRAWN)

    def test_the_declaration(self, tree, run):
        bare = {old: new.replace(FIELD, f"    {BARE}") for old, new in PLACES[MODELS].items()}
        put_into(tree, {MODELS: bare})
        migrate(run)
        assert "mood" in run("-m", "pytest", "-q", INSERTED)

    def test_whether_it_is_sealed(self, tree, run):
        unsealed = {old: new.replace(", sealed_since=5", "") for old, new in PLACES[MODELS].items()}
        put_into(tree, {MODELS: unsealed})
        assert "TypeError: a column must have `sealed_since`" in run("manage.py", "check")
