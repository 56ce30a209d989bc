"""The built wheel in an empty venv: with each extra it has all that it needs, and no more."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
import requests
from trove_classifiers import classifiers

import chatmemory

from .serving import free_port
from .wheels import ROOT, empty_venv, environment, files_of, python

# Without Django or httpx, these say what to install.
WITHOUT = """
from importlib import import_module
for name in ("database", "http"):
    try:
        import_module(f"chatmemory.stores.{name}")
    except ImportError as error:
        print(error)
"""
READ = """
from chatmemory.formats import read_transcripts
assert read_transcripts(b'[{"role": "user", "content": "hi"}]').transcripts
"""
IN_A_PROJECT = """
import django
from django.conf import settings

settings.configure(
    SECRET_KEY="elsewhere",
    ROOT_URLCONF="chatmemory.api.urls",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}},
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "rest_framework",
        "drf_spectacular",
        "chatmemory",
    ],
)
django.setup()

from django.core.management import call_command, get_commands, load_command_class
from django.test import Client
from chatmemory import MessageWindowChatMemory, UserMessage
from chatmemory.stores.database import DjangoChatMemoryStore

call_command("check", fail_level="WARNING")
call_command("migrate", verbosity=0)
memory = MessageWindowChatMemory("a", 2, store=DjangoChatMemoryStore())
memory.add(UserMessage("hello"))
for name, app in get_commands().items():
    if app == "chatmemory":
        load_command_class(app, name)
call_command("verify_memories")
print(Client().get("/v1/memories/", headers={"host": "localhost"}).status_code)
"""
# What pip's script for the entry point does.
TYPED = """
import sys
from importlib.metadata import distribution
(entry,) = distribution("django-chatmemory").entry_points.select(group="console_scripts")
sys.argv[0] = entry.name
main = entry.load()
"""
# Types one command after another.
END = "---"
EACH = f"""
for line in sys.argv[1:]:
    sys.argv[1:] = line.split()
    try:
        main()
    except SystemExit as ended:
        print(ended)
    print("{END}")
"""
VISIT = """
import inspector
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.test import Client
call_command("check", fail_level="WARNING")
here = {"host": "localhost"}
page = Client().get("/sign-in/", headers=here)
lesson = Client().get("/learn/tool-calls/", headers=here)
print(inspector.__file__)
print(page.status_code, lesson.status_code, bool(finders.find("inspector/css/base.css")))
"""

SHOP = """
SECRET_KEY = "elsewhere"
ALLOWED_HOSTS = ["localhost"]
ROOT_URLCONF = "shop_urls"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite3"}}
STATIC_URL = "static/"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
SILENCED_SYSTEM_CHECKS = ["inspector.W002"]  # nothing here limits wrong passwords
"""
UNREACHABLE = json.dumps(
    {
        "error": {
            "type": "recorder_error",
            "message": "the provider cannot be reached: [Errno 111] Connection refused",
        }
    }
)
VISIT_SHOP = """
RECORD = '''
import sys
sys.path.insert(0, "")
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "record", "--port", "0", "--spool", "spool", "--upstream",
                           "http://127.0.0.1:9"])
'''
import os, sys
sys.path.insert(0, "")
os.environ["DJANGO_SETTINGS_MODULE"] = "shop_settings"
import django
django.setup()
from importlib.util import find_spec
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client

call_command("check", fail_level="WARNING")
call_command("migrate", verbosity=0)
client = Client(headers={"host": "localhost"})
client.force_login(get_user_model().objects.create_superuser("ada", password="l"))
paths = ("", "learn/tool-calls/", "api/v1/memories/")
print(*(client.get(f"/ops/chat/{path}").status_code for path in paths))
protobuf = {"content_type": "application/x-protobuf"}
print(client.post("/ops/chat/otlp/v1/traces", bytes([10, 0]), **protobuf).status_code)

import signal, subprocess
from urllib.error import HTTPError
from urllib.request import urlopen
command = [sys.executable, "-c", RECORD]
recorder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
site = recorder.stdout.readline().split()[2].rstrip(".")
try:
    urlopen(f"{site}/v1/models", timeout=20)
except HTTPError as error:  # nobody is upstream
    print(error.code, error.read().decode())
recorder.send_signal(signal.SIGTERM)
print(recorder.wait(20))
others = ("axes", "dj_database_url", "environs", "platformdirs", "psycopg", "uvicorn")
print(*(name for name in others if find_spec(name) is None))
"""


@pytest.fixture
def run(installed, tmp_path):
    """Runs Python in an empty venv with the wheel and an extra."""

    def run(extra: str, *arguments: str) -> list[str]:
        folder = tmp_path / (extra or "bare")
        if not folder.exists():
            folder.mkdir()
            empty_venv(installed, folder, extra)
        paths = [installed, folder]
        return python("-S", *arguments, paths=paths, home=tmp_path).splitlines()

    return run


def test_the_wheel_has_all_that_the_checkout_has_for_it(installed):
    """Pages and scripts come from folders beside the packages."""
    ls = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    tracked = subprocess.run(ls, cwd=ROOT, capture_output=True, text=True).stdout
    shipped = {
        f"inspector/{name}" if name.startswith(("templates/", "static/")) else name
        for name in tracked.split()
        if name.startswith(
            ("chatmemory/", "inspector/", "pytest_chatmemory/", "templates/", "static/")
        )
    }
    assert shipped == files_of(installed)


def test_its_metadata_say_what_is_true(installed):
    (folder,) = installed.glob("*.dist-info")
    told = PathDistribution(folder).metadata
    assert told["Version"] == chatmemory.__version__
    assert told["License-Expression"] == "MIT"
    classified = set(told.get_all("Classifier") or ())
    assert classified <= classifiers
    assert {f"Framework :: Django :: {version}" for version in ("5.2", "6.0", "6.1")} <= classified
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)} <= classified


def test_the_page_of_the_package_leads_to_the_sources(installed):
    """A registry shows README.md alone; the pictures are not in the source distribution."""
    (folder,) = installed.glob("*.dist-info")
    told = PathDistribution(folder).metadata
    addresses = dict(each.split(", ") for each in told.get_all("Project-URL") or ())
    page = str(told.get_payload())
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert f"{addresses['Source']}/blob/main/docs/library.md" in links
    assert f"{addresses['Source']}/raw/main/docs/images/conversation.png" in links
    assert all(link.startswith(("https:", "#")) for link in links)
    assert not list(installed.parent.glob("*/docs/images/*.png"))


def test_the_library_needs_only_what_the_wheel_asks_for(run):
    program = (ROOT / "tests/a_program.py").read_text("utf-8")
    modules = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    *_, imported = run("", "-c", f"{program}\nmain()\n{READ}{modules}")
    assert {"chatmemory", "tiktoken"} <= set(imported.split())
    assert not {"django", "inspector", "httpx", "pytest"} & set(imported.split())


def test_reports_on_files_need_only_what_the_wheel_asks_for(run, tmp_path):
    chat = [{"role": "user", "content": "A-1182"}, {"role": "assistant", "content": "A-1182"}]
    (tmp_path / "chat.json").write_text(json.dumps(chat))
    lines = [
        *("doctor chat.json", "recall chat.json"),
        "incidents chat.json --policy message_window:1",
        "check chat.json --policy everything",
        *("compactions chat.json", "recall"),
    ]
    told = "\n".join(run("", "-c", f"{TYPED}{EACH}", *lines)).split(f"\n{END}")
    *found, checked, compactions, unnamed, rest = (each.split("\n") for each in told)
    assert [ended for *_, ended in found] == ["0"] * 3, found
    assert checked == ["", "1 conversation; 0 of 1 checks failed", "0"]
    assert compactions == ["", "2"]
    assert "To report on files, name the files" in unnamed[1]
    assert rest == [""]
    assert not (tmp_path / "chatmemory").exists()  # nothing is stored


MEMORY_TEST = """
def test_chat(chatmemory):
    chatmemory.transcript("chat.json", policy="message_window:2").assert_holds("A-1182", at=1)
"""


def test_the_plugin_for_pytest_needs_only_its_extra(run, tmp_path):
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "A-1182"}]')
    (tmp_path / "test_chat.py").write_text(MEMORY_TEST)
    assert "1 passed" in run("pytest", "-m", "pytest", "--rootdir", ".", "test_chat.py")[-1]


@pytest.mark.parametrize("is_last", [True, False])
def test_the_other_package_of_this_name_is_reported(installed, tmp_path, is_last):
    """PyPI's `chatmemory` has these two files, and replaces ours if it is installed last."""
    both = tmp_path / "both"
    shutil.copytree(installed, both)
    (both / "chatmemory/chatmemory.py").write_text("class ChatMemory: ...")
    if is_last:
        (both / "chatmemory/__init__.py").write_text("from .chatmemory import ChatMemory")
    paths = empty_venv(both, tmp_path)

    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-S", "-c", *arguments]
        where = {"cwd": tmp_path, "env": environment(*paths)}
        return subprocess.run(command, **where, capture_output=True, text=True)

    imported = ran("import chatmemory, chatmemory.messages; print('imported')")
    assert ("imported" in imported.stdout) is not is_last
    assert ("ImportError" if is_last else "RuntimeWarning") in imported.stderr
    for each in (imported, ran(f"{TYPED}main()", "--version")):
        assert "Remove both with pip uninstall" in each.stderr


def test_stores_that_need_a_package_name_it(run):
    assert run("", "-c", WITHOUT) == [
        "DjangoChatMemoryStore needs Django: pip install '.[django]' in a checkout",
        "HttpChatMemoryStore needs httpx: pip install '.[http]' in a checkout",
    ]


def test_a_django_project_needs_only_the_extra_django(run):
    assert run("django", "-c", IN_A_PROJECT)[-2:] == [
        "1 conversation verified: all match their replay",
        "401",
    ]


@pytest.mark.parametrize(
    ("extra", "module"),
    [
        ("http", "chatmemory.stores.http"),
        ("langchain", "chatmemory.integrations.langchain"),
        ("mcp", "inspector.project.settings, mcp.server"),
        ("otel", "opentelemetry.exporter.otlp.proto.http.trace_exporter"),
        ("serve", "uvicorn_worker"),
    ],
)
def test_an_extra_brings_the_packages_that_it_needs(run, extra, module):
    run(extra, "-c", f"import {module}")


def test_a_project_that_mounts_the_pages_needs_only_the_extra_pages(run, tmp_path):
    page = (ROOT / "docs/mounting.md").read_text("utf-8")
    settings, urls, *_ = re.findall(
        r"^```python\n# \w+\.py\n(.*?)^```$", page, re.DOTALL | re.MULTILINE
    )
    (tmp_path / "shop_settings.py").write_text(SHOP + settings)
    (tmp_path / "shop_urls.py").write_text(
        f"from django.urls import path\nurlpatterns = []\n{urls}"
    )
    assert run("pages", "-c", VISIT_SHOP)[-5:] == [
        "200 200 200",
        "200",
        "502 " + UNREACHABLE,
        "0",
        "axes dj_database_url environs platformdirs psycopg uvicorn",
    ]


def test_the_command_says_what_is_missing(run):
    code = "try: main()\nexcept SystemExit as ended: print(ended)"
    assert run("", "-c", f"{TYPED}{code}", "verify") == [
        (
            "chatmemory verify needs the package django, which is not installed: "
            "pip install '.[inspector]' in a checkout"
        )
    ]
    assert run("", "-c", f"{TYPED}{code}", "--help")[0].startswith("usage: chatmemory COMMAND")


def first_visit(paths: list[Path], home: Path) -> str:
    """Type `chatmemory run`, sign in by the link that it prints, and return the first page."""
    typed = [sys.executable, "-S", "-c", f"{TYPED}main()", "run", "--port", str(free_port())]
    running = subprocess.Popen(
        [*typed, "--json"],
        cwd=home,
        env=environment(*paths, XDG_DATA_HOME=str(home)),
        stdout=subprocess.PIPE,
        text=True,
    )
    with running:
        try:
            with requests.Session() as session:
                return session.get(json.loads(running.stdout.readline())["sign_in"]).text
        finally:
            running.send_signal(signal.SIGINT)


@pytest.mark.long
def test_the_inspector_keeps_its_data_with_the_user(run, installed, tmp_path):
    before = {path for path in installed.rglob("*") if "__pycache__" not in path.parts}
    (tmp_path / "inspector").mkdir()
    paths = empty_venv(installed, tmp_path / "inspector", "inspector")
    assert "order-7741" in first_visit(paths, tmp_path)
    *_, checked, package, page = run(
        "inspector", "-m", "inspector", "shell", "-v", "0", "-c", VISIT
    )
    assert Path(package) == installed / "inspector/__init__.py"
    assert page == "200 200 True"
    assert "no issues" in checked
    assert (tmp_path / "chatmemory/chatmemory.sqlite3").exists()
    after = {path for path in installed.rglob("*") if "__pycache__" not in path.parts}
    assert after == before


def test_the_test_sees_what_is_not_asked_for(run):
    with pytest.raises(AssertionError, match="No module named 'django'"):
        run("", "-c", "import django")
    assert sys.modules["django"]
