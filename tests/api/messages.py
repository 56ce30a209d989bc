"""Requests that several tests use."""

from __future__ import annotations

URL = "/api/v1/memories/order-7741/"


def user(text: str) -> dict:
    return {"type": "USER", "contents": [{"type": "TEXT", "text": text}]}


def call(id: str) -> dict:
    return {"type": "AI", "toolExecutionRequests": [{"id": id, "name": "f", "arguments": "{}"}]}


def result(id: str, text: str) -> dict:
    return {"type": "TOOL_EXECUTION_RESULT", "id": id, "toolName": "f", "text": text}


def body_with(*words: str, **more) -> dict:
    return {"messages": [user(word) for word in words], **more}


def add(api, *words: str, **more):
    return api.post(f"{URL}messages/", body_with(*words, **more))
