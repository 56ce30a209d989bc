"""The permissions of routes: arguments, and the lowest role for each method."""

from __future__ import annotations

from chatmemory.roles import Role

PAGES = {
    "inspector:calls-intake": ({}, {"get": Role.VIEWER, "post": Role.ADMIN}),
    "inspector:calls": ({"memory_id": "m"}, {"get": Role.VIEWER}),
    "inspector:call": ({"memory_id": "m", "n": 1}, {"get": Role.VIEWER}),
    "inspector:redact-sent": ({"memory_id": "m", "n": 1, "place": 0}, {"post": Role.ADMIN}),
}
API = {
    "chatmemory:dropped-calls": ({}, {"get": Role.VIEWER}),
    "chatmemory:calls": ({"memory_id": "m"}, {"get": Role.VIEWER}),
    "chatmemory:call": ({"memory_id": "m", "n": 1}, {"get": Role.VIEWER}),
    "chatmemory:redact-sent": ({"memory_id": "m", "n": 1, "place": 0}, {"post": Role.ADMIN}),
}
