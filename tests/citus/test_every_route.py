"""Each route of the site and the API on a cluster: its changes, and an id that is too long."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from chatmemory import AiMessage, MessageWindow, UserMessage, services
from chatmemory.exceptions import MemoryNotFound
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory

from ..conversations import CALL, create_and_add
from ..test_roles import API, PAGES
from .cluster import URL
from .forms import ARGUMENTS, POSTS

if not URL:
    reason = "CITUS_DATABASE_URL names no coordinator of a Citus cluster"
    pytest.skip(reason, allow_module_level=True)

SAID = [
    UserMessage("Be brief."),
    UserMessage("Where is order A-1182?"),
    AiMessage("In Dijon."),
    UserMessage("When does A-1182 come?"),
]
OWN = ("m", "branch", "other", "torn", "repaired", "new", "file", "transcript")
FIRST = [UserMessage("first")]
ROWS = [{"role": "user", "content": "A-1182?"}, {"role": "assistant", "content": "In Dijon."}]


@pytest.fixture
def stored(cluster):
    """Conversations of a test, one of them a branch."""
    create_and_add("m", MessageWindow(3), SAID)
    services.branch("m", "branch", FIRST)
    create_and_add("other", MessageWindow(3), SAID)
    for memory_id in ("torn", "repaired"):
        create_and_add(memory_id, MessageWindow(9), [*FIRST, CALL, *FIRST])
    services.repair("repaired", "openai")
    store_a_call("m", FIRST)
    yield
    services.delete_all(Memory.objects.filter(pk__in=OWN).values_list("pk", flat=True))


def store_a_call(memory_id: str, messages: list) -> None:
    """Store a call that sent messages that were never said in the conversation."""
    from inspector.rooms.calls.writes import store

    from ..rooms.calls.test_beside import a_call

    store(a_call(1, messages, session=memory_id))


@pytest.mark.parametrize("name", POSTS)
def test_each_form_of_the_site_is_carried_out(browser, stored, name):
    arguments = PAGES[f"inspector:{name}"][0] | ARGUMENTS.get(name, {})
    arguments = arguments | {"seq": 2} if "seq" in arguments else arguments
    for fields in POSTS[name]:
        if "file" in fields:
            file = SimpleUploadedFile("transcript.json", json.dumps(ROWS).encode())
            fields = fields | {"file": file}
        answer = browser.post(reverse(f"inspector:{name}", kwargs=arguments), fields)
        assert answer.status_code < 400
        b"".join(answer)  # an export is made while it is sent
    for memory in Memory.objects.filter(pk__in=OWN):
        assert verify(memory.pk) is None


@pytest.mark.parametrize("name", ["conversation", "export", "settings", "compare", "live"])
def test_a_page_of_an_id_that_is_too_long_is_not_found(browser, name):
    assert browser.get(reverse(f"inspector:{name}", args=["x" * 256])).status_code == 404


@pytest.mark.parametrize(
    ("route", "method"),
    [(name, method) for name, (given, methods) in API.items() for method in methods if given],
)
def test_no_operation_fails_for_an_id_that_is_too_long(client_of_api, route, method):
    url = reverse(route, kwargs=API[route][0] | {"memory_id": "x" * 256})
    assert getattr(client_of_api, method)(url, {}).status_code in (400, 404, 422)


def test_a_branch_that_is_too_long_is_not_found(client_of_api, stored):
    url = reverse("chatmemory:redact", args=["m", 1])
    answer = client_of_api.post(url, {"branches": ["x" * 256]})
    assert answer.status_code == 404
    with pytest.raises(MemoryNotFound, match="ids have at most 255"):
        services.delete_all(["x" * 256])
