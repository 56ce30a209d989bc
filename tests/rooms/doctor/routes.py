"""The permissions of routes: arguments, and the lowest role for each method."""

from __future__ import annotations

from chatmemory.roles import Role

PAGES = {
    "inspector:doctor": ({}, {"get": Role.VIEWER}),
    "inspector:doctor-rules": ({}, {"get": Role.VIEWER}),
    "inspector:doctor-error": ({}, {"get": Role.VIEWER, "post": Role.VIEWER}),
    "inspector:doctor-providers": ({}, {"get": Role.ADMIN, "post": Role.ADMIN}),
    "inspector:doctor-providers-forget": ({}, {"post": Role.ADMIN}),
}
API = {"chatmemory:doctor": ({}, {"get": Role.VIEWER})}
