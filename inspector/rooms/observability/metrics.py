"""The metrics of this site for Prometheus. No metric has a label for the conversation ID, so that
the number of time series stays small.

If several processes share the folder PROMETHEUS_MULTIPROC_DIR, each process answers with the
metrics of all these processes.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from functools import cache

import django
from django.db import Error as DatabaseError
from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

import chatmemory
from chatmemory.database import connection
from chatmemory.flags import flags
from chatmemory.reading.conversations import any_memory
from chatmemory.services import ChangeResult
from inspector.project.metrics_files import reading

_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})

_added = Counter("chatmemory_messages_added", "Number of messages added to conversations")
_left = Counter("chatmemory_messages_left", "Number of messages that left memory", ["reason"])
_incidents = Counter(
    "chatmemory_incidents",
    "Number of messages that repeat a fact that had left memory, counted when found",
    ["kind"],
)
_steps = Counter("chatmemory_steps", "Number of steps recorded in ledgers", ["kind"])
_problems = Counter(
    "chatmemory_problems",
    "Number of windows that began to break a rule of a provider since the previous examination",
    ["rule"],
)
_cases = Counter(
    "chatmemory_cases",
    "Number of conversations with a new case of a cause that the overview shows in red",
    ["cause"],
)
_fill = Histogram(
    "chatmemory_window_fill",
    "Size of memory after a change, as a share of its limit; 1 is full",
    buckets=(0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0, 1.1, 2.0),
)
_requests = Histogram(
    "chatmemory_request_seconds",
    "Seconds from a request to its response, without live streams",
    ["method", "route", "status"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
_refused = Counter(
    "chatmemory_requests_refused",
    "Number of requests that the server refused, by reason",
    ["reason"],
)
_waiting = Gauge(
    "chatmemory_requests_waiting",
    "Number of requests that wait to be carried out",
    multiprocess_mode="livesum",
)
_working = Gauge(
    "chatmemory_requests_working",
    "Number of requests in progress; each can hold a connection to the database",
    multiprocess_mode="livesum",
)
_connections = Gauge(
    "chatmemory_connections",
    "Number of connections in the pools to PostgreSQL, by state",
    ["state"],
    multiprocess_mode="livesum",
)
_processes = Gauge(
    "chatmemory_processes", "Number of server processes", multiprocess_mode="livesum"
)
_database = Gauge(
    "chatmemory_database_up",
    "Whether the database could be read when these metrics were made; 1 is yes",
    multiprocess_mode="livemostrecent",
)
_build = Gauge(
    "chatmemory_build_info",
    "Versions of chatmemory, Django and Python, in the labels; the value is 1",
    ["version", "django", "python"],
    multiprocess_mode="livemax",
)
_REASONS = {408: "slow", 413: "size", 429: "rate", 503: "database"}
_processes.set(1)
_build.labels(chatmemory.__version__, django.__version__, platform.python_version()).set(1)
# The Prometheus client would check a label at each use.
_steps_of, _left_for = cache(_steps.labels), cache(_left.labels)


def request_answered(method: str, route: str, status: int, seconds: float) -> None:
    """Count an answered request, and record its duration in seconds. Unknown methods are counted
    under one name, because clients can invent any number of methods.
    """
    method = method if method in _METHODS else "other"
    _requests.labels(method, route, f"{status // 100}xx").observe(seconds)
    if status in _REASONS:
        _refused.labels(_REASONS[status]).inc()


def request_refused(status: int, **_: object) -> None:
    """Signal receiver for `inspector.shell.load.request_refused`: count a request that the server
    answered with an error before Django received it. `status` is 408, 413, 429 or 503.
    """
    _refused.labels("busy" if status == 503 else _REASONS[status]).inc()


def load_changed(waiting: int, working: int, **_: object) -> None:
    """Signal receiver for `inspector.shell.load.load_changed`: add to the numbers of waiting and of
    working requests.

    `waiting` and `working` are differences, such as -1 when a request ends.
    """
    _waiting.inc(waiting)
    _working.inc(working)
    if working < 0:
        _count_connections()


def _count_connections() -> None:
    """Record the number of connections in this process's pool, if it has one."""
    pool = getattr(connection(), "pool", None)
    if pool is not None:
        found = pool.get_stats()
        _connections.labels("open").set(found["pool_size"])
        _connections.labels("idle").set(found["pool_available"])


def memory_changed(
    results: tuple[ChangeResult, ...],
    fill: float | None,
    **_: object,
) -> None:
    """Signal receiver for `chatmemory.signals.memory_changed`: count steps, evictions and added
    messages, and record how full memory is.

    `fill` is the load of memory divided by its limit; None without a policy.
    """
    kinds = [result.kind for result in results]
    for kind in set(kinds):
        _steps_of(kind).inc(kinds.count(kind))
    reasons = [each.reason for result in results for each in result.evicted]
    for reason in set(reasons):
        _left_for(reason).inc(reasons.count(reason))
    _added.inc(sum(each.said_count for each in results))
    if fill is not None:
        _fill.observe(fill)


def problems_found(new: tuple[str, ...], **_: object) -> None:
    """Signal receiver for `chatmemory.signals.problems_found`: count the provider rules that
    memories have newly broken.
    """
    for rule in new:
        _problems.labels(rule).inc()


def begin_cases() -> None:
    """Create the counters for conversations that need attention, with the value 0. So Prometheus
    sees the first case as an increase.
    """
    for flag in flags():
        if flag.line and flag.alarm.is_fault:
            _cases.labels(flag.name)


def cases_found(cause: str, **_: object) -> None:
    """Signal receiver for `chatmemory.signals.cases_found`: count a conversation that newly needs
    attention, by `cause`.
    """
    _cases.labels(cause).inc()


def incidents_found(new: Mapping[str, int], **_: object) -> None:
    """Signal receiver for `chatmemory.signals.incidents_found`: count new incidents by kind."""
    for kind, count in new.items():
        _incidents.labels(kind).inc(count)


def exposition() -> bytes:
    """Return all metrics in Prometheus' text format."""
    _database.set(_can_be_read())
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if folder is None:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]  # prometheus_client has no types
    with reading(folder):
        return generate_latest(registry)


def _can_be_read() -> bool:
    try:
        any_memory()
    except DatabaseError:
        return False
    return True
