"""Django signals that a server process sends to rooms.

They tell of a request that the server rejected, a change in the number of waiting or working
requests, and the end of the process.
"""

from __future__ import annotations

from django.dispatch import Signal

# Sent when a request is answered with this `status` before Django receives it: 408, 413, 429 or
# 503.
request_refused = Signal()
# Sent when the number of waiting requests changes by `waiting`, and of those in progress by
# `working`.
load_changed = Signal()
# Sent when the process stops: receivers end what would prevent it, such as open streams.
server_stopping = Signal()
