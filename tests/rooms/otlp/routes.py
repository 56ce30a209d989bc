"""The permissions of routes: arguments, and the lowest role for each method."""

from __future__ import annotations

from chatmemory.roles import Role

API = {
    "inspector:otlp-traces": ({}, {"post": Role.OPERATOR}),
    "inspector:otlp-logs": ({}, {"post": Role.OPERATOR}),
    "inspector:otlp-metrics": ({}, {"post": Role.OPERATOR}),
}
