"""The OpenAPI document, as a generator of clients reads it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from rest_framework.test import APIClient

from chatmemory import (
    AiMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.access.tokens import create_token
from chatmemory.api.errors import CONTENT_TYPE, KINDS
from chatmemory.api.operations import EXAMPLES, recorded_examples

from ..conversations import keep

DOCS = (Path(__file__).parents[2] / "docs/api.md").read_text("utf-8")


ONE, STORE = "memories/order-7741/", "store/from-java/"
RECALL = "recall/?prefix=order-&policies=message_window:2,everything"
# A story that calls each operation once, in an order that makes sense, with its body in the example
STORY = {
    "create_memory": ("post", "memories/"),
    "list_memories": ("get", "memories/"),
    "add_messages": ("post", f"{ONE}messages/"),
    "get_window": ("get", f"{ONE}messages/?as=openai_chat&repair=openai"),
    "get_message": ("get", f"{ONE}messages/2/"),
    "get_history": ("get", f"{ONE}history/"),
    "search_history": ("get", f"{ONE}search_history/?query=A-1182"),
    "search_own_history": ("get", "search_history/?query=A-1182"),
    "list_steps": ("get", f"{ONE}steps/"),
    "get_step": ("get", "memories/agent/steps/6/"),
    "list_incidents": ("get", f"{ONE}incidents/"),
    "get_remembered": ("get", f"{ONE}remembers/?phrase=A-1182"),
    "list_dropped_calls": ("get", "calls/dropped/"),
    "list_calls": ("get", "memories/traced/calls/"),
    "get_call": ("get", "memories/traced/calls/1/"),
    "simulate": ("post", f"{ONE}simulate/"),
    "list_ill_memories": ("get", "doctor/"),
    "get_recall": ("get", RECALL),
    "recall": ("post", "recall/"),
    "pin_message": ("post", f"{ONE}messages/3/pin/"),
    "unpin_message": ("delete", f"{ONE}messages/3/pin/"),
    "change_memory": ("patch", ONE),
    "get_memory": ("get", ONE),
    "compact_memory": ("post", f"{ONE}compact/"),
    "set_window": ("put", f"{ONE}messages/"),
    "clear_window": ("delete", f"{ONE}messages/"),
    "redact_message": ("post", f"{ONE}messages/2/redact/"),
    "redact_sent_message": ("post", f"{ONE}calls/1/messages/0/redact/"),
    "update_messages": ("put", STORE),
    "get_messages": ("get", STORE),
    "delete_messages": ("delete", STORE),
    "delete_memory": ("delete", ONE),
}

# A span of OpenInference
_REQUEST = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Where is A-1182?"}]}


def call_in(memory_id: str, span: str) -> dict:
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.system": "openai",
        "session.id": memory_id,
        "input.value": json.dumps(_REQUEST),
    }
    found = {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": span,
        "startTimeUnixNano": "1795696526112722579",
        "endTimeUnixNano": "1795696527112722579",
        "attributes": [
            {"key": key, "value": {"stringValue": value}} for key, value in attributes.items()
        ],
    }
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "app"}, "spans": [found]}]}]}


# What is sent before an operation: a call that begins a conversation, and one beside another
CALLS = {
    "list_calls": call_in("traced", "eee19b7ec3c1b174"),
    "redact_sent_message": call_in("order-7741", "eee19b7ec3c1b175"),
}


def operations(document) -> dict[str, dict]:
    """The operations of conversations by id."""
    return {
        operation["operationId"]: operation
        for path, methods in document["paths"].items()
        if path != "/api/v1/schema/"
        for operation in methods.values()
    }


def test_the_document_is_valid(document):
    assert document["openapi"].startswith("3.1.")
    assert [str(each) for each in OpenAPIV31SpecValidator(document).iter_errors()] == []


def test_what_may_be_null_has_null_among_its_types(document):
    assert '"nullable"' not in json.dumps(document)
    row = document["components"]["schemas"]["Stay"]["properties"]
    assert row["left_step"]["type"] == ["integer", "null"]


def test_every_operation_is_described(document):
    for name, operation in operations(document).items():
        assert re.fullmatch(r"[^\n.]{5,60}", operation["summary"]), name
        assert operation["description"].rstrip().endswith("."), name
        for each in operation.get("parameters", ()):
            assert each.get("description"), (name, each["name"])
    tags = {tag for operation in operations(document).values() for tag in operation["tags"]}
    assert {each["name"] for each in document["tags"]} == tags
    assert document["servers"]


def test_the_examples_are_what_the_api_answers(api):
    """If the API has changed on purpose, run this test with WRITE_EXAMPLES=1 and read the diff."""
    told = call_each_operation(api)
    if "WRITE_EXAMPLES" in os.environ:
        text = json.dumps(told, indent=1, ensure_ascii=False)
        Path(str(EXAMPLES)).write_text(f"{text}\n", "utf-8")
    assert told == json.loads(EXAMPLES.read_text("utf-8"))


def call_each_operation(api) -> dict[str, dict]:
    """Call all operations in turn, and return requests and responses by operation id."""
    told = {}
    for name, (method, path) in STORY.items():
        if name == "get_step":
            clear_a_result("agent")
        if name == "list_ill_memories":
            services.delete("agent")
            keep()
        if name in CALLS:
            assert api.post("/otlp/v1/traces", CALLS[name], format="json").content == b"{}"
        body = recorded_examples()[name]["request"]
        client = of_one_conversation() if name == "search_own_history" else api
        answer = getattr(client, method)(f"/api/v1/{path}", body)
        assert answer.status_code < 300, (name, answer.content)
        shown = steady(answer.json()) if answer.content else None
        told[name] = {"request": body, "response": shown}
    return told


def of_one_conversation() -> APIClient:
    """A client whose token is for one conversation."""
    client, token = APIClient(), create_token("of a model", prefix="order-7741")
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return client


def clear_a_result(name: str) -> None:
    """Store a conversation whose step 6 clears an old tool result."""
    services.create(name, policy=TokenWindow(90, clear_tool_results=1))
    for n, found in enumerate(
        (
            "In Porto, at the depot of the carrier, since Monday. It is kept there until Friday.",
            "No.",
        )
    ):
        call = ToolExecutionRequest(str(n), "find", '{"parcel": "A-1182"}')
        asked = UserMessage("Is it here?" if n else "Where is A-1182?")
        answer = ToolExecutionResultMessage(str(n), "find", found)
        services.add(name, [asked, AiMessage(None, (call,)), answer])


def steady(value):
    """Replace times and digests, which differ each time."""
    text = json.dumps(value, ensure_ascii=False)
    text = re.sub(r'"\d{4}-\d\d-\d\dT[\d:.]+Z"', '"2026-01-31T09:30:00Z"', text)
    return json.loads(re.sub(r'"[0-9a-f]{64}"', f'"{"5f" * 32}"', text))


def test_every_operation_has_its_example(document):
    found = operations(document)
    assert found.keys() == STORY.keys()
    for name, operation in found.items():
        places = {"request": operation.get("requestBody"), "response": None}
        for status in {"200", "201"} & operation["responses"].keys():
            places["response"] = operation["responses"][status]
        for part, place in places.items():
            if (example := recorded_examples()[name][part]) is not None:
                (content,) = place["content"].values()
                assert [each["value"] for each in content["examples"].values()] == [example]


def test_messages_are_components_with_the_names_of_langchain4j(document):
    schemas = document["components"]["schemas"]
    mapping = schemas["ChatMessage"]["discriminator"]["mapping"]
    assert set(mapping) == {"SYSTEM", "USER", "AI", "TOOL_EXECUTION_RESULT", "CUSTOM"}
    for type_, reference in mapping.items():
        component = schemas[reference.rpartition("/")[2]]
        (name,) = component["properties"]["type"].values()
        assert schemas[name.rpartition("/")[2]]["enum"] == [type_]


def rows_of(table: str) -> list[list[str]]:
    """The cells of the rows of a table of docs/api.md, which is known by its first line."""
    _, rows = DOCS.partition(f"{table}\n")[2].split("\n\n")[0].split("\n", 1)
    return [[cell.strip() for cell in row.split(" | ")] for row in rows.splitlines()]


def test_the_docs_have_every_operation_and_query_parameter(document):
    found = {
        (re.sub(r"<(\w+)>", r"{\1}", path.strip("| `")).replace("{id}", "{memory_id}"), method)
        for path, methods, _ in rows_of("| path | methods | |")
        for method in methods.lower().split(", ")
    }
    paths = {path.removeprefix("/api/v1/"): each for path, each in document["paths"].items()}
    assert found == {(path, method) for path, methods in paths.items() for method in methods}
    for name, operation in operations(document).items():
        asked = [each for each in operation.get("parameters", ()) if each["in"] == "query"]
        assert all(f"`?{each['name']}=" in DOCS for each in asked), name


def test_the_docs_have_every_problem_with_its_status(document):
    documented = {
        (title, int(status))
        for operation in operations(document).values()
        for status, response in operation["responses"].items()
        for title in re.split(r", (?![^(]*\))", response["description"])
        if status[0] in "45"
    }
    rows = rows_of("| title | status | |")
    assert {(title.strip("| "), int(status)) for title, status, *_ in rows} == documented
    assert {(title, status) for _, status, title in KINDS} <= documented


def test_every_operation_documents_its_problems_and_headers(document):
    for name, operation in operations(document).items():
        problems = {
            status: response
            for status, response in operation["responses"].items()
            if status[0] in "45"
        }
        assert {"400", "401", "403", "404", "429", "500", "503"} <= problems.keys(), name
        for status, response in problems.items():
            assert list(response["content"]) == [CONTENT_TYPE], (name, status)
        headers = {each["name"] for each in operation.get("parameters", ())}
        expected = {"If-Match", "Idempotency-Key"} if "409" in problems else set()
        if name == "create_memory":
            expected = {"Idempotency-Key"}
        if name == "simulate":
            assert "Policy required" in problems["409"]["description"]
            expected = set()
        assert expected == headers & {"If-Match", "Idempotency-Key"}, name


def test_requests_leave_out_what_has_a_default_and_name_nothing_else(document):
    schemas = document["components"]["schemas"]
    bodies = [name for name in schemas if name.endswith("Request")]
    assert {"CreateMemoryRequest", "CompactRequest", "AddRequest"} <= {*bodies}
    for name in (*bodies, "MessageWindowPolicy"):
        if name == "ToolExecutionRequest":  # a member of messages
            continue
        assert schemas[name]["additionalProperties"] is False, name
        defaults = [
            one for one, schema in schemas[name]["properties"].items() if "default" in schema
        ]
        assert defaults == [], name
    assert "append_terms" not in schemas["CompactRequest"]["required"]
    stored = schemas["StoredMessageWindowPolicy"]
    assert {*stored["required"]} == {*stored["properties"]}


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("If-Match", ['"12"', 'W/"12"', "12", "*"], ["three", '"12', "W/12", '""']),
        ("If-None-Match", ['"12"', 'W/"12", "3"', "*"], ["12"]),
        ("Idempotency-Key", ["a", '"a b"', "a b", "k" * 255], ["", " a", '"a', "é", "k" * 256]),
    ],
)
def test_headers_have_patterns(api, document, name, good, bad):
    parameters = [
        each
        for operation in operations(document).values()
        for each in operation.get("parameters", ())
        if each["name"] == name
    ]
    (pattern,) = {each["schema"]["pattern"] for each in parameters}
    for header in good:
        assert re.search(pattern, header), header
    for header in bad:
        assert not re.search(pattern, header), header


def test_bodies_document_how_many_messages_they_may_hold(document):
    def messages(name: str) -> dict:
        (content,) = operations(document)[name]["requestBody"]["content"].values()
        found = document["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
        return found["properties"]["messages"] if "properties" in found else found

    assert messages("add_messages")["maxItems"] == 1_000
    for name in ("set_window", "simulate", "update_messages"):
        assert messages(name)["maxItems"] == 10_000, name
    (window,) = operations(document)["get_messages"]["responses"]["200"]["content"].values()
    assert "maxItems" not in window["schema"]


@pytest.mark.parametrize("version", ["%0A", "%00", "%22;%20x"])
def test_a_caller_does_not_write_its_header(api, version):
    response = api.get(f"/api/v1/schema/?version={version}")
    assert response.headers["Content-Disposition"] == 'inline; filename="schema (1).yaml"'


def test_swagger_needs_no_other_host(operator_client):
    page = operator_client.get("/api/docs/").content.decode()
    assert "http://" not in page
    assert "https://" not in page
