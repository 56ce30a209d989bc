"""JSON schemas for what serializers cannot describe: policies, labels, names and messages."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension

from chatmemory.core.policies import Policy, caller_options, policy_kinds
from chatmemory.services.validation import ID_LENGTH, LABELS_MAX, LIMIT_MAX


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


# Policies: one schema for each installed kind

_LIMIT = {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX}
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}
_UNAVAILABLE_POLICY: dict[str, Any] = {
    "description": "A stored policy whose kind is not installed, with its stored options.",
    "type": "object",
    "required": ["kind", "limit", "estimator"],
    "properties": {
        "kind": {"type": "string"},
        "limit": _LIMIT,
        "estimator": {"type": "string"},
    },
    "additionalProperties": True,
}


def policy_schema() -> dict[str, Any]:
    """A policy of any kind that is installed now."""
    kinds = [_kind_schema(kind) for kind in policy_kinds().values()]
    return {"anyOf": kinds, "example": {"kind": "message_window", "max_messages": 20}}


def stored_policy_schema() -> dict[str, Any]:
    """A policy as a response shows it: its kind may have been uninstalled since."""
    schema = policy_schema()
    return schema | {"anyOf": [*schema["anyOf"], _UNAVAILABLE_POLICY]}


def _kind_schema(kind: type[Policy]) -> dict[str, Any]:
    defaults = {each.name: each.default for each in fields(kind)}
    options = {
        name: {"type": _TYPES[type], "default": defaults[name]} if type in _TYPES else {}
        for name, type in caller_options(kind).items()
    }
    # In allOf, or drf-spectacular would make a component of each, named by a hash.
    name = {"allOf": [{"type": "string", "enum": [kind.kind]}]}
    members = {"kind": name, kind.limit_name: _LIMIT, **options}
    return _object([*members][:2], **members) | {"description": kind.label}


class PolicyFieldSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    target_class = "chatmemory.api.requests.PolicyField"

    def get_name(self) -> str:
        return "Policy"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        return policy_schema()


class StoredPolicyFieldSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    target_class = "chatmemory.api.responses.StoredPolicyField"

    def get_name(self) -> str:
        return "StoredPolicy"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        return stored_policy_schema()


class NameFieldSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """The names known when the document is generated."""

    target_class = "chatmemory.api.requests.NameField"
    match_subclasses = True

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        return {"type": "string", "enum": self.target.names()}


LABELS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": "string", "maxLength": ID_LENGTH},
    "maxProperties": LABELS_MAX,
}

# Messages

_TEXT = {"type": "string"}
_ANY = {"type": "object", "additionalProperties": True}
_CONTENT = {
    "nullable": True,
    "anyOf": [
        _object(["type", "text"], type={"type": "string", "enum": ["TEXT"]}, text=_TEXT),
        {
            "type": "object",
            "required": ["type"],
            "properties": {"type": {"type": "string", "enum": ["IMAGE", "AUDIO", "VIDEO", "PDF"]}},
        },
    ],
}
_CONTENTS = {"type": "array", "items": _CONTENT}
_CALL = _object([], id=_TEXT, name=_TEXT, arguments=_TEXT) | {"nullable": True}
_CALLS = {"type": "array", "items": _CALL}


def _message(type: str, *required: str, **properties: Any) -> dict[str, Any]:
    return _object(["type", *required], type={"type": "string", "enum": [type]}, **properties)


MESSAGE: dict[str, Any] = {
    "description": "A message as LangChain4j's ChatMessageSerializer writes it.",
    "oneOf": [
        _message("SYSTEM", "text", text={**_TEXT, "minLength": 1}),
        _message("USER", "contents", contents=_CONTENTS, name=_TEXT, attributes=_ANY),
        _message("AI", text=_TEXT, thinking=_TEXT, toolExecutionRequests=_CALLS, attributes=_ANY),
        _message(
            "TOOL_EXECUTION_RESULT",
            contents=_CONTENTS,
            id=_TEXT,
            toolName=_TEXT,
            text=_TEXT,
            isError={"type": "boolean"},
            attributes=_ANY,
        ),
        _message("CUSTOM", "attributes", attributes=_ANY),
    ],
    "example": {"contents": [{"text": "Hello", "type": "TEXT"}], "type": "USER"},
}
MESSAGES: dict[str, Any] = {"type": "array", "items": MESSAGE}
FORMATTED_MESSAGES: dict[str, Any] = {
    "description": "Messages in the format that the request names, by default LangChain4j's.",
    "type": "array",
    "items": {"anyOf": [MESSAGE, {"type": "object", "description": "In another format."}]},
    "example": [MESSAGE["example"]],
}
