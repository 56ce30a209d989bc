"""Log lines, as text or as JSON, each with the id of the request that it belongs to.

What people said never gets into them: an error is told by its type and its places in the code,
since its words may quote a message; of an address only the path is told.
"""

from __future__ import annotations

import json
import logging
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

request_id: ContextVar[str] = ContextVar("request_id", default="")

_OF_LOGGING = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_PLAIN = (str, int, float, bool, type(None))


class JsonFormatter(logging.Formatter):
    """One object per line: time, level, logger, message, request_id, error, and what was added."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _first_line(record),
            "request_id": request_id.get(),
        }
        line |= _added(record)
        if record.exc_info and record.exc_info[1]:
            line["error"] = _errors(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """The same for people."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S")
        id_ = request_id.get()
        of_request = f" [{id_}]" if id_ else ""
        lines = [f"{time} {record.levelname} {record.name}{of_request}: {_first_line(record)}"]
        if record.exc_info and record.exc_info[1]:
            for error in _errors(record.exc_info[1]):
                lines += [f"  {error['type']}", *(f"    {place}" for place in error["places"])]
        return "\n".join(lines)


def logging_settings(style: str, tells_all: bool) -> dict[str, Any]:
    """Django's LOGGING. `style` is json or text; with `tells_all` each request and each change has
    a line, otherwise warnings and errors only.
    """
    formatters = {"json": JsonFormatter, "text": TextFormatter}
    level = "INFO" if tells_all else "WARNING"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": formatters[style]}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "chatmemory.audit": {"level": level},
            "inspector.requests": {"level": level},
            # A refused request has its line in inspector.requests.
            "django.request": {"level": "ERROR"},
        },
    }


def _first_line(record: logging.LogRecord) -> str:
    """What follows is an error's words again, as asyncio adds them, or a line that poses as one.
    An error within the line is told by its type.
    """
    words, args = str(_without_errors(record.msg)), record.args
    if isinstance(args, tuple):
        args = tuple(map(_without_errors, args))
    return (words % args if args else words).partition("\n")[0]


def _without_errors(value: object) -> object:
    return type(value).__qualname__ if isinstance(value, BaseException) else value


def _added(record: logging.LogRecord) -> dict[str, Any]:
    """What `extra=` brought, as far as JSON knows it."""
    return {
        name: value
        for name, value in vars(record).items()
        if name not in _OF_LOGGING and isinstance(value, _PLAIN)
    }


def _errors(error: BaseException) -> list[dict[str, Any]]:
    """The error and what caused it, outermost first."""
    chain: list[dict[str, Any]] = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        kind = type(error)
        places = [
            f"{frame.filename}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
        ]
        chain.append({"type": f"{kind.__module__}.{kind.__qualname__}", "places": places})
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return chain
