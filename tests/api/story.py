"""A story that calls each operation of the API once, in an order that makes sense."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

TIME = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z$")
DIGEST = re.compile(r"^[0-9a-f]{64}$")


class Call(NamedTuple):
    operation: str
    method: str
    path: str
    body: Any = None


def said(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


ONE = "memories/order-7741/"
STORE = "store/from-java/"
STORY = [
    Call(
        "create_memory",
        "post",
        "memories/",
        {
            "id": "order-7741",
            "policy": {"kind": "token_window", "max_tokens": 60},
            "labels": {"team": "support"},
        },
    ),
    Call("list_memories", "get", "memories/"),
    Call(
        "add_messages",
        "post",
        f"{ONE}messages/",
        {
            "format": "openai_chat",
            "messages": [
                said("system", "Be brief."),
                said("user", "My order number is A-1182. Where is my parcel?"),
                said("assistant", "It has left the depot in Dijon and arrives on Thursday."),
                said("user", "Could you change the address to 12 Rue de la Paix, please?"),
            ],
            "client_ids": ["m1", "m2", "m3", "m4"],
        },
    ),
    Call("get_window", "get", f"{ONE}messages/"),
    Call("get_message", "get", f"{ONE}messages/2/"),
    Call("get_history", "get", f"{ONE}history/"),
    Call("list_steps", "get", f"{ONE}steps/"),
    Call("get_step", "get", f"{ONE}steps/4/"),
    Call(
        "simulate",
        "post",
        f"{ONE}simulate/",
        {
            "format": "openai_chat",
            "messages": [said("user", "And do you still know my order number?")],
            "policy": {"kind": "message_window", "max_messages": 3},
        },
    ),
    Call("get_recall", "get", "recall/?prefix=order-&policies=message_window:2,everything"),
    Call(
        "recall",
        "post",
        "recall/",
        {
            "format": "openai_chat",
            "conversations": [
                [
                    said("user", "My order number is A-1182."),
                    said("assistant", "Thank you. What is wrong with it?"),
                    said("user", "It has not come."),
                    said("assistant", "I am looking for order A-1182."),
                ]
            ],
            "policies": "message_window:2,message_window:3",
        },
    ),
    Call("pin_message", "post", f"{ONE}messages/3/pin/"),
    Call("unpin_message", "delete", f"{ONE}messages/3/pin/"),
    Call(
        "change_memory",
        "patch",
        ONE,
        {"policy": {"kind": "token_window", "max_tokens": 1000}, "labels": {"team": "billing"}},
    ),
    Call("get_memory", "get", ONE),
    Call(
        "set_window",
        "put",
        f"{ONE}messages/",
        {"messages": [{"type": "SYSTEM", "text": "Be brief."}]},
    ),
    Call("clear_window", "delete", f"{ONE}messages/"),
    Call("redact_message", "post", f"{ONE}messages/2/redact/", {"branches": True}),
    Call(
        "update_messages",
        "put",
        STORE,
        [{"contents": [{"text": "Hello", "type": "TEXT"}], "type": "USER"}],
    ),
    Call("get_messages", "get", STORE),
    Call("delete_messages", "delete", STORE),
    Call("delete_memory", "delete", ONE),
]


def told(api: Any) -> dict[str, dict[str, Any]]:
    """Call all operations in turn, and return requests and responses by operation id.

    Times and digests are replaced, as they differ each time.
    """
    examples = {}
    for call in STORY:
        response = getattr(api, call.method)(f"/api/v1/{call.path}", call.body)
        content = b"".join(response.streaming_content) if response.streaming else response.content
        assert response.status_code < 300, (call, content)
        answer = _steady(json.loads(content)) if content else None
        examples[call.operation] = {"request": call.body, "response": answer}
    return examples


def _steady(value: Any) -> Any:
    match value:
        case dict():
            return {name: _steady(each) for name, each in value.items()}
        case list():
            return [_steady(each) for each in value]
        case str() if TIME.match(value):
            return "2026-01-31T09:30:00Z"
        case str() if DIGEST.match(value):
            return "5f" * 32
    return value
