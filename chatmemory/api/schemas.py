"""JSON schemas for what serializers cannot describe: policies, labels, names and messages."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentIdentity, ResolvedComponent

from chatmemory.core.policies import Policy, caller_options, policy_kinds
from chatmemory.services.validation import ID_LENGTH, LABELS_MAX, LIMIT_MAX


class OperationSchema(AutoSchema):
    """Describes an operation, under the name of its resource wherever the API is mounted."""

    def get_tags(self) -> list[str]:
        return [self.path.partition("/v1/")[2].partition("/")[0]]


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


def _one_of(*names: str) -> dict[str, Any]:
    """In allOf, or drf-spectacular would make a component of each, named by a hash."""
    return {"allOf": [{"type": "string", "enum": list(names)}]}


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
    members = {"kind": _one_of(kind.kind), kind.limit_name: _LIMIT, **options}
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

# Messages: one component for each class, named as in LangChain4j


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _typed(type: str, *required: str, **properties: Any) -> dict[str, Any]:
    return _object(["type", *required], type=_one_of(type), **properties)


_TEXT = {"type": "string"}
_ANY = {"type": "object", "additionalProperties": True}
_CONTENTS = {"type": "array", "items": {"allOf": [_ref("Content")], "nullable": True}}
_CALL = {"allOf": [_ref("ToolExecutionRequest")], "nullable": True}
_MESSAGES = {
    "SYSTEM": "SystemMessage",
    "USER": "UserMessage",
    "AI": "AiMessage",
    "TOOL_EXECUTION_RESULT": "ToolExecutionResultMessage",
    "CUSTOM": "CustomMessage",
}
COMPONENTS: dict[str, dict[str, Any]] = {
    "ChatMessage": {
        "description": "A message as LangChain4j's ChatMessageSerializer writes it.",
        "oneOf": [_ref(name) for name in _MESSAGES.values()],
        "discriminator": {
            "propertyName": "type",
            "mapping": {type: _ref(name)["$ref"] for type, name in _MESSAGES.items()},
        },
        "example": {"contents": [{"text": "Hello", "type": "TEXT"}], "type": "USER"},
    },
    "SystemMessage": _typed("SYSTEM", "text", text={**_TEXT, "minLength": 1}),
    "UserMessage": _typed("USER", "contents", contents=_CONTENTS, name=_TEXT, attributes=_ANY),
    "AiMessage": _typed(
        "AI",
        text=_TEXT,
        thinking=_TEXT,
        toolExecutionRequests={"type": "array", "items": _CALL},
        attributes=_ANY,
    ),
    "ToolExecutionResultMessage": _typed(
        "TOOL_EXECUTION_RESULT",
        contents=_CONTENTS,
        id=_TEXT,
        toolName=_TEXT,
        text=_TEXT,
        isError={"type": "boolean"},
        attributes=_ANY,
    ),
    "CustomMessage": _typed("CUSTOM", "attributes", attributes=_ANY),
    "ToolExecutionRequest": _object([], id=_TEXT, name=_TEXT, arguments=_TEXT),
    "Content": {"anyOf": [_ref("TextContent"), _ref("MediaContent")]},
    "TextContent": _typed("TEXT", "text", text=_TEXT),
    "MediaContent": {
        "description": "A picture, a sound, a video or a file.",
        "type": "object",
        "required": ["type"],
        "properties": {"type": _one_of("IMAGE", "AUDIO", "VIDEO", "PDF")},
    },
}
MESSAGE = _ref("ChatMessage")
MESSAGES: dict[str, Any] = {"type": "array", "items": MESSAGE}
FORMATTED_MESSAGES: dict[str, Any] = {
    "description": "Messages in the format that the request names, by default LangChain4j's.",
    "type": "array",
    "items": {"anyOf": [MESSAGE, {"type": "object", "description": "In another format."}]},
    "example": [COMPONENTS["ChatMessage"]["example"]],
}


class MessageFieldSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """Adds all components of messages to a document that has messages."""

    target_class = "chatmemory.api.responses.MessageField"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        for name, schema in COMPONENTS.items():
            component = ResolvedComponent(  # type: ignore[no-untyped-call]
                name,
                ResolvedComponent.SCHEMA,
                schema,
                ComponentIdentity(name),  # type: ignore[no-untyped-call]
            )
            auto_schema.registry.register_on_missing(component)
        return MESSAGE
