"""Policy kinds of plug-ins over the API, also after the plug-in was removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from chatmemory import UserMessage, queries, services
from chatmemory.core.policies import KINDS, MessageWindow, Policy

URL = "/api/v1/memories/"
MINE = {"kind": "letters", "max_letters": 9, "fair": True, "share": 0.5}


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

    def load(self, count: int, tokens: int) -> int:
        return 2 * tokens

    def cost(self, tokens: int) -> int:
        return 2 * tokens


@pytest.fixture
def letters():
    KINDS.register("letters", Letters)
    yield Letters
    KINDS._items.pop("letters", None)


@pytest.fixture
def gone(db, letters) -> str:
    """A conversation of four steps whose policy's kind is no longer installed."""
    services.create("gone", Letters(15, fair=True))
    services.add("gone", [UserMessage("one"), UserMessage("two"), UserMessage("three")])
    services.change("gone", labels={"team": "a"})
    KINDS.unregister("letters")
    return f"{URL}gone/"


def test_a_registered_kind_is_accepted_and_shown(api, db, letters):
    created = api.post(URL, {"id": "m", "policy": MINE})
    assert created.status_code == 201
    shown = api.get(f"{URL}m/").data["policy"]
    assert shown == {
        **MINE,
        "rank": 3,
        "estimator": "gpt-4o",
        "always_keep_system_message_first": False,
        "low_water": "1",
        "snap_to_user": False,
        "meters_only": False,
        "oversized": "evict",
    }
    listed = api.get(f"{URL}?policy=letters").data["results"]
    assert [row["id"] for row in listed] == ["m"]


def named(reference) -> str:
    return reference["$ref"].rpartition("/")[2]


def test_a_registered_kind_is_in_the_openapi_document(api, letters):
    document = api.get("/api/v1/schema/?format=json").json()
    schemas = document["components"]["schemas"]
    for name in ("Policy", "StoredPolicy"):
        kinds = [schemas[named(each)] for each in schemas[name]["anyOf"]]
        (mine,) = (each for each in kinds if "max_letters" in each["properties"])
        assert schemas[named(mine["properties"]["kind"])]["enum"] == ["letters"]
        assert mine["required"] == ["kind", "max_letters"]
        assert mine["properties"]["fair"] == {"type": "boolean", "default": False}
        assert mine["properties"]["share"] == {"type": "number", "default": 0.1}
        assert mine["properties"]["rank"] == {"type": "integer", "default": 3}
        assert mine["properties"]["estimator"] == {"type": "string", "default": "gpt-4o"}
    parameters = document["paths"]["/api/v1/memories/"]["get"]["parameters"]
    (policy,) = (each for each in parameters if each["name"] == "policy")
    assert policy["schema"]["enum"] == ["message_window", "token_window", "letters", "client"]


def test_a_kind_that_is_not_registered_is_refused(api, db):
    response = api.post(URL, {"id": "m", "policy": MINE})
    assert (response.status_code, response.data["field"]) == (422, "policy")
    assert api.get(f"{URL}?policy=letters").status_code == 422


def test_an_unavailable_policy_is_shown_as_it_is_stored(api, gone):
    for shown in (api.get(gone).data, api.get(URL).data["results"][0]):
        assert shown["policy"] == {
            "kind": "letters",
            "limit": 15,
            "estimator": "gpt-4o",
            "fair": True,
        }
        assert shown["load"] is None


@pytest.mark.parametrize(
    "path",
    ["messages/", "messages/?at=2", "history/", "steps/", "messages/1/", "messages/2/"]
    + [f"steps/{n}/" for n in (1, 2, 3, 4)],
)
def test_everything_can_be_read_under_an_unavailable_policy(api, gone, path):
    response = api.get(gone + path)
    assert response.status_code == 200, response.content
    if "seqs" in (shown := response.json()):
        assert (shown["load"], shown["limit"]) == (None, 15)


@pytest.mark.parametrize(
    ("method", "path"), [("post", "messages/"), ("put", "messages/"), ("post", "simulate/")]
)
def test_an_unavailable_policy_decides_nothing(api, gone, method, path):
    body = {"messages": [{"type": "AI", "text": "hello"}]}
    response = getattr(api, method)(gone + path, body)
    assert response.status_code == 409
    assert response.data["type"] == "urn:chatmemory:policy-unavailable"
    assert "'letters'" in response.data["detail"]
    assert api.get(gone).data["version"] == 4


def test_another_policy_is_simulated_and_put_in_force(api, gone):
    body = {"messages": [{"type": "AI", "text": "hello"}]}
    policy = {"kind": "message_window", "max_messages": 2}
    simulated = api.post(f"{gone}simulate/", body | {"policy": policy})
    assert (simulated.status_code, simulated.json()["load"]) == (200, 2)
    assert api.patch(gone, {"policy": policy}).data["policy"]["kind"] == MessageWindow.kind
    assert api.post(f"{gone}messages/", body).status_code == 201


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


def test_the_problem_of_a_stale_version_shows_an_unavailable_policy(api, gone):
    response = api.delete(gone, headers={"If-Match": '"1"'})
    assert response.status_code == 412
    assert response.data["current"]["policy"]["kind"] == "letters"
    assert response.data["current"]["load"] is None


def test_the_overview_lists_an_unavailable_policy(operator_client, gone):
    page = operator_client.get("/?sort=fill")
    assert page.status_code == 200
    assert "letters (unknown)" in page.content.decode()


@pytest.mark.parametrize("query", ["", "?at=2", "?at=3&msg=1", "?msg=3"])
def test_a_conversation_page_shows_an_unavailable_policy(operator_client, gone, query):
    assert operator_client.get(f"/c/gone/{query}").status_code == 200


def test_a_policy_whose_measure_is_not_known_has_no_meter_and_no_limit(operator_client, gone):
    """What its limit counts is not known: tokens are shown, as where the client decides."""
    overview, page = operator_client.get("/"), operator_client.get("/c/gone/")
    gauges = [overview.context["rows"][0].gauge, page.context["page"].gauge]
    tokens = queries.outline("gone").totals.tokens
    for shown in gauges:
        assert (shown.load, shown.unit, shown.limit, shown.fill) == (tokens, "tok", None, 0)
    for html in (overview.content.decode(), page.content.decode()):
        assert 'role="meter"' not in html
    html = page.content.decode()
    assert "c-limit" not in html
    assert "Free:" not in html
    assert "limit 15" not in html
    assert overview.context["rows"][0].spark[2] is None
