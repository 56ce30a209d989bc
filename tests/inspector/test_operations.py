"""docs/operations.md names every environment variable and every command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

ROOT = Path(__file__).parents[2]
DOCUMENTED = (ROOT / "docs" / "operations.md").read_text()
READ = re.compile(r'"(CHATMEMORY_[A-Z_]+|DATABASE_URL|WEB_CONCURRENCY)"')
FROM_MAKE = {"load_demo", "serve"}


def variables() -> set[str]:
    files = [*(ROOT / "inspector").rglob("*.py"), *(ROOT / "deploy").glob("*.py")]
    return {name for file in files for name in READ.findall(file.read_text())}


def test_the_search_finds_the_variables():
    assert {"DATABASE_URL", "CHATMEMORY_LOG", "CHATMEMORY_BIND"} <= variables()


@pytest.mark.parametrize("name", sorted(variables()))
def test_every_variable_is_in_the_table(name):
    assert re.search(rf"^\| `{name}`", DOCUMENTED, re.MULTILINE)


@pytest.mark.parametrize(
    "command",
    sorted(
        name for name, app in get_commands().items() if app.startswith(("chatmemory", "inspector"))
    ),
)
def test_every_command_is_in_the_table(command):
    assert command in FROM_MAKE or f"| `manage.py {command}" in DOCUMENTED
