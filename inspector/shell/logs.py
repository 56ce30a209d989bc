"""Formats log records as text or as JSON, each with the ID of its request.

No record quotes a message of a conversation (docs/adr/0017). The text of an error can quote a
message, so errors are logged by type and position in the code. The ADR also says why no logging
library is used.
"""

from __future__ import annotations

import json
import logging
import secrets
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime

from chatmemory.messages.json_values import JsonDict
from chatmemory.patterns import declared_pattern

logger = logging.getLogger("inspector.requests")

# Pages and live streams share the id of the current request.
request_id: ContextVar[str] = ContextVar("request_id", default="")
trace_id: ContextVar[str] = ContextVar("trace_id", default="")

_WELL_FORMED = declared_pattern(r"[A-Za-z0-9._-]{1,64}")

# The attributes of every record, and uvicorn's message with escape codes for a terminal.
_NOT_EXTRA = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}
_PLAIN = (str, int, float, bool, type(None))


class JsonFormatter(logging.Formatter):
    """A log formatter that writes each record as a JSON object: time, level, logger, the first line
    of the message, and request_id.

    During a trace, the object also has the trace_id. Values of `extra=` are added if they are
    texts, numbers, booleans or None. An error is added with its causes.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _first_line(record),
            "request_id": request_id.get(),
        }
        if trace := trace_id.get():
            line["trace_id"] = trace
        line |= _plain_extras(record)
        if record.exc_info and record.exc_info[1]:
            line["error"] = _error_chain(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """Formats a log record as a line of text. Indented lines follow for an error and its causes."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S")
        id_ = request_id.get()
        suffix = f" [{id_}]" if id_ else ""
        lines = [f"{time} {record.levelname} {record.name}{suffix}: {_first_line(record)}"]
        if record.exc_info and record.exc_info[1]:
            for error in _error_chain(record.exc_info[1]):
                lines += [f"  {error['type']}", *(f"    {place}" for place in error["places"])]
        return "\n".join(lines)


def logging_settings(style: str, log_changes: bool) -> dict[str, object]:
    """Return the value of Django's LOGGING for log lines on stderr. `style` is "json" or "text".

    Warnings and errors are always logged. With `log_changes`, requests and changes are logged, too.
    """
    formatters = {"json": JsonFormatter, "text": TextFormatter}
    level = "INFO" if log_changes else "WARNING"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": formatters[style]}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "chatmemory.audit": {"level": level},
            "inspector.requests": {"level": level},
            # inspector.requests already logs a line for each refused request.
            "django.request": {"level": "ERROR"},
        },
    }


def choose_request_id(offered: str) -> str:
    """Return the request ID that a client `offered`. If it is not well-formed, return a new ID."""
    return offered if _WELL_FORMED.fullmatch(offered) else secrets.token_hex(8)


def log_request(method: str, route: str, status: int, seconds: float, actor: str) -> None:
    """Log an answered request. `route` is the name of a URL pattern, without a query string."""
    milliseconds = round(seconds * 1000, 1)
    extra = {
        "method": method,
        "route": route,
        "status": status,
        "milliseconds": milliseconds,
        "actor": actor,
    }
    logger.info(f"{method} {route} {status} in {milliseconds} ms", extra=extra)


def _first_line(record: logging.LogRecord) -> str:
    """Return the first line of a log message. Errors in it are replaced by their types.

    Other lines are left out: they could quote an error, or imitate a log line.
    """
    message, args = str(_without_errors(record.msg)), record.args
    if isinstance(args, tuple):
        args = tuple(map(_without_errors, args))
    return (message % args if args else message).partition("\n")[0]


def _without_errors(value: object) -> object:
    return type(value).__qualname__ if isinstance(value, BaseException) else value


def _plain_extras(record: logging.LogRecord) -> dict[str, object]:
    """Return the plain values of `extra=`. Objects are left out, because their text could quote a
    message.
    """
    return {
        name: value
        for name, value in vars(record).items()
        if name not in _NOT_EXTRA and isinstance(value, _PLAIN)
    }


def _error_chain(error: BaseException | None) -> list[JsonDict]:
    """Return the type and the positions of an error and of its causes, outermost first."""
    chain: list[JsonDict] = []
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        kind = type(error)
        places = [
            f"{frame.filename}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
        ]
        chain.append({"type": f"{kind.__module__}.{kind.__qualname__}", "places": places})
        error = error.__cause__ or error.__context__
    return chain
