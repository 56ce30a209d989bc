"""docs/operations.md names variables and commands, and docs/mounting.md the settings."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest
from django.core.management import BaseCommand, get_commands, load_command_class

from chatmemory.conf import Configuration as Ours
from inspector.conf import InspectorConfiguration as Pages

ROOT = Path(__file__).parents[2]
DOCUMENTED = (ROOT / "docs" / "operations.md").read_text()
MOUNTING = (ROOT / "docs" / "mounting.md").read_text()
READ = re.compile(r'"(CHATMEMORY_[A-Z_]+|DATABASE_URL|WEB_CONCURRENCY)"')


def variables() -> set[str]:
    files = [*(ROOT / "inspector").rglob("*.py"), *(ROOT / "deploy").glob("*.py")]
    return {name for file in files for name in READ.findall(file.read_text())}


def test_the_search_finds_the_variables():
    assert {"DATABASE_URL", "CHATMEMORY_LOG", "CHATMEMORY_BIND"} <= variables()


@pytest.mark.parametrize("name", sorted(variables()))
def test_every_variable_is_in_the_table(name):
    assert re.search(rf"^\| `{name}`", DOCUMENTED, re.MULTILINE)


COMMANDS = sorted(
    name for name, app in get_commands().items() if app.startswith(("chatmemory", "inspector"))
)


def options_of(command: BaseCommand) -> set[str]:
    parser = command.create_parser("manage.py", "")
    return {option for action in parser._actions for option in action.option_strings}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_table_with_its_options(name):
    rows = "".join(re.findall(rf"^\| `manage\.py {name}\b.*$", DOCUMENTED, re.MULTILINE))
    assert rows
    command = load_command_class(get_commands()[name], name)
    options = options_of(command) - options_of(BaseCommand())
    assert not [each for each in options if not re.search(rf"{each}\b", rows)]


@pytest.mark.parametrize(("name", "kind"), [("CHATMEMORY", Ours), ("INSPECTOR", Pages)])
def test_every_setting_is_in_the_table_with_its_default(name, kind):
    for setting in fields(kind):
        (row,) = re.findall(rf'^\| `{name}\["{setting.name}"\]` \|.*$', MOUNTING, re.MULTILINE)
        if setting.default is not MISSING and setting.default not in ("", (), False):
            assert f"`{setting.default}`" in row
