"""Signals about a server that has too much to do; rooms listen to them."""

from __future__ import annotations

from django.dispatch import Signal

# A request is answered with this `status` before Django receives it: 408, 413, 429 or 503.
request_refused = Signal()
# The number of requests that wait for their turn, or that are worked on, grows by `waiting` and
# `working`.
load_changed = Signal()
