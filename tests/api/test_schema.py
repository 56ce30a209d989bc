"""The OpenAPI document, as a generator of clients reads it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from chatmemory.api.examples import FILE, recorded
from chatmemory.api.problems import CONTENT_TYPE

from .story import STORY, told


@pytest.fixture
def document(api) -> dict:
    return api.get("/api/v1/schema/?format=json").json()


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


def test_every_operation_has_a_line_of_summary_and_a_description(document):
    for name, operation in operations(document).items():
        assert re.fullmatch(r"[^\n.]{5,60}", operation["summary"]), name
        assert operation["description"], name
    tags = {tag for operation in operations(document).values() for tag in operation["tags"]}
    assert {each["name"] for each in document["tags"]} == tags
    assert document["servers"]


def test_the_examples_are_what_the_api_answers(api):
    """If the API has changed on purpose, run this test with WRITE_EXAMPLES=1 and read the diff."""
    examples = told(api)
    if "WRITE_EXAMPLES" in os.environ:
        text = json.dumps(examples, indent=1, ensure_ascii=False)
        Path(str(FILE)).write_text(f"{text}\n", "utf-8")
    assert examples == json.loads(FILE.read_text("utf-8"))


def test_every_operation_has_examples(document):
    found = operations(document)
    assert found.keys() == {call.operation for call in STORY}
    for name, operation in found.items():
        example = recorded()[name]
        if example["request"] is not None:
            (content,) = operation["requestBody"]["content"].values()
            assert [each["value"] for each in content["examples"].values()] == [example["request"]]
        if example["response"] is not None:
            (status,) = {"200", "201"} & operation["responses"].keys()
            (content,) = operation["responses"][status]["content"].values()
            assert [each["value"] for each in content["examples"].values()] == [example["response"]]


def test_messages_are_components_with_the_names_of_langchain4j(document):
    schemas = document["components"]["schemas"]
    mapping = schemas["ChatMessage"]["discriminator"]["mapping"]
    assert set(mapping) == {"SYSTEM", "USER", "AI", "TOOL_EXECUTION_RESULT", "CUSTOM"}
    for type_, reference in mapping.items():
        component = schemas[reference.rpartition("/")[2]]
        (name,) = component["properties"]["type"].values()
        assert schemas[name.rpartition("/")[2]]["enum"] == [type_]


def test_every_reference_leads_to_a_component(document):
    def references(value):
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            value = list(value.values())
        if isinstance(value, list):
            for each in value:
                yield from references(each)

    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(references(document)) <= known


def rows_of(table: str) -> list[list[str]]:
    """The cells of the rows of a table of docs/api.md, which is known by its first line."""
    text = (Path(__file__).parents[2] / "docs/api.md").read_text("utf-8")
    _, rows = text.partition(f"{table}\n")[2].split("\n\n")[0].split("\n", 1)
    return [[cell.strip() for cell in row.split(" | ")] for row in rows.splitlines()]


def test_the_docs_have_every_operation(document):
    found = {
        (re.sub(r"<(\w+)>", r"{\1}", path.strip("| `")).replace("{id}", "{memory_id}"), method)
        for path, methods, _ in rows_of("| path | methods | |")
        for method in methods.lower().split(", ")
    }
    paths = {path.removeprefix("/api/v1/"): each for path, each in document["paths"].items()}
    assert found == {(path, method) for path, methods in paths.items() for method in methods}


def test_the_docs_have_every_query_parameter(document):
    text = (Path(__file__).parents[2] / "docs/api.md").read_text("utf-8")
    for name, operation in operations(document).items():
        asked = [each for each in operation.get("parameters", ()) if each["in"] == "query"]
        assert all(f"`?{each['name']}=" in text for each in asked), name


def test_the_docs_have_every_problem_with_its_status(document):
    documented = {
        (title, int(status))
        for operation in operations(document).values()
        for status, response in operation["responses"].items()
        for title in re.split(r", (?![^(]*\))", response["description"])
        if not status.startswith("2")
    }
    rows = rows_of("| title | status | |")
    assert {(title.strip("| "), int(status)) for title, status, *_ in rows} == documented


def test_every_parameter_is_explained(document):
    for name, operation in operations(document).items():
        for each in operation.get("parameters", ()):
            assert each.get("description"), (name, each["name"])


def test_every_operation_documents_its_problems(document):
    for name, operation in operations(document).items():
        problems = {
            status: response
            for status, response in operation["responses"].items()
            if not status.startswith("2")
        }
        assert {"401", "403", "404", "429", "500", "503"} <= problems.keys(), name
        for status, response in problems.items():
            assert list(response["content"]) == [CONTENT_TYPE], (name, status)
            assert response["description"], (name, status)


def test_bodies_document_how_many_messages_they_may_hold(document):
    def messages(name: str) -> dict:
        (content,) = operations(document)[name]["requestBody"]["content"].values()
        schema = content["schema"]
        if "$ref" not in schema:
            return schema
        found = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return found["properties"]["messages"] if "properties" in found else found

    assert messages("add_messages")["maxItems"] == 1_000
    for name in ("set_window", "simulate", "update_messages"):
        assert messages(name)["maxItems"] == 10_000, name
    (window,) = operations(document)["get_messages"]["responses"]["200"]["content"].values()
    assert "maxItems" not in window["schema"]


def test_a_simulation_documents_that_it_needs_a_policy(document):
    refused = operations(document)["simulate"]["responses"]["409"]
    assert "Policy required" in refused["description"]


@pytest.mark.parametrize("version", ["%0A", "%00", "%22;%20x"])
def test_a_caller_does_not_write_its_header(api, version):
    response = api.get(f"/api/v1/schema/?version={version}")
    assert response.headers["Content-Disposition"] == 'inline; filename="schema (1).yaml"'
