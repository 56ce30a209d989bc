"""Describes operations in the OpenAPI document. Also has schemas of JSON that serializers cannot
describe.

Each schema has a name, because client generators would invent names otherwise.
"""

from __future__ import annotations

import json
from dataclasses import fields
from decimal import Decimal
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentIdentity, ComponentRegistry, ResolvedComponent
from drf_spectacular.utils import Direction, OpenApiParameter

from chatmemory.conf import configuration
from chatmemory.formats import two_way_formats
from chatmemory.ledger.validation import ID_LENGTH, LABELS_MAX, LIMIT_MAX
from chatmemory.messages.json_values import JsonDict
from chatmemory.windows.policies import Oversized, Policy, policy_kinds, stored_value
from chatmemory.windows.written_policies import caller_options

Schema = JsonDict  # of JSON Schema


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: list[str], **properties: object) -> Schema:
    needed = {"required": required} if required else {}
    return {"type": "object", **needed, "properties": properties, "additionalProperties": False}


def _or_null(name: str) -> Schema:
    return {"oneOf": [ref(name), {"type": "null"}]}


def _names(*names: str) -> Schema:
    return {"type": "string", "enum": list(names)}


# Policies: one schema for each installed kind

_LIMIT = {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX}
_SHARE = "^(0[.][0-9]+|1([.]0+)?)$"  # above 0 and up to 1
_TYPES: dict[type, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Decimal: {"type": "string", "pattern": _SHARE},
    Oversized: {"allOf": [ref("Oversized")]},
}
_UNAVAILABLE_POLICY: Schema = {
    "description": "A stored policy with its options; its kind is not installed.",
    "type": "object",
    "required": ["kind", "limit", "estimator"],
    "properties": {
        "kind": {"type": "string"},
        "limit": _LIMIT,
        "estimator": {"type": "string"},
    },
    "additionalProperties": True,
}


def _policies() -> dict[str, Schema]:
    """Return the schemas of the installed kinds of policies, and a schema of any policy.

    Each kind has two schemas: a request may leave out options, while a response has all of them. A
    response may also show a policy whose kind is no longer installed.
    """
    found: dict[str, Schema] = {}
    names = []
    for kind in policy_kinds().values():
        name = f"{kind.__name__.removesuffix('Policy')}Policy"
        names.append(name)
        found |= {
            name: _kind_schema(kind, f"{name}Kind"),
            f"Stored{name}": _kind_schema(kind, f"{name}Kind", stored=True),
            f"{name}Kind": _names(kind.kind),
        }
    stored = [ref(f"Stored{name}") for name in names]
    example = {"kind": "message_window", "max_messages": 20}
    return {
        **found,
        "Oversized": _names(*map(str, Oversized)),
        "UnavailablePolicy": _UNAVAILABLE_POLICY,
        "Policy": {"anyOf": [ref(name) for name in names], "example": example},
        "StoredPolicy": {"anyOf": [*stored, ref("UnavailablePolicy")]},
    }


def _kind_schema(kind: type[Policy], name_of_kind: str, stored: bool = False) -> Schema:
    defaults = {each.name: each.default for each in fields(kind)}
    options = {name: _TYPES.get(type, {}) for name, type in caller_options(kind).items()}
    if not stored:
        options = {
            name: schema and with_default(schema, stored_value(defaults[name]))
            for name, schema in options.items()
        }
    members = {"kind": ref(name_of_kind), kind.limit_name: _LIMIT, **options}
    required = [*members] if stored else [*members][:2]
    return _object(required, **members) | {"description": kind.label}


def with_default(schema: Schema, default: object) -> Schema:
    """Return a copy of a schema with the default value in its description. `schema` describes an
    optional member of a request.

    The default is not given by JSON Schema's keyword `default`: client generators would then
    require the member in every request.
    """
    note = f"By default `{json.dumps(default)}`."
    return {**schema, "description": " ".join(filter(None, (schema.get("description"), note)))}


# Messages: one schema for each class, named as in LangChain4j


def _typed(name: str, type: str, /, *required: str, **properties: object) -> dict[str, Schema]:
    """Return two named schemas: that of an object, and that of its property `type`, whose only
    value is `type`.
    """
    schema = _object(["type", *required], type=ref(f"{name}Type"), **properties)
    return {name: schema, f"{name}Type": _names(type)}


_TEXT = {"type": "string"}
_CONTENTS = {"type": "array", "items": _or_null("Content")}
_ATTRIBUTES = ref("Attributes")
_MESSAGES = {
    "SYSTEM": "SystemMessage",
    "USER": "UserMessage",
    "AI": "AiMessage",
    "TOOL_EXECUTION_RESULT": "ToolExecutionResultMessage",
    "CUSTOM": "CustomMessage",
}
_HELLO = {"contents": [{"text": "Hello", "type": "TEXT"}], "type": "USER"}
_CHAT_MESSAGES: dict[str, Schema] = {
    "ChatMessage": {
        "description": "A message as LangChain4j's ChatMessageSerializer writes it.",
        "oneOf": [ref(name) for name in _MESSAGES.values()],
        "discriminator": {
            "propertyName": "type",
            "mapping": {type: ref(name)["$ref"] for type, name in _MESSAGES.items()},
        },
        "example": _HELLO,
    },
    **_typed("SystemMessage", "SYSTEM", "text", text={**_TEXT, "minLength": 1}),
    **_typed(
        "UserMessage", "USER", "contents", contents=_CONTENTS, name=_TEXT, attributes=_ATTRIBUTES
    ),
    **_typed(
        "AiMessage",
        "AI",
        text=_TEXT,
        thinking=_TEXT,
        toolExecutionRequests={"type": "array", "items": _or_null("ToolExecutionRequest")},
        attributes=_ATTRIBUTES,
    ),
    **_typed(
        "ToolExecutionResultMessage",
        "TOOL_EXECUTION_RESULT",
        contents=_CONTENTS,
        id=_TEXT,
        toolName=_TEXT,
        text=_TEXT,
        isError={"type": "boolean"},
        attributes=_ATTRIBUTES,
    ),
    **_typed("CustomMessage", "CUSTOM", "attributes", attributes=_ATTRIBUTES),
    "Attributes": {
        "description": "Further values that LangChain4j stores with a message.",
        "type": "object",
        "additionalProperties": True,
    },
    "ToolExecutionRequest": _object([], id=_TEXT, name=_TEXT, arguments=_TEXT),
    "Content": {"anyOf": [ref("TextContent"), ref("MediaContent")]},
    **_typed("TextContent", "TEXT", "text", text=_TEXT),
    "MediaContent": {
        "description": "A picture, a sound, a video or a file.",
        "type": "object",
        "required": ["type"],
        "properties": {"type": ref("MediaContentType")},
    },
    "MediaContentType": _names("IMAGE", "AUDIO", "VIDEO", "PDF"),
    "MessageOfAnotherFormat": {
        "description": "A message in a format other than LangChain4j's.",
        "type": "object",
        "additionalProperties": True,
    },
}
MESSAGE = ref("ChatMessage")
MESSAGES: Schema = {"type": "array", "items": MESSAGE}
FORMATTED_MESSAGES: Schema = {
    "description": "Messages in the format that the request names, by default LangChain4j's.",
    "type": "array",
    "items": {"anyOf": [MESSAGE, ref("MessageOfAnotherFormat")]},
    "example": [_HELLO],
}


def _components() -> dict[str, Schema]:
    """Return every named schema, with the installed policies and formats."""
    return {
        **_CHAT_MESSAGES,
        **_policies(),
        "MessageList": {**MESSAGES, "maxItems": configuration().LISTED_MESSAGES},
        "MessageFormat": _names(*two_way_formats()),
        "Labels": {
            "type": "object",
            "additionalProperties": {"type": "string", "maxLength": ID_LENGTH},
            "maxProperties": LABELS_MAX,
        },
    }


class BodySchema(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]  # drf-spectacular has no types here
    """Describes the body of a request as an object without additional members."""

    target_class = "chatmemory.api.requests.Body"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Direction) -> Schema:  # it has no types
        schema: Schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        schema["properties"] = {
            name: with_default(member, member.pop("default")) if "default" in member else member
            for name, member in schema["properties"].items()
        }
        return {**schema, "additionalProperties": False}


# Operations

_IN_PATHS = {
    "memory_id": OpenApiParameter(
        "memory_id",
        {"type": "string", "pattern": "^[A-Za-z0-9._~-]+$"},
        OpenApiParameter.PATH,
        description="The address of a conversation: its id, in which every byte of UTF-8 but "
        "A-Z a-z 0-9 - _ . is written as ~XX, such as `acme~2F7` for the id `acme/7`. The ids `.` "
        "and `..` are `~2E` and `~2E~2E`.",
    ),
    "seq": OpenApiParameter(
        "seq", int, OpenApiParameter.PATH, description="The number of a message (`seq`), from 1."
    ),
    "n": OpenApiParameter(
        "n", int, OpenApiParameter.PATH, description="The number of a step or of a call, from 1."
    ),
    "place": OpenApiParameter(
        "place",
        int,
        OpenApiParameter.PATH,
        description="The index of a message in the `messages` of a call, from 0.",
    ),
}


class OperationSchema(AutoSchema):
    """Describes an operation in the OpenAPI document. The document lists the operation under its
    resource, such as `memories`, whatever URL the API is mounted at.
    """

    def get_operation(
        self, path: str, path_regex: str, path_prefix: str, method: str, registry: ComponentRegistry
    ) -> Schema | None:
        """Return the description of an operation, or None if the document leaves out the operation.
        Also adds this module's named schemas, such as `ChatMessage`, to the document.
        """
        for name, schema in _components().items():
            component = ResolvedComponent(  # type: ignore[no-untyped-call]  # drf-spectacular has no types here
                name,
                ResolvedComponent.SCHEMA,
                schema,
                ComponentIdentity(name),  # type: ignore[no-untyped-call]  # drf-spectacular has no types here
            )
            registry.register_on_missing(component)
        return super().get_operation(path, path_regex, path_prefix, method, registry)

    def get_override_parameters(self) -> list[Any]:  # OpenApiParameter: its base class allows more
        return [found for name, found in _IN_PATHS.items() if f"{{{name}}}" in self.path]

    def get_summary(self) -> str:
        return self._documented()[0].removesuffix(".")

    def get_description(self) -> str:  # type: ignore[override]  # of REST framework's own schemas
        return self._documented()[2]

    def _documented(self) -> tuple[str, str, str]:
        """Return the first line of a handler's docstring, and the text after the blank line."""
        return str(super().get_description()).partition("\n\n")

    def get_tags(self) -> list[str]:
        return [self.path.partition("/v1/")[2].partition("/")[0]]
