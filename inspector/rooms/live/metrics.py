"""Metrics of live streams for Prometheus, such as the number of open streams."""

from __future__ import annotations

from prometheus_client import Gauge

_open = Gauge("chatmemory_live_streams", "Number of open live streams", multiprocess_mode="livesum")
_waiting = Gauge(
    "chatmemory_live_streams_waiting",
    "Number of live streams whose reader has not received the newest event",
    multiprocess_mode="livesum",
)

stream_open = _open.track_inprogress
stream_waiting = _waiting.track_inprogress
