"""The permissions of routes: arguments, and the lowest role for each method."""

from __future__ import annotations

from chatmemory.roles import Role

PAGES = {
    "inspector:lab": ({}, {"get": Role.VIEWER, "post": Role.VIEWER}),
    "inspector:adopt-for-many": ({}, {"post": Role.OPERATOR}),
    "inspector:lab-fix": ({}, {"post": Role.OPERATOR}),
}
# Pages and forms whose number of queries does not depend on the number of rows
COUNTED = ["/lab/", "/lab/?limit=1000&q=said"]
COUNTED_FORMS = [("/lab/adopt/", {"kind": "message_window", "limit": "20"})]
