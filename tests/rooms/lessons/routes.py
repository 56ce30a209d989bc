"""The permissions of routes: arguments, and the lowest role for each method."""

from __future__ import annotations

NOBODY = "nobody"  # not signed in

PAGES = {
    "inspector:lessons": ({}, {"get": NOBODY}),
    "inspector:lesson": ({"slug": "tool-calls"}, {"get": NOBODY}),
    "inspector:present": ({"slug": "tool-calls"}, {"get": NOBODY}),
    "inspector:playground": ({}, {"get": NOBODY, "post": NOBODY}),
}
