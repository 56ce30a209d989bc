"""Settings, from environment variables and in INSPECTOR. What is unsafe or wrong does not start;
docs name all of them, and all commands.
"""

from __future__ import annotations

import os
import re
import runpy
import secrets
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.management import BaseCommand, get_commands, load_command_class
from environs import EnvValidationError

from chatmemory.conf import Configuration as Ours
from inspector.conf import InspectorConfiguration as Pages
from inspector.conf import inspector_configuration
from inspector.project import settings as site

from .. import processes
from ..serving import MANAGE

ROOT = Path(__file__).parents[2]
SAFE = {
    "CHATMEMORY_PRODUCTION": "1",
    "CHATMEMORY_SECRET_KEY": secrets.token_urlsafe(48),
    "CHATMEMORY_HOSTS": "memory.example.org",
}


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    ours = ("CHATMEMORY_", "DJANGO_ALLOW_ASYNC_UNSAFE")  # the latter is for the browser tests
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return processes.run([*MANAGE, *arguments], inherited | environment)


@pytest.fixture
def read_settings(monkeypatch, tmp_path):
    """Read the module of settings anew, in an environment of these variables alone."""

    def read(given: dict[str, str]) -> dict[str, Any]:
        for name in [each for each in os.environ if each.startswith("CHATMEMORY_")]:
            monkeypatch.delenv(name)
        for name, value in ({"CHATMEMORY_VAR": str(tmp_path)} | given).items():
            monkeypatch.setenv(name, value)
        return runpy.run_path(str(ROOT / "inspector/project/settings.py"))

    return read


def test_djangos_deployment_check_reports_no_issues(warm_processes, tmp_path):
    check = ("check", "--deploy", "--fail-level", "WARNING")
    found = manage(*check, **SAFE, CHATMEMORY_VAR=str(tmp_path))
    assert found.returncode == 0, found.stderr
    assert "no issues (2 silenced)" in found.stdout  # of other sites of the domain


def test_hsts_is_about_this_host_unless_asked(read_settings):
    names = ("SECURE_HSTS_INCLUDE_SUBDOMAINS", "SECURE_HSTS_PRELOAD")
    for given, expected in (({}, False), ({"CHATMEMORY_HSTS_SUBDOMAINS": "1"}, True)):
        found = read_settings(SAFE | given)
        assert found["SECURE_HSTS_SECONDS"] == 365 * 24 * 3600
        assert [found[name] for name in names] == [expected] * 2


def test_bounds_are_read_from_the_environment(read_settings):
    given = {"CHATMEMORY_PUT_BYTES": "9", "INSPECTOR_FORM_BYTES": "8"}
    found = read_settings(given)
    assert found["CHATMEMORY"]["PUT_BYTES"] == found["DATA_UPLOAD_MAX_MEMORY_SIZE"] == 9
    assert found["INSPECTOR"]["FORM_BYTES"] == 8


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"CHATMEMORY_SECRET_KEY": ""}, "CHATMEMORY_SECRET_KEY must be a secret"),
        ({"CHATMEMORY_SECRET_KEY": "short"}, "CHATMEMORY_SECRET_KEY must be a secret"),
        ({"CHATMEMORY_SECRET_KEY": "a" * 60}, "CHATMEMORY_SECRET_KEY must be a secret"),
        (
            {"CHATMEMORY_SECRET_KEY": f"django-insecure-{secrets.token_urlsafe(48)}"},
            "an insecure example key",
        ),
        ({"CHATMEMORY_DEBUG": "1"}, "unset it in production"),
        ({"CHATMEMORY_HOSTS": None}, "CHATMEMORY_HOSTS must list each host name"),
        ({"CHATMEMORY_HOSTS": "a.example,*"}, "may contain *"),
        ({"CHATMEMORY_HOSTS": "*.example"}, "may contain *"),
        ({"CHATMEMORY_HOSTS": "a.example,.example.com"}, "or begin with a dot"),
    ],
)
def test_an_unsafe_configuration_is_refused(read_settings, change, words):
    given = {name: value for name, value in (SAFE | change).items() if value is not None}
    with pytest.raises(ImproperlyConfigured, match=re.escape(words)):
        read_settings(given)


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("CHATMEMORY_PRODUCTION", "true", "must be 0 or 1"),
        ("CHATMEMORY_PRODUCTION", "", "must be 0 or 1"),
        ("CHATMEMORY_PROXY", "on", "must be 0 or 1"),
        (
            "CHATMEMORY_SECRET_KEY_FALLBACKS",
            "short",
            "must be secret keys of at least 50 characters",
        ),
        ("CHATMEMORY_HSTS_SECONDS", "a year", "Not a valid integer"),
        ("CHATMEMORY_LOCK_SECONDS", "0", "Must be greater than or equal to 1"),
        ("CHATMEMORY_LOCK_SECONDS", "3000000", "less than or equal to 1000000"),
        ("CHATMEMORY_CONNECTIONS", "1", "Must be greater than or equal to 2"),
        ("CHATMEMORY_LOG", "xml", "Must be one of: text, json"),
        ("CHATMEMORY_API_RATE", "many", "must be a rate such as 100/second"),
        ("CHATMEMORY_API_RATE", "0/second", "must be a rate"),
        ("REDIS_URL", "memcached://x", "must begin with redis://"),
        ("REDIS_URL", "redis://h:abc/0", "has a port that is not a number"),
        ("REDIS_URL", "redis://h:0/0", "has the port 0"),
        ("DATABASE_URL", "mysql://x/y", "must begin with sqlite"),
        ("DATABASE_URL", "var/db.sqlite3", "must begin with sqlite"),
        ("DATABASE_URL", "", "must begin with sqlite"),
        ("CHATMEMORY_VAR", "", "must name a folder"),
        ("CHATMEMORY_HOSTS", "", "must name at least one host"),
        ("CHATMEMORY_HOSTS", ",", "must be host names"),
        (
            "CHATMEMORY_HOSTS",
            "https://a.example",
            "must be host names such as memory.example.org, without https://",
        ),
        ("CHATMEMORY_HOSTS", "a.example:8000", "without a port"),
        ("CHATMEMORY_ORIGINS", "foo", "must be origins such as"),
        ("CHATMEMORY_ORIGINS", "https://a.example/", "must be origins such as"),
    ],
)
def test_an_invalid_variable_is_named(read_settings, variable, value, why):
    with pytest.raises(EnvValidationError, match=re.escape(f'"{variable}" invalid')) as told:
        read_settings(SAFE | {variable: value})
    assert why in str(told.value)


def test_the_cache_of_counts_is_redis_where_one_is_named(read_settings):
    in_memory = read_settings({})["CACHES"]["chatmemory"]
    assert in_memory["OPTIONS"]["MAX_ENTRIES"] == 10_000
    in_redis = read_settings({"REDIS_URL": "rediss://host/0"})["CACHES"]["chatmemory"]
    assert in_redis["LOCATION"] == "rediss://host/0"


def test_redis_is_an_extra(read_settings, monkeypatch):
    monkeypatch.setattr("inspector.project.environment.find_spec", {}.get)
    with pytest.raises(EnvValidationError, match=r"pip install '\.\[redis\]'"):
        read_settings({"REDIS_URL": "redis://localhost"})


def test_blanks_around_hosts_and_origins_are_no_part_of_them(read_settings):
    given = {
        "CHATMEMORY_HOSTS": "a.example, [::1]",
        "CHATMEMORY_ORIGINS": "https://a.example, https://*.b.example",
    }
    found = read_settings(SAFE | given)
    assert found["ALLOWED_HOSTS"] == ["a.example", "[::1]"]
    assert found["CSRF_TRUSTED_ORIGINS"] == ["https://a.example", "https://*.b.example"]


def test_a_password_is_not_repeated(warm_processes, tmp_path):
    url = "postgresql://ada:QUOKKA/7@x/y"
    found = manage("check", **SAFE, DATABASE_URL=url, CHATMEMORY_VAR=str(tmp_path))
    assert found.returncode != 0
    assert '"DATABASE_URL" invalid' in found.stderr
    assert "QUOKKA" not in found.stderr


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "INSPECTOR must be a dictionary such as"),
        ({"PAGES": 5, 1: 2}, "INSPECTOR has no setting 1, PAGES"),
        ({"DISK_FREE_MB": -1}, r'"DISK_FREE_MB"\] must be a whole number from 0 to'),
        ({"OPEN_FORM_BYTES": 0}, r'"OPEN_FORM_BYTES"\] must be a whole number from 1 to'),
        ({"FORM_BYTES": 64.0}, r'"FORM_BYTES"\] must be a whole number'),
        ({"MESSAGES_FORM_BYTES": -1}, r'"MESSAGES_FORM_BYTES"\] must be a whole number'),
        ({"UPLOAD_BYTES": 2**31}, r'"UPLOAD_BYTES"\] must be a whole number from 1 to 1,073,741'),
        ({"LESSONS": 3}, r'"LESSONS"\] must be the path of a folder'),
        ({"TRACES": "1"}, r'"TRACES"\] must be True or False, but is: \'1\''),
        ({"WHOLE_SITE": None}, r'"WHOLE_SITE"\] must be True or False'),
        ({"MANAGE": ""}, r'"MANAGE"\] must be a command such as'),
        ({"PRICES": {"gpt-4o": 2.5}}, r'"PRICES"\] must be a dictionary such as'),
        ({"METRICS_TOKEN": b"QUOKKA"}, r'"METRICS_TOKEN"\] must be text'),
    ],
)
def test_a_mistake_in_the_setting_stops_the_start(settings, given, why):
    settings.INSPECTOR = given
    with pytest.raises(ImproperlyConfigured, match=why) as told:
        apps.get_app_config("inspector").ready()
    assert "QUOKKA" not in str(told.value)


def test_a_folder_of_lessons_may_be_a_path(settings, tmp_path):
    settings.INSPECTOR = {"LESSONS": tmp_path}
    assert tmp_path == inspector_configuration().LESSONS


# The first start


def test_several_first_starts_at_once_have_one_secret_key(monkeypatch, tmp_path):
    for n in range(20):
        monkeypatch.setattr(site, "VAR", tmp_path / str(n))
        together = Barrier(4)

        def start(_: int, together=together) -> str:
            together.wait()
            return site.local_secret()

        with ThreadPoolExecutor(4) as processes:
            keys = set(processes.map(start, range(4)))
        assert [len(key) for key in keys] == [50]
        (file,) = site.VAR.iterdir()
        assert file.stat().st_mode & 0o777 == 0o600


def test_a_database_is_made_for_its_owner_alone(tmp_path):
    file = tmp_path / "new" / "chatmemory.sqlite3"
    site.make_private(file)
    assert [each.stat().st_mode & 0o777 for each in (file, file.parent)] == [0o600, 0o700]
    file.chmod(0o640)
    site.make_private(file)
    assert file.stat().st_mode & 0o777 == 0o640, "what is there stays as its owner wants it"


# docs/operations.md has the variables and commands, docs/mounting.md the settings.

OPERATIONS, MOUNTING = ((ROOT / "docs" / f"{n}.md").read_text() for n in ("operations", "mounting"))
READ = re.compile(r'"(CHATMEMORY_[A-Z_]+|DATABASE_URL|WEB_CONCURRENCY)"')
COMMANDS = sorted(
    name for name, app in get_commands().items() if app.startswith(("chatmemory", "inspector"))
)


def test_every_variable_is_in_the_table():
    files = [*(ROOT / "inspector").rglob("*.py"), *(ROOT / "deploy").glob("*.py")]
    variables = {name for file in files for name in READ.findall(file.read_text())}
    assert {"DATABASE_URL", "CHATMEMORY_LOG", "CHATMEMORY_BIND"} <= variables
    assert not [each for each in variables if not re.search(rf"(?m)^\| `{each}`", OPERATIONS)]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_table_with_its_options(name):
    def options_of(command: BaseCommand) -> set[str]:
        parser = command.create_parser("manage.py", "")
        return {option for action in parser._actions for option in action.option_strings}

    rows = "".join(re.findall(rf"(?m)^\| `manage\.py {name}\b.*$", OPERATIONS))
    assert rows
    options = options_of(load_command_class(get_commands()[name], name))
    options -= options_of(BaseCommand())
    assert not [each for each in options if not re.search(rf"{each}\b", rows)]


@pytest.mark.parametrize(("name", "kind"), [("CHATMEMORY", Ours), ("INSPECTOR", Pages)])
def test_every_setting_is_in_the_table_with_its_default(name, kind):
    for setting in fields(kind):
        (row,) = re.findall(rf'(?m)^\| `{name}\["{setting.name}"\]` \|.*$', MOUNTING)
        if setting.default is not MISSING and setting.default not in ("", (), False):
            assert f"`{setting.default}`" in row
