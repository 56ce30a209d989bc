"""OTLP over HTTP: permissions, accepted bodies, and stored calls."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict

import pytest
from django.test import Client, override_settings
from rest_framework.test import APIClient

from chatmemory import MessageWindow, services
from chatmemory.access.tokens import create_token
from chatmemory.messages.message import text_of
from chatmemory.messages.texts import readable_text
from chatmemory.models import Memory, Message
from chatmemory.reading.history import Part, history
from inspector.conf import inspector_configuration
from inspector.rooms.calls.models import DroppedCalls, ModelCall
from inspector.rooms.otlp import intake
from inspector.rooms.otlp.spans import EVENT
from tests.rooms.calls.exchanges import SEVERAL, exchanges

from .recordings import bodies, names, read, sent

PROTOBUF = "application/x-protobuf"
ONE_IN = 11  # of the runs of real exchanges, where not all are wanted


@pytest.fixture
def app(db) -> APIClient:
    """A client with the token of an app."""
    return client_of("app")


def client_of(name: str, prefix: str = "", role: str = "operator") -> APIClient:
    client = APIClient()
    secret = create_token(name, role=role, prefix=prefix)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


def send(client, name: str, **headers):
    for signal, body in bodies(name):
        answer = client.post(f"/otlp/v1/{signal}", body, content_type=PROTOBUF, headers=headers)
        assert answer.status_code == 200
        assert answer.content == b""


def calls_of(client, memory_id: str) -> list[dict]:
    page = client.get(f"/api/v1/memories/{memory_id}/calls/").json()
    return [
        client.get(f"/api/v1/memories/{memory_id}/calls/{each['n']}/").json()
        for each in page["results"]
    ]


@pytest.mark.parametrize("name", names())
def test_a_run_is_one_conversation_and_its_requests_are_rebuilt(app, name):
    send(app, name)
    send(app, name)  # an exporter may send a batch again
    given, _ = read(name)
    ids = set(ModelCall.objects.values_list("memory_id", flat=True))
    assert len(ids) == (1 if given else 0)
    for id in ids:
        stored = calls_of(app, id)
        assert [each["request"] for each in stored] == [dict(each.sent.request) for each in given]
        assert [each["response"] for each in stored] == [each.received.response for each in given]
        assert [each["is_exact"] for each in stored] == [each.sent.is_exact for each in given]
        assert id == given[0].session or not given[0].session


@pytest.mark.parametrize("part", [ONE_IN, pytest.param(1, marks=pytest.mark.long)])
def test_requests_of_providers_are_rebuilt_equal(app, data_file, part):
    """As OpenInference's input.value: each run is one conversation."""
    ids, wanted = defaultdict(set), {}
    rows = list(exchanges(data_file("provider_exchanges.json")))
    runs = {*[*dict.fromkeys(row["cassette"] for row in rows)][::part]}
    chosen = [row for row in rows if row["cassette"] in runs]
    for number, row in enumerate(chosen):
        system = "anthropic" if row["path"].endswith("messages") else "openai"
        body = span_of(number, row["request"], row["answer"], **{"llm.system": system})
        app.credentials(HTTP_AUTHORIZATION=f"Bearer {token_of(row['cassette'])}")
        answer = app.post("/otlp/v1/traces", body, format="json")
        assert answer.content == b"{}"
        newest = ModelCall.objects.order_by("-at").first()
        ids[row["cassette"]].add(newest.memory_id)
        wanted[newest.memory_id, newest.n] = row
    app.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token('all')}")
    for (id, n), row in wanted.items():
        stored = app.get(f"/api/v1/memories/{id.replace('/', '~2F')}/calls/{n}/").json()
        assert stored["request"] == row["request"]
        assert stored["response"] == row["answer"]
    several = {name for name, found in ids.items() if len(found) > 1}
    assert len(wanted) == len(chosen)
    assert several == {name for name in ids if SEVERAL in name and len(ids[name]) > 1}


TOKENS: dict[str, str] = {}


def token_of(cassette: str) -> str:
    """The secret of a token of its own for each run of the program that recorded it."""
    if cassette not in TOKENS:
        TOKENS[cassette] = create_token(f"run {len(TOKENS)}", prefix=f"{len(TOKENS)}/")
    return TOKENS[cassette]


@pytest.fixture(autouse=True)
def _no_tokens():
    TOKENS.clear()


def span_of(number: int, request: dict, response: dict | None = None, **given: str) -> dict:
    """A body of OTLP in JSON with a span of OpenInference, of which one begins each second."""
    values = {"openinference.span.kind": "LLM", "input.value": json.dumps(request), **given}
    values |= {"output.value": json.dumps(response)} if response else {}
    attributes = [{"key": key, "value": {"stringValue": each}} for key, each in values.items()]
    start = 1_795_696_526_000_000_000 + number * 10**9
    span = {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 10**8),
        "attributes": attributes,
    }
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "a"}, "spans": [span]}]}]}


def test_who_has_no_token_is_refused(db):
    answer = Client().post("/otlp/v1/traces", b"", content_type=PROTOBUF)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"
    viewer = client_of("viewer", role="viewer")
    assert viewer.post("/otlp/v1/traces", b"", content_type=PROTOBUF).status_code == 403


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", PROTOBUF, 200),
        (b"no protobuf", PROTOBUF, 400),
        (b'{"resourceSpans": []}', "application/json", 200),
        (b'{"resourceSpans": [{"scopeSpans": [{}]}, {}]}', "application/json", 200),
        (b'{"resourceSpans": {}}', "application/json", 400),
        (b'{"spans": []}', "application/json", 400),
        (b"[1]", "application/json", 400),
        (b"{", "application/json", 400),
        (b"", "text/plain", 415),
    ],
)
def test_a_body_that_is_not_otlp_is_refused(app, body, kind, status):
    assert app.post("/otlp/v1/traces", body, content_type=kind).status_code == status


def test_metrics_are_accepted_and_dropped(app):
    answer = app.post("/otlp/v1/metrics", b"", content_type=PROTOBUF)
    assert (answer.status_code, answer.content) == (200, b"")
    assert app.post("/otlp/v1/metrics", b"\xff", content_type=PROTOBUF).status_code == 400


def test_a_body_may_be_packed_and_is_bounded_unpacked(app):
    ((_, body),) = bodies("genai-openai-chat")
    packed = {"content_type": PROTOBUF, "headers": {"Content-Encoding": "gzip"}}
    assert app.post("/otlp/v1/traces", gzip.compress(body), **packed).status_code == 200
    assert ModelCall.objects.count() == 3
    assert app.post("/otlp/v1/traces", b"no gzip", **packed).status_code == 400
    with override_settings(INSPECTOR={"OTLP_BYTES": 10_000}):
        bomb = gzip.compress(bytes(10**6))
        assert app.post("/otlp/v1/traces", bomb, **packed).status_code == 413
        large = {"content_type": PROTOBUF}
        assert app.post("/otlp/v1/traces", bytes(10**5), **large).status_code == 413


def dropped() -> set[tuple[str, str, str, int]]:
    return {*DroppedCalls.objects.values_list("prefix", "why", "sender", "count")}


def test_a_body_that_is_refused_by_its_length_is_counted_for_its_token(db, operator_client):
    large = {"data": bytes(10**5), "content_type": PROTOBUF}
    with override_settings(INSPECTOR={"OTLP_BYTES": 10_000}):
        for client in (client_of("shop", "shop/"), client_of("viewer", role="viewer"), Client()):
            assert client.post("/otlp/v1/logs", **large).status_code == 413
    assert dropped() == {("shop/", "too_large", "logs", 1)}
    assert "in bodies larger than the limit" in operator_client.get("/calls/").text


def test_a_server_counts_what_it_refuses_before_django(served):
    size = inspector_configuration().OTLP_BYTES + 1
    for body in (bytes(size), iter([bytes(size)])):  # with a length, and in chunks
        headers = {"Content-Type": PROTOBUF}
        answer = served.api.post(f"{served.url}/otlp/v1/traces", data=body, headers=headers)
        assert answer.status_code == 413
    listed = served.api.get(f"{served.url}/api/v1/calls/dropped/").json()["results"]
    assert [(each["why"], each["sender"], each["count"]) for each in listed] == [
        ("too_large", "traces", 2)
    ]


@pytest.mark.parametrize(
    ("kind", "encoding", "status", "sender"),
    [
        ("text/plain", "", 415, "text/plain"),
        (PROTOBUF, "br", 415, "br"),
        (PROTOBUF, "gzip", 400, "gzip"),
    ],
)
def test_a_body_that_cannot_be_decoded_is_counted(app, kind, encoding, status, sender):
    headers = {"Content-Encoding": encoding} if encoding else {}
    answer = app.post("/otlp/v1/traces", b"bytes", content_type=kind, headers=headers)
    assert answer.status_code == status
    assert dropped() == {("", "encoding", sender, 1)}


def test_parts_that_are_no_spans_are_rejected_and_counted(app):
    body = span_of(1, sent("openinference-openai-chat")[0])
    (scope,) = body["resourceSpans"][0]["scopeSpans"]
    scope["spans"].append({"traceId": "no hex"})
    scope["spans"].append({**scope["spans"][0], "spanId": "02", "attributes": [{"key": -1}]})
    answer = app.post("/otlp/v1/traces", body, format="json").json()
    assert answer["partialSuccess"]["rejectedSpans"] == "2"
    assert ModelCall.objects.count() == 1
    event = {"logRecords": [{"eventName": {}, "attributes": []}]}
    logs = {"resourceLogs": [{"scopeLogs": [event]}]}
    assert app.post("/otlp/v1/logs", logs, format="json").status_code == 200


def test_a_body_may_be_larger_than_those_of_the_api_and_has_a_bound_of_calls(app, monkeypatch):
    messages = [{"role": "user", "content": "x"}]
    request = {"model": "m", "messages": messages, "user": "x" * 5 * 2**20}
    body = span_of(1, request, **{"session.id": "desk"})
    (scope,) = body["resourceSpans"][0]["scopeSpans"]
    assert app.post("/otlp/v1/traces", body, format="json").status_code == 200
    assert ModelCall.objects.count() == 1
    small = span_of(1, {**request, "user": ""})
    (scope,) = small["resourceSpans"][0]["scopeSpans"]
    monkeypatch.setattr(intake, "AT_ONCE", 5)
    scope["spans"] *= 7  # of one call, which is known
    answer = app.post("/otlp/v1/traces", small, format="json").json()
    assert answer["partialSuccess"]["rejectedSpans"] == "2"


def test_hostile_texts_and_numbers_are_stored_or_refused(app, operator_client):
    """NUL characters and lone surrogates, which no database holds, numbers without an end."""
    bad = "\x00\ud83d"
    tool = {"name": bad, "input_schema": {"x": bad}}
    messages = [{"role": "user", "content": bad}]
    request = {"model": bad, "messages": messages, "tools": [tool], "metadata": {bad: bad}}
    values = {"llm.system": bad, "session.id": bad, "llm.finish_reason": bad}
    body = span_of(1, request, {"error": bad}, **values)
    span = body["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span["endTimeUnixNano"] = "9" * 400
    counts = {"key": "llm.token_count.prompt", "value": {"intValue": "9" * 40}}
    span["attributes"].append(counts)
    span["status"] = {"code": 2, "message": bad}
    kind = {"content_type": "application/json"}
    assert app.post("/otlp/v1/traces", json.dumps(body), **kind).status_code == 200
    call = ModelCall.objects.get()
    (stored,) = calls_of(app, call.memory_id)
    assert stored["request"] == request
    assert stored["usage"]["input"] is None
    page = f"/c/{call.memory_id}/calls/1/"
    assert all(operator_client.get(f"{page}{how}").status_code == 200 for how in ("", "?as=json"))
    deep = f'{{"resourceSpans": {"[" * 10_000}{"]" * 10_000}}}'
    assert app.post("/otlp/v1/traces", deep, **kind).status_code == 400


def test_dropped_calls_are_counted_by_reason(app):
    for name in ("openai-v2-true", "genai-openai-none", "openinference-openai-long"):
        send(app, name)
    counts = {(each.why, each.count) for each in DroppedCalls.objects.all()}
    assert counts == {("no_messages", 3), ("per_message_events", 3), ("dropped_attributes", 1)}
    send(app, "openai-v2-true")
    assert DroppedCalls.objects.get(why="per_message_events").count == 6


def genai(number: int, **more: object) -> dict:
    """The members that a span and its event have in common, in OpenTelemetry's own conventions."""
    values = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", **more}
    return {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "attributes": [
            {"key": key, "value": {"stringValue": each}} for key, each in values.items()
        ],
    }


def test_an_unreadable_definition_of_a_tool_drops_its_call_and_no_other(app):
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]}])
    given = {"gen_ai.input.messages": said}
    bad = genai(1, **given, **{"gen_ai.tool.definitions": '[{"type": "function", "name": 5}]'})
    scopes = [{"scope": {"name": "genai"}, "spans": [bad, genai(2, **given)]}]
    answer = app.post("/otlp/v1/traces", {"resourceSpans": [{"scopeSpans": scopes}]}, format="json")
    assert answer.status_code == 200
    assert ModelCall.objects.count() == 1
    assert DroppedCalls.objects.get().why == "unreadable"


def send_span(app, *numbers: int, sender: str = "genai") -> None:
    spans = [genai(n) | {"startTimeUnixNano": "1795696526000000000"} for n in numbers]
    scopes = [{"scope": {"name": sender}, "spans": spans}]
    answer = app.post("/otlp/v1/traces", {"resourceSpans": [{"scopeSpans": scopes}]}, format="json")
    assert answer.status_code == 200


def send_event(app, number: int) -> None:
    said = [{"role": "user", "parts": [{"type": "text", "content": f"Question {number}"}]}]
    event = genai(number, **{"gen_ai.input.messages": json.dumps(said)})
    event |= {"timeUnixNano": "1795696526100000000", "eventName": EVENT}
    scopes = [{"scope": {"name": "genai"}, "logRecords": [event]}]
    answer = app.post("/otlp/v1/logs", {"resourceLogs": [{"scopeLogs": scopes}]}, format="json")
    assert answer.status_code == 200


def dropped_calls() -> list[tuple[str, int]]:
    return sorted(DroppedCalls.objects.values_list("sender", "count"))


def test_a_span_whose_event_has_the_messages_is_not_counted(app):
    """In either order: an app sends spans and events in requests of their own."""
    send_event(app, 1)
    send_span(app, 1, 2, 3)
    assert dropped_calls() == [("genai", 2)]
    send_span(app, 2, 3)  # an exporter may send a batch again
    assert dropped_calls() == [("genai", 2)]
    send_event(app, 2)
    assert dropped_calls() == [("genai", 1)]
    send_event(app, 2)
    assert dropped_calls() == [("genai", 1)]
    send_span(app, 4, sender="other")
    send_event(app, 3)
    assert dropped_calls() == [("other", 1)]
    assert ModelCall.objects.count() == 3


def test_a_prefix_holds(db):
    """A token stores and finds calls below its prefix only, also for equal runs and names."""
    ours, theirs = client_of("ours", "a/"), client_of("theirs", "b/")
    for client in (ours, theirs):
        send(client, "genai-openai-chat")
        send(client, "openinference-openai-session")
    ids = set(ModelCall.objects.values_list("memory_id", flat=True))
    assert {id[:2] for id in ids} == {"a/", "b/"}
    assert {"a/desk-3", "b/desk-3"} < ids
    assert len(ids) == 4
    assert ours.get("/api/v1/memories/b~2Fdesk-3/calls/").status_code == 404
    assert len(ours.get("/api/v1/memories/a~2Fdesk-3/calls/").json()["results"]) == 3


def test_the_history_has_what_was_said_once(app):
    send(app, "genai-openai-chat")
    (id,) = set(ModelCall.objects.values_list("memory_id", flat=True))
    said = [(each.type, each.message) for each in history(id, Part()).rows]
    assert [str(kind) for kind, _ in said] == [
        *("SYSTEM", "USER", "AI", "TOOL_EXECUTION_RESULT", "TOOL_EXECUTION_RESULT"),
        *("AI", "USER", "AI"),
    ]
    assert said[-1][1].text == "Tomorrow from ten o'clock."


def test_context_that_was_put_in_is_in_the_list_of_its_call_and_in_no_memory(app):
    """An app keeps its memory here, puts a document into each request, and its calls are traced."""
    services.create("desk", MessageWindow(20))
    given = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "When?"}]
    app.post("/api/v1/memories/desk/messages/", {"messages": given, "format": "openai_chat"})
    document = {"role": "user", "content": "Opening hours: nine to five."}
    request = {"model": "gpt-4o", "messages": [given[0], document, given[1]]}
    app.post("/otlp/v1/traces", span_of(1, request, **{"session.id": "desk"}), format="json")
    (stored,) = calls_of(app, "desk")
    assert stored["request"] == request
    assert app.get("/api/v1/memories/desk/calls/1/").json()["messages"] == [1, None, 2]
    assert Message.objects.filter(memory_id="desk").count() == 2
    window = app.get("/api/v1/memories/desk/messages/?as=openai_chat").json()["messages"]
    assert window == given


def test_a_changed_system_message_and_a_compaction_split_no_run(app):
    turns = [{"role": "user", "content": f"question {n}"} for n in range(4)]
    answers = [{"role": "assistant", "content": f"answer {n}"} for n in range(4)]
    summary = {"role": "user", "content": "Summary: two questions were answered."}
    lists = [
        [{"role": "system", "content": "It is 11:00."}, turns[0]],
        [{"role": "system", "content": "It is 11:01."}, turns[0], answers[0], turns[1]],
        [summary, turns[1], answers[1], turns[2]],
    ]
    for n, messages in enumerate(lists):
        request = {"model": "gpt-4o", "messages": messages}
        answer = {"choices": [{"index": 0, "message": answers[n], "finish_reason": "stop"}]}
        app.post("/otlp/v1/traces", span_of(n, request, answer), format="json")
    (id,) = set(ModelCall.objects.values_list("memory_id", flat=True))
    assert [each["request"]["messages"] for each in calls_of(app, id)] == lists


def test_a_retry_is_a_call_of_the_same_conversation(app):
    request = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}}]}
    app.post("/otlp/v1/traces", span_of(1, request), format="json")
    app.post("/otlp/v1/traces", span_of(2, request, answer), format="json")
    (id,) = set(ModelCall.objects.values_list("memory_id", flat=True))
    assert [each["n"] for each in calls_of(app, id)] == [1, 2]
    # Another conversation that begins alike
    other = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi there"}}]}
    app.post("/otlp/v1/traces", span_of(3, request, other), format="json")
    assert ModelCall.objects.values("memory_id").distinct().count() == 2


def test_calls_are_listed_by_their_start_in_pages(app):
    request = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}
    for number in (3, 1, 2):
        body = span_of(number, request, **{"session.id": "desk"})
        app.post("/otlp/v1/traces", body, format="json")
    first = app.get("/api/v1/memories/desk/calls/?size=2").json()
    second = app.get(first["next"]).json()
    assert [each["n"] for each in first["results"] + second["results"]] == [2, 3, 1]
    assert second["next"] is None
    assert app.get("/api/v1/memories/desk/calls/?cursor=9").status_code == 422
    assert app.get("/api/v1/memories/desk/calls/9/").status_code == 404
    assert app.get("/api/v1/memories/none/calls/").status_code == 404
    (row,) = [each for each in first["results"] if each["n"] == 2]
    assert row["at"].startswith("2026-11-26T")
    assert row["usage"] == dict.fromkeys(("input", "cached", "written", "output", "reasoning"))


def test_what_is_rejected_is_counted_by_its_reason(app, monkeypatch, operator_client):
    monkeypatch.setattr(intake, "AT_ONCE", 1)
    body = span_of(1, {"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
    spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans += [{**spans[0], "spanId": f"{2:016x}"}, {"traceId": "no hexadecimal"}]
    answer = app.post("/otlp/v1/traces", body, format="json").json()
    assert answer["partialSuccess"]["rejectedSpans"] == "2"
    listed = app.get("/api/v1/calls/dropped/").json()["results"]
    assert {(each["why"], each["sender"], each["count"]) for each in listed} == {
        ("too_many", "a", 1),
        ("invalid", "traces", 1),
    }
    assert all(each["what"] and each["remedy"] for each in listed)
    page = operator_client.get("/calls/").text
    assert "beyond the first 1,000 of one request" in page
    assert "in records that OpenTelemetry’s protocol does not allow" in page


def test_a_call_that_cannot_be_stored_is_counted(app):
    services.set_default_policy("wrong/", MessageWindow(3), actor="operator")
    request = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    Memory.objects.filter(pk=services.create("held", None).pk).update(imported=3)
    app.post("/otlp/v1/traces", span_of(1, request, **{"session.id": "held"}), format="json")
    stored = ModelCall.objects.count()
    counted = DroppedCalls.objects.count()
    assert stored + counted == 1


def test_a_token_sees_only_what_was_dropped_below_its_prefix(app):
    shop = client_of("shop", prefix="shop/")
    empty = span_of(1, {"model": "m"})
    for client in (app, shop, client_of("other", prefix="other/")):
        client.post("/otlp/v1/traces", empty, format="json")
    assert len(app.get("/api/v1/calls/dropped/").json()["results"]) == 3
    assert len(shop.get("/api/v1/calls/dropped/").json()["results"]) == 1


def test_the_turns_of_gemini_enter_history(app):
    """As openinference-instrumentation-google-genai sends them: the role of an answer is `model`,
    calls have no ids, and thoughts are contents of the type `reasoning`."""
    said = {
        "0.message.role": "system", "0.message.content": "Be brief.",
        "1.message.role": "user", "1.message.content": "A flight?",
        "2.message.role": "model",
        "2.message.tool_calls.0.tool_call.function.name": "find",
        "2.message.tool_calls.0.tool_call.function.arguments": '{"to": "Denver"}',
        "3.message.role": "tool", "3.message.name": "find", "3.message.content": '{"a": 1}',
    }  # fmt: skip
    answer = {
        "0.message.role": "model",
        "0.message.contents.0.message_content.type": "reasoning",
        "0.message.contents.0.message_content.text": "They want one.",
        "0.message.contents.1.message_content.type": "text",
        "0.message.contents.1.message_content.text": "NK204.",
    }
    asked = {"model": "gemini-2.5-flash", "contents": "A flight?", "config": None}
    given = {f"llm.input_messages.{name}": each for name, each in said.items()}
    given |= {f"llm.output_messages.{name}": each for name, each in answer.items()}
    given |= {"llm.model_name": "gemini-2.5-flash", "llm.provider": "google", "session.id": "g"}
    body = span_of(1, asked, **given)
    app.post("/otlp/v1/traces", body, format="json")
    assert [readable_text(each.message) for each in history("g", Part(size=10)).rows] == [
        "Be brief.", "A flight?", 'find(to: "Denver")', 'find {"a": 1}', "NK204.",
    ]  # fmt: skip
    stored = ModelCall.objects.get()
    assert (stored.is_exact, stored.answer_step is not None) == (False, True)
    # The next call goes on with this answer
    more = {
        "4.message.role": "model", "4.message.content": "NK204.",
        "5.message.role": "user", "5.message.content": "Book it.",
    }  # fmt: skip
    del given["session.id"]
    given = {name: each for name, each in given.items() if "output" not in name}
    given |= {f"llm.input_messages.{name}": each for name, each in more.items()}
    app.post("/otlp/v1/traces", span_of(2, asked, **given), format="json")
    assert {each.memory_id for each in ModelCall.objects.all()} == {"g"}
    assert text_of(history("g", Part(size=10)).rows[-1].message) == "Book it."
