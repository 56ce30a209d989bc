"""One message, its stays and why it left."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from chatmemory import services
from chatmemory.access.tokens import create_token
from chatmemory.reading import conversations, history

from .messages import URL, add

REDACT = f"{URL}messages/1/redact/"
BRANCHES = ("order-branch", "private")


def test_a_message_has_its_stays_and_the_reason_it_left(api, memory_id):
    add(api, "a", "b", "c", "d")
    gone = api.get(f"{URL}messages/1/").data
    assert gone["in_memory"] is False
    assert gone["stays"] == [{"entered_step": 1, "left_step": 4, "reason": "CAPACITY", "tokens": 5}]
    assert gone["why"]["summary"] == (
        "There was no room. When #4 arrived, memory needed 4 messages, more than the limit of 3, "
        "and #1 was the oldest message that could leave."
    )
    assert [line["amount"] for line in gone["why"]["receipt"]] == [3, 1, 4, -1, 3]
    assert api.get(f"{URL}messages/4/").data["why"] is None
    assert api.get(f"{URL}messages/9/").status_code == 404


@pytest.fixture
def branched(api, memory_id) -> str:
    """A conversation whose message has a copy in a branch, and in one with another beginning."""
    add(api, "my number is A-1182")
    for branch in BRANCHES:
        services.branch(memory_id, branch, [])
    return memory_id


@pytest.mark.parametrize(
    ("prefix", "chosen", "left", "reached"),
    [
        ("", None, ["order-branch", "private"], []),
        ("", ["order-branch", "unknown", "order-7741"], ["private"], ["order-branch"]),
        ("", True, [], ["order-branch", "private"]),
        ("order-", True, [], ["order-branch"]),
        ("order-", ["private", "order-branch"], [], ["order-branch"]),
    ],
)
def test_a_redaction_reaches_the_branches_that_it_names(branched, prefix, chosen, left, reached):
    """Those of the token's prefix; the answer lists copies that still have the text."""
    client = APIClient()
    token = create_token("orders", role="admin", prefix=prefix)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    body = {} if chosen is None else {"branches": chosen}
    copies = client.post(REDACT, body).data["copies"]
    assert copies == [{"id": each, "address": each, "seq": 1} for each in left]
    for branch in BRANCHES:
        word = "[redacted #1]" if branch in reached else "my number is A-1182"
        assert texts(branch) == [word]
    assert texts(branched) == ["[redacted #1]"]
    assert client.post(REDACT, {"branches": True}).data["copies"] is None


@pytest.mark.parametrize("branches", [False, "order-branch", [1], {}, 1, ["twig\0"]])
def test_branches_are_true_or_a_list_of_ids(api, branched, branches):
    answer = api.post(REDACT, {"branches": branches})
    if branches == ["twig\0"]:
        assert (answer.status_code, answer.data["title"]) == (422, "Unstorable text")
    else:
        assert (answer.status_code, answer.data["field"]) == (422, "branches")
        assert answer.data["detail"] == (
            "must be true, to choose all branches with a copy of the text, "
            "or a list of ids of branches"
        )
    assert texts(branched) == ["my number is A-1182"]


@pytest.mark.parametrize(
    ("body", "left", "reached"),
    [
        ({}, [3], False),
        ({"summaries": []}, [3], False),
        ({"summaries": [3]}, [], True),
        ({"summaries": True}, [], True),
    ],
)
def test_a_redaction_reaches_the_summaries_that_it_names(api, memory_id, body, left, reached):
    add(api, "my number is A-1182", "thanks")
    services.compact(memory_id, "A-1182 is asked for.", keep_last=0)
    answer = api.post(REDACT, body)
    assert (answer.data["copies"], answer.data["summaries"]) == ([], left)
    assert (history.message(memory_id, 3).text == "[redacted #3]") is reached
    assert answer["ETag"] == f'"{conversations.memory(memory_id).version}"'
    assert api.post(REDACT, body).data["summaries"] is None


@pytest.mark.parametrize(
    ("summaries", "told"),
    [
        *((wrong, "must be true") for wrong in (False, "3", [True], ["3"], {}, 3, [3.5])),
        ([2], "message #2 is not a summary that covers message #1"),
        ([10**30], "is not a summary that covers message #1"),
    ],
)
def test_summaries_are_true_or_a_list_of_those_that_stand_for_it(api, branched, summaries, told):
    answer = api.post(REDACT, {"summaries": summaries})
    assert (answer.status_code, told in answer.data["detail"]) == (422, True)
    assert texts(branched) == ["my number is A-1182"]


def texts(*memory_ids: str) -> list[str]:
    return [history.message(memory_id, 1).text for memory_id in memory_ids]
