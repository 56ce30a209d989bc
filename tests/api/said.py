"""Requests that several tests use."""

from __future__ import annotations

URL = "/api/v1/memories/order-7741/"


def user(text: str) -> dict:
    return {"type": "USER", "contents": [{"type": "TEXT", "text": text}]}


def add(api, *words: str, **more):
    return api.post(f"{URL}messages/", {"messages": [user(word) for word in words], **more})
