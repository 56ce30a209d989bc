"""Policy kinds of plug-ins and estimators of the library, also where they are not installed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from chatmemory import TokenWindowChatMemory, UserMessage, services
from chatmemory.ledger.verification import verify
from chatmemory.reading import windows
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.windows.policies import KINDS, Policy
from chatmemory.windows.window import Weighable

from ..a_program import LettersEstimator
from ..conversations import create_and_add, users

URL = "/api/v1/memories/"
MINE = {"kind": "letters", "max_letters": 9, "fair": True, "share": 0.5}
OTHER = {"policy": {"kind": "message_window", "max_messages": 2}}
HELLO = {"messages": [{"type": "AI", "text": "hello"}]}


@dataclass(frozen=True)
class Letters(Policy):
    """A test kind in which a message costs twice its tokens."""

    kind: ClassVar[str] = "letters"
    label: ClassVar[str] = "Letters"
    unit: ClassVar[str] = "letters"
    short_unit: ClassVar[str] = "ltr"
    limit_name: ClassVar[str] = "max_letters"
    java_name: ClassVar[str] = "maxLetters"

    fair: bool = False
    share: float = 0.1
    rank: int = 3

    def cost(self, message: Weighable) -> int:
        return 2 * message.tokens


@pytest.fixture
def letters():
    KINDS.register("letters", Letters)
    yield Letters
    if "letters" in KINDS:
        KINDS.unregister("letters")


@pytest.fixture
def gone(db, letters) -> str:
    """A conversation of four steps whose policy's kind is no longer installed."""
    create_and_add(
        "gone",
        Letters(15, fair=True),
        users("one", "two", "three"),
    )
    services.change("gone", labels={"team": "a"})
    KINDS.unregister("letters")
    return f"{URL}gone/"


@pytest.fixture
def own(db) -> str:
    """A conversation whose estimator is known only to the library that made it."""
    library().add(UserMessage("one"), UserMessage("two"))
    return f"{URL}own/"


def library() -> TokenWindowChatMemory:
    return TokenWindowChatMemory("own", 20, LettersEstimator(), DjangoChatMemoryStore())


def test_a_registered_kind_is_accepted_and_shown(api, db, letters):
    assert api.post(URL, {"id": "m", "policy": MINE}).status_code == 201
    assert api.get(f"{URL}m/").data["policy"] == {
        **MINE,
        "rank": 3,
        "estimator": "gpt-4o",
        "always_keep_system_message_first": False,
        "low_water": "1",
        "snap_to_user": False,
        "meters_only": False,
        "auto_recover_orphaned_tool_messages": False,
        "free_system": False,
        "oversized": "evict",
    }
    listed = api.get(f"{URL}?policy=letters").data["results"]
    assert [row["id"] for row in listed] == ["m"]


def schema_name(reference) -> str:
    return reference["$ref"].rpartition("/")[2]


def test_a_registered_kind_is_in_the_openapi_document(api, letters):
    document = api.get("/api/v1/schema/?format=json").json()
    schemas = document["components"]["schemas"]
    options = {
        "estimator": ("string", '"gpt-4o"'),
        "fair": ("boolean", "false"),
        "share": ("number", "0.1"),
        "rank": ("integer", "3"),
    }
    for name in ("Policy", "StoredPolicy"):
        kinds = [schemas[schema_name(each)] for each in schemas[name]["anyOf"]]
        (mine,) = (each for each in kinds if "max_letters" in each["properties"])
        assert schemas[schema_name(mine["properties"]["kind"])]["enum"] == ["letters"]
        is_stored = name == "StoredPolicy"
        always = {*mine["properties"]} if is_stored else {"kind", "max_letters"}
        assert {*mine["required"]} == always
        for option, (type, default) in options.items():
            told = {} if is_stored else {"description": f"By default `{default}`."}
            assert mine["properties"][option] == {"type": type, **told}
    parameters = document["paths"]["/api/v1/memories/"]["get"]["parameters"]
    (policy,) = (each for each in parameters if each["name"] == "policy")
    assert policy["schema"]["enum"] == [
        *("message_window", "token_window", "turn_window"),
        *("letters", "client"),
    ]


def test_a_kind_that_is_not_registered_is_refused(api, db):
    response = api.post(URL, {"id": "m", "policy": MINE})
    assert (response.status_code, response.data["field"]) == (422, "policy")
    assert api.get(f"{URL}?policy=letters").status_code == 422


def test_an_unavailable_policy_is_shown_as_it_is_stored(api, gone):
    policy = {"kind": "letters", "limit": 15, "estimator": "gpt-4o", "fair": True}
    stale = api.delete(gone, headers={"If-Match": '"1"'}).data["current"]
    for shown in (api.get(gone).data, api.get(URL).data["results"][0], stale):
        assert (shown["policy"], shown["load"]) == (policy, None)


@pytest.mark.parametrize(
    ("conversation", "why"),
    [("gone", "'letters'"), ("own", "the tokens of 'own' are counted by 'custom:")],
)
def test_an_uninstalled_kind_decides_nothing_until_another_policy_is_set(
    api, gone, own, conversation, why
):
    url = f"{URL}{conversation}/"
    version = api.get(url).data["version"]
    for method, path in (("post", "messages/"), ("put", "messages/"), ("post", "simulate/")):
        response = getattr(api, method)(url + path, HELLO)
        assert response.status_code == 409
        assert response.data["type"] == "urn:chatmemory:policy-unavailable"
        assert why in response.data["detail"]
        assert "not installed" in response.data["detail"]
    assert api.get(url).data["version"] == version
    simulated = api.post(f"{url}simulate/", HELLO | OTHER)
    assert (simulated.status_code, simulated.json()["load"]) == (200, 2)
    assert api.patch(url, OTHER).data["policy"]["kind"] == "message_window"
    assert api.post(f"{url}messages/", HELLO).status_code == 201
    if conversation == "own":
        library().add(UserMessage("three"))
        assert len(library().messages()) == 3
        assert verify("own") is None


def test_an_estimator_that_a_client_names_is_its_mistake(api, own):
    policy = {"kind": "token_window", "max_tokens": 20, "estimator": "letters"}
    response = api.patch(own, {"policy": policy})
    assert (response.status_code, response.data["field"]) == (422, "policy")
    assert "'letters'" in response.data["detail"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("patch", "", {"labels": {"team": "b"}}),
        ("delete", "messages/", None),
        ("post", "messages/1/redact/", None),
        ("delete", "", None),
    ],
)
def test_changes_without_a_decision_work_under_an_unavailable_policy(api, gone, method, path, body):
    response = getattr(api, method)(gone + path, body)
    assert response.status_code in (200, 204), response.data


def test_a_policy_whose_measure_is_not_known_has_no_meter_and_no_limit(operator_client, gone):
    """What its limit counts is not known: tokens are shown, as where the client decides."""
    overview, page = operator_client.get("/?sort=fill"), operator_client.get("/c/gone/")
    gauges = [overview.context["rows"][0].gauge, page.context["page"].gauge]
    tokens = windows.outline("gone").totals.tokens
    for shown in gauges:
        assert (shown.load, shown.unit, shown.limit, shown.fill) == (tokens, "tok", None, 0)
    for html in (overview.content.decode(), page.content.decode()):
        assert 'role="meter"' not in html
    assert "letters (unknown)" in page.content.decode()
    html = page.content.decode()
    assert "c-limit" not in html
    assert "Free:" not in html
    assert "limit 15" not in html
