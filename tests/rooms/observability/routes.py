"""The permissions of routes: arguments, and the lowest role for each method."""

from __future__ import annotations

NOBODY = "nobody"  # not signed in

PAGES = {"inspector:metrics": ({}, {"get": NOBODY})}  # by address or token: test_observability
