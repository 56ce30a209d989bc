"""Commands of the library and the site check the models before they begin, and load no pages."""

from __future__ import annotations

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import SystemCheckError

APPS = {"chatmemory", "inspector", "inspector.project"}
COMMANDS = sorted(name for name, app in get_commands().items() if app in APPS and name != "serve")


def check(name: str) -> None:
    command = load_command_class(get_commands()[name], name)
    command.check(**command.get_check_kwargs({}))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_loads_no_pages(name, db, settings):
    settings.ROOT_URLCONF = "of.no.module"
    check(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_refuses_models_that_would_not_work(name, db, settings):
    settings.USE_TZ = False
    with pytest.raises(SystemCheckError, match="USE_TZ"):
        check(name)
