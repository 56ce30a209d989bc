"""OpenAPI's words for what serializers read by hand: policies, labels and messages."""

from __future__ import annotations

from typing import Any

from chatmemory.services.validation import ID_LENGTH, LABELS_MAX, LIMIT_MAX


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


def _policy(kind: str, limit: str) -> dict[str, Any]:
    return _object(
        ["kind", limit],
        kind={"type": "string", "enum": [kind]},
        estimator={"type": "string", "default": "gpt-4o"},
        always_keep_system_message_first={"type": "boolean", "default": False},
        **{limit: {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX}},
    )


POLICY: dict[str, Any] = {
    "nullable": True,
    "oneOf": [_policy("message_window", "max_messages"), _policy("token_window", "max_tokens")],
    "example": {"kind": "message_window", "max_messages": 20},
}
LABELS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": "string", "maxLength": ID_LENGTH},
    "maxProperties": LABELS_MAX,
}

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
SAID: dict[str, Any] = {
    "description": "In the format that `format` names; without one LangChain4j's.",
    "type": "array",
    "items": {
        "anyOf": [
            MESSAGE,
            {"type": "object", "required": ["role"], "properties": {"role": _TEXT}},
            {
                "type": "object",
                "required": ["from", "value"],
                "properties": {"from": _TEXT, "value": _TEXT},
            },
        ]
    },
    "example": [MESSAGE["example"]],
}
