"""The wheel in an empty Django project, mounted as docs/mounting.md says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from playwright.sync_api import expect

from tests.serving import free_port
from tests.typescript import run_client, with_typescript
from tests.wheels import ROOT, environment, python

from .conftest import new_page, tour_ended
from .menus import choose, open_menu

SNIPPET = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CHAT = "/ops/chat/"
# What the project has of its own: people who sign in by their address, its language, a page.
MODELS = """
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models

class Person(AbstractBaseUser, PermissionsMixin):
    email = models.EmailField(primary_key=True)
    objects = BaseUserManager()
    USERNAME_FIELD = "email"
"""
SETTINGS = """
INSTALLED_APPS += ["people"]
AUTH_USER_MODEL = "people.Person"
LANGUAGE_CODE = "de"
USE_THOUSAND_SEPARATOR = True
SILENCED_SYSTEM_CHECKS = ["inspector.W002"]  # nothing here limits wrong passwords
"""
URLS = """
from django.contrib.staticfiles.urls import staticfiles_urlpatterns
from django.http import HttpResponse

urlpatterns += [path("", lambda request: HttpResponse("our own page"))]
urlpatterns += staticfiles_urlpatterns()
"""
PREPARE = """
import django
django.setup()
from django.contrib.auth import get_user_model
from django.core.management import call_command

call_command("makemigrations", "people", verbosity=0)
call_command("check", fail_level="WARNING")
call_command("migrate", verbosity=0)
call_command("load_demo")
ada = get_user_model()(email="ada@example.org", is_superuser=True)
ada.set_password("lovelace-1842")
ada.save()
call_command("create_token", "bot", role="admin")
"""


@pytest.fixture(scope="module")
def shop(installed, tmp_path_factory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("mounted")
    home = folder / "shop"
    home.mkdir()
    python("-m", "django", "startproject", "shop", ".", paths=[installed], home=home)
    for name, lines in SNIPPET.findall((ROOT / "docs/mounting.md").read_text("utf-8")):
        add(home / "shop" / name, lines)
    add(home / "shop/settings.py", SETTINGS)
    add(home / "shop/urls.py", URLS)
    (home / "people").mkdir()
    (home / "people/__init__.py").touch()
    (home / "people/models.py").write_text(MODELS)
    script = 'import os; os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"' + PREPARE
    token = python("-c", script, paths=[installed], home=home).split()[-1]
    with running(home, environment(installed)) as url:
        yield Shop(url, token)


def add(file: Path, lines: str) -> None:
    with file.open("a") as opened:
        opened.write(f"\n{lines}")


@contextmanager
def running(home: Path, environment: dict[str, str]) -> Iterator[str]:
    """The URL of a server as a project starts it."""
    port = free_port()
    options = ["--port", str(port), "--lifespan", "off", "--timeout-graceful-shutdown", "2"]
    command = [sys.executable, "-m", "uvicorn", "shop.asgi:application", *options]
    with subprocess.Popen(
        command,
        cwd=home,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert any("Uvicorn running" in line for line in process.stderr), "it does not start"
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.communicate(timeout=20)


class Shop:
    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token
        self.bearer = {"Authorization": f"Bearer {token}"}

    def say(self, memory_id: str, words: str) -> None:
        body = {"messages": [{"role": "user", "content": words}], "format": "openai_chat"}
        url = f"{self.url}{CHAT}api/v1/memories/{memory_id}/messages/"
        requests.post(url, json=body, headers=self.bearer, timeout=30).raise_for_status()


@pytest.fixture
def page(contexts, shop):
    """A page of a visitor; a fault in the console or a foreign address fails the test."""
    page = new_page(contexts, locale="de", reduced_motion="no-preference")
    faults: list[str] = []
    ours = (shop.url + CHAT, f"{shop.url}/static/")
    page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith(ours) else faults.append(r.url))
    yield page
    page.close()
    assert not [fault for fault in faults if "404 (Not Found)" not in fault]


def test_a_walk_through_the_mounted_pages(page, shop):
    page.context.add_cookies([tour_ended(shop.url)])
    page.goto(f"{shop.url}{CHAT}c/order-7741/")
    page.get_by_label("Name").fill("ada@example.org")
    page.get_by_label("Password").fill("lovelace-1842")
    page.get_by_role("button", name="Sign in").click()
    step = page.locator(".tape__step")
    expect(step).to_contain_text("Step 58 of 58")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    page.wait_for_load_state()  # as `goto` does: a key that comes before is lost

    page.keyboard.press("ArrowLeft")
    expect(step).to_contain_text("Step 57 of 58")
    page.keyboard.press("g")
    page.keyboard.press("l")
    expect(step).to_contain_text("Step 58 of 58")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    shop.say("order-7741", "It is live")
    expect(step).to_contain_text("Step 59 of 59")

    page.get_by_role("textbox", name="Message").fill("what if")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Simulation from step 59.")).to_be_visible()
    with page.expect_response("**/theme/"):
        choose(page, "Change theme")
    expect(page.locator("html")).to_have_attribute("data-theme", re.compile("dark|light"))

    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(page.locator("table.convs")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("data-theme", re.compile("dark|light"))
    for name, heading in {"Import": "Import conversations", "Tokens": "API tokens"}.items():
        open_menu(page, "More")
        page.get_by_role("navigation").get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    open_menu(page, "More")
    page.get_by_role("link", name="API", exact=True).click()
    expect(page.get_by_text("/api/v1/memories/", exact=True).first).to_be_visible()
    page.goto(f"{shop.url}{CHAT}c/nobody/")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    choose(page, "Sign out", "More")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_streams_are_open_and_the_project_is_as_it_was(shop):
    url = f"{shop.url}{CHAT}c/lisbon-guide/live/"
    with requests.get(url, headers=shop.bearer, stream=True, timeout=10) as stream:
        lines = stream.iter_lines(chunk_size=1, decode_unicode=True)
        assert next(lines) == "retry: 1000"  # Django's view says 5000
        shop.say("lisbon-guide", "and tomorrow?")
        assert any(line.startswith("event: step") for line in lines)
    assert requests.get(url, timeout=10).status_code == 401
    own = requests.get(f"{shop.url}/", timeout=10)
    assert own.text == "our own page"
    assert "Content-Security-Policy" not in own.headers


@with_typescript
@pytest.mark.long
def test_the_types_of_a_client_are_the_same_under_the_prefix(shop, tmp_path):
    """The prefix is in `servers` of the document, and in the base URL of the client."""
    run_client(shop.url + CHAT.rstrip("/"), shop.token, tmp_path)
