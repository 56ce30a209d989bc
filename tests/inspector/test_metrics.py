"""The metrics page and its permissions."""

from __future__ import annotations

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from chatmemory import SystemMessage, UserMessage, VersionConflict, services
from chatmemory.core.policies import MessageWindow

pytestmark = pytest.mark.django_db(transaction=True)


def read(**headers: str) -> dict[tuple[str, ...], float]:
    """The samples by name and label values."""
    text = Client().get("/metrics", headers=headers).content.decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def grown(before: dict, after: dict, *key: str) -> float:
    return after.get(key, 0) - before.get(key, 0)


def test_changes_are_counted_after_the_commit():
    before = read()
    services.create("m", MessageWindow(2))
    services.add("m", [SystemMessage("a"), UserMessage("b"), UserMessage("c"), SystemMessage("d")])
    services.clear_messages("m")
    with pytest.raises(VersionConflict):
        services.add("m", [UserMessage("never")], expected_version=0)
    after = read()
    assert grown(before, after, "chatmemory_messages_added_total") == 4
    assert grown(before, after, "chatmemory_messages_left_total", "CAPACITY") == 1
    assert grown(before, after, "chatmemory_messages_left_total", "REPLACED") == 1
    assert grown(before, after, "chatmemory_messages_left_total", "CLEARED") == 2
    assert grown(before, after, "chatmemory_steps_total", "add") == 4
    assert grown(before, after, "chatmemory_steps_total", "clear") == 1
    assert grown(before, after, "chatmemory_window_fill_count") == 2
    assert grown(before, after, "chatmemory_window_fill_sum") == pytest.approx(1.0)


def test_requests_are_timed_by_route_and_never_by_id(operator_client):
    services.create("some-id", MessageWindow(2))
    key = ("chatmemory_request_seconds_count", "GET", "inspector:conversation", "2xx")
    before = read()
    operator_client.get("/c/some-id/")
    operator_client.get("/c/nobody/")
    operator_client.generic("BREW", "/c/some-id/")
    after = read()
    assert grown(before, after, *key) == 1
    assert grown(before, after, *key[:3], "4xx") == 1
    assert grown(before, after, key[0], "other", "inspector:conversation", "4xx") == 1
    assert not any("some-id" in name for name in map(str, after))


def test_without_a_token_only_local_requests_are_allowed():
    assert Client().get("/metrics").status_code == 200
    assert Client(REMOTE_ADDR="192.0.2.7").get("/metrics").status_code == 401
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):  # a local proxy
        assert Client().get("/metrics", headers={name: "127.0.0.1"}).status_code == 401


def test_a_configured_token_is_required_of_every_request(settings):
    settings.INSPECTOR = {"METRICS_TOKEN": "hunter2", "WHOLE_SITE": True}
    assert Client().get("/metrics").status_code == 401
    wrong = {"Authorization": "Bearer hunter3"}
    assert Client().get("/metrics", headers=wrong).status_code == 401
    right = {"Authorization": "Bearer hunter2"}
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    assert elsewhere.get("/metrics", headers=right).status_code == 200


@pytest.mark.own_server
def test_open_streams_are_counted(served):
    def streams() -> list[str]:
        text = served.api.get(f"{served.url}/metrics", headers={"Authorization": ""}).text
        return [line for line in text.splitlines() if line.startswith("chatmemory_live_streams")]

    served.create("watched")
    url = f"{served.url}/c/watched/live/"
    assert streams() == ["chatmemory_live_streams 0.0", "chatmemory_live_streams_waiting 0.0"]
    with served.api.get(url, stream=True, timeout=10) as stream:
        lines = stream.iter_lines(chunk_size=1)
        assert next(lines) == b"retry: 1000"
        assert "chatmemory_live_streams 1.0" in streams()
