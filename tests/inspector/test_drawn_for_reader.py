"""What pages share is drawn once, and shows each reader only what is theirs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client

from chatmemory import MessageWindow, services
from chatmemory.roles import GROUPS, Role
from inspector.display import cookie
from inspector.rooms.simulation.composer import Composer, Entered

from ..conversations import create_and_add, numbered

pytestmark = pytest.mark.django_db


def page(client: Client, address: str = "/") -> str:
    return client.get(address).content.decode()


def tokens(html: str) -> set[str]:
    return set(re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', html))


@pytest.fixture
def viewer_client():
    user = get_user_model().objects.create_user("viewer")
    user.groups.add(Group.objects.get(name=GROUPS[Role.VIEWER]))
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.needs("settings")
def test_a_menu_has_what_its_reader_may_see(operator_client, viewer_client):
    for _ in range(2):
        assert 'href="/tokens/"' in page(operator_client)
        assert 'href="/tokens/"' not in page(viewer_client)
        assert "Sign out" not in page(Client(), "/sign-in/")


@pytest.mark.needs("settings")
def test_a_menu_changes_with_the_role_of_its_reader(operator, operator_client):
    assert 'href="/tokens/"' in page(operator_client)
    operator.is_superuser = False
    operator.save()
    operator.groups.add(Group.objects.get(name=GROUPS[Role.VIEWER]))
    assert 'href="/tokens/"' not in page(operator_client)


def test_forms_have_the_token_of_their_reader(operator_client, viewer_client):
    first, second = tokens(page(operator_client)), tokens(page(viewer_client))
    assert first
    assert second - first == second != set()
    sender = Client(enforce_csrf_checks=True)
    sender.cookies = operator_client.cookies
    token = tokens(page(sender)).pop()
    sent = {"csrfmiddlewaretoken": token, "theme": "dark", "next": "/"}
    assert sender.post("/theme/", sent).status_code == 302


def test_forms_return_to_the_page_that_has_them(operator_client):
    for address in ("/?q=a&amp;sort=fill", "/tokens/"):
        html = page(operator_client, address.replace("&amp;", "&"))
        assert set(re.findall(r'name="next" value="([^"]*)"', html)) == {address}


def test_the_theme_button_changes_with_the_theme(operator_client):
    assert 'name="theme" value="dark"' in page(operator_client)
    operator_client.cookies[cookie("theme")] = "dark"
    assert 'name="theme" value="light"' in page(operator_client)


def test_pages_load_the_files_of_their_rooms(operator_client):
    assert "rooms/lab/lab.css" in page(operator_client, "/lab/")
    assert "rooms/lab/lab.css" not in page(operator_client, "/tokens/")


def test_only_who_may_write_is_offered_to_add(operator_client, viewer_client):
    create_and_add("m", MessageWindow(2), numbered(3, "said"))
    for _ in range(2):
        assert 'formaction="/c/m/add/"' in page(operator_client, "/c/m/")
        assert 'formaction="/c/m/add/"' not in page(viewer_client, "/c/m/")


def test_a_form_with_words_is_not_kept():
    """A draft, a limit in any words, and a sentence about them are drawn anew each time."""
    empty = Composer("m", 2, "msg", is_live=True)
    assert not empty.has_words
    assert replace(empty, problem="too long: d").has_words
    for words in ({"text": "d"}, {"limit": "d"}, {"shown": "d"}):
        assert replace(empty, entered=Entered(**words)).has_words


def test_a_drawn_size_follows_the_conversation(operator_client):
    create_and_add("m", MessageWindow(5), numbered(3, "said"))
    assert 'aria-valuenow="3"' in page(operator_client, "/c/m/")
    services.add("m", numbered(1, "more"))
    assert 'aria-valuenow="4"' in page(operator_client, "/c/m/")
