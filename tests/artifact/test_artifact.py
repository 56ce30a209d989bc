"""What people install: one wheel, from the files of the image, in environments that have no more.

The lines of the documents run there as they stand.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from importlib.metadata import PathDistribution
from textwrap import dedent

import pytest

from ..wheels import ROOT, files_of

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
del EXTRAS["strategies"]  # its frameworks have an environment of their own: `make strategies`
ENTRY_POINTS = """
from importlib.metadata import distribution
for each in distribution("django-chatmemory").entry_points:
    each.load()
    print(each.group, each.name)
"""
# What pip's script for the command does, with a line that was typed.
TYPED = """
import sys
from importlib.metadata import distribution
(entry,) = distribution("django-chatmemory").entry_points.select(group="console_scripts")
sys.argv[0] = entry.name
try:
    entry.load()()
except SystemExit as ended:
    if ended.code not in (None, 0, 1):
        raise
"""
# A project with all rooms, as docs/mounting.md says.
MOUNTED = """
import django, importlib, pkgutil
from django.conf import settings
import inspector

settings.configure(
    SECRET_KEY="elsewhere",
    ROOT_URLCONF="urls",
    STATIC_URL="static/",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}},
    INSTALLED_APPS=[
        *("django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"),
        *("django.contrib.messages", "django.contrib.staticfiles"),
        *("chatmemory", "inspector", "django_htmx", "rest_framework"),
        *("drf_spectacular", "drf_spectacular_sidecar", *inspector.ROOMS),
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        *inspector.MIDDLEWARE,
    ],
    TEMPLATES=[{
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": [
            "django.template.context_processors.request",
            "django.contrib.auth.context_processors.auth",
        ]},
    }],
    SILENCED_SYSTEM_CHECKS=["inspector.W002"],
)
django.setup()
from django.core.management import call_command

call_command("check", fail_level="WARNING")
# A program of its own; and what the extras mcp and pydantic-ai are for
left_out = [f"inspector.rooms.{each}" for each in
    ("recorder.proxy.__main__", "agents.tools", "agents.server", "agents.reports",
     "pydantic_ai.store")]
found = [each.name for each in pkgutil.walk_packages(inspector.__path__, "inspector.")]
for name in found:
    if name.startswith("inspector.rooms.") and name not in left_out and ".migrations" not in name:
        importlib.import_module(name)
call_command("migrate", verbosity=0)
print(len(inspector.ROOMS), "rooms")
"""
URLS = """
from django.urls import include, path

urlpatterns = [
    path("ops/chat/", include("inspector.urls")),
    path("ops/chat/api/", include("chatmemory.api.urls")),
]
"""
COMMAND = re.compile(r"^    \$ chatmemory (.*)\n((?:    [^$\n].*\n)*)", re.MULTILINE)
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# A project with the store alone.
STORED = """
import django
from django.conf import settings
settings.configure(
    SECRET_KEY="elsewhere",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "chatmemory"],
)
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
"""


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_it_has_the_files_of_the_wheel_that_the_checkout_builds(artifact, installed):
    assert files_of(artifact) == files_of(installed)
    (metadata,) = artifact.glob("*.dist-info")
    groups = {each.group for each in PathDistribution(metadata).entry_points}
    assert groups >= {"console_scripts", "pytest11"}


@pytest.mark.long
@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_each_extra_starts_the_command_and_says_its_version(run, extra):
    assert re.fullmatch(r"\d+[.]\d+.*\n", run(extra, "-c", TYPED, "--version"))


def test_each_entry_point_can_be_loaded(run):
    assert run("pytest", "-c", ENTRY_POINTS).split() == [
        *("console_scripts", "chatmemory", "pytest11", "chatmemory")
    ]


def test_any_run_of_pytest_goes_on_where_it_is_installed(run, tmp_path):
    (tmp_path / "test_theirs.py").write_text("def test_theirs(): pass")
    assert "1 passed" in run("pytest", "-m", "pytest", "test_theirs.py")


def test_the_extra_pages_has_what_all_rooms_need(run, tmp_path):
    """`check` is silent, each module of a room can be imported, and its tables are made."""
    (tmp_path / "urls.py").write_text(URLS)
    assert run("pages", "-c", MOUNTED).split()[-1] == "rooms"


@pytest.mark.long
@pytest.mark.parametrize("extra", ["inspector", "mcp"])
@pytest.mark.parametrize("name", ["README.md", "docs/quickstart/operator.md"])
def test_the_commands_of_a_page_print_what_it_shows(run, tmp_path, name, extra, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    from subprocess import run as shell

    for script in SHELL.findall(page("docs/quickstart/operator.md")):
        shell(["sh", "-eu", "-c", script], check=True, cwd=tmp_path)
    typed = [each for each in COMMAND.findall(page(name)) if not each[0].startswith("run")]
    assert len(typed) >= 2
    for line, shown in typed:
        printed = run(extra, "-c", TYPED, *shlex.split(line))
        if shown:
            words = dedent(shown).split()  # README.md shows the beginning
            assert printed.split()[: len(words)] == words, line


@pytest.mark.long
@pytest.mark.parametrize("name", ["README.md", "docs/quickstart/developer.md", "docs/library.md"])
def test_the_lines_of_python_run(run, name):
    """Those before the first one that names Django without it, all of them with it."""
    snippets = SNIPPET.findall(page(name))
    bare = []
    for each in snippets:
        if "stores.database" in each or "stores.http" in each:
            break
        bare.append(each)
    assert bare
    run("", "-c", "\n".join(bare))
    run("django", "-c", STORED + "\n".join(snippets))


def test_the_workflow_of_the_tests_page_runs(run, tmp_path):
    """The line that installs takes the file that a line of docs/installing.md writes."""
    steps = re.findall(r"- run: (.*)", page("docs/testing.md"))
    install, check = steps
    assert install == 'pip install "$(ls wheels/django_chatmemory-*.whl)[pytest]"'
    assert "pip wheel --no-deps" in page("docs/installing.md")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/a.json").write_text('[{"role": "user", "content": "A-1182"}]')
    told = run("pytest", "-c", TYPED, *shlex.split(check.removeprefix("chatmemory ")))
    assert "0 of" in told
    assert (tmp_path / "memory.xml").exists()


def test_what_a_page_says_of_installing_is_said_by_the_page_of_installing():
    """No line installs into the system's Python, which Debian's refuses, or from an index."""
    for name in ("README.md", *(f"docs/quickstart/{each}.md" for each in ("operator", "agent"))):
        text = page(name)
        assert "installing.md" in text
        assert not re.search(r"(?<!pipx )(?<!\.venv/bin/)\bpip install '\.\[(inspector|mcp)", text)
