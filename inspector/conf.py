"""Reads the setting INSPECTOR of the project. No other module reads it.

INSPECTOR = {"METRICS_TOKEN": "…"}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from django.core.signals import setting_changed

from chatmemory.patterns import declared_pattern
from chatmemory.settings_reader import (
    BYTES,
    Expected,
    is_list,
    is_text,
    read,
    setting,
    whole_number,
)

_FLAG = Expected(lambda value: isinstance(value, bool), "True or False")
_FOLDER = Expected(lambda value: isinstance(value, str | Path), "the path of a folder")
_ORIGIN = declared_pattern(r"https?://[^\s/;,]+")
_ORIGINS = Expected(
    lambda value: (
        is_list(value) and all(is_text(each) and _ORIGIN.fullmatch(each) for each in value)
    ),
    'a list of origins such as ["https://school.example"]',
)
ANY_MODEL = "*"
PRICE = declared_pattern(r"([^\s0-9.,-]{0,4})([0-9]{1,6}(?:\.[0-9]{1,6})?)")
_PRICES = Expected(
    lambda value: (
        isinstance(value, Mapping)
        and all(is_text(each) and PRICE.fullmatch(each) for each in value.values())
        and all(map(is_text, value))
    ),
    'a dictionary such as {"gpt-4o": "$2.50"}',
)
_COMMAND = Expected(
    lambda value: isinstance(value, str) and value != "", 'a command such as "python manage.py"'
)


# Wide: people write these settings, each under its own name in INSPECTOR.
@dataclass(frozen=True)
class InspectorConfiguration:
    """The members of the setting INSPECTOR, and their defaults.

    - `METRICS_TOKEN` is the bearer token of requests for the metrics. If it is empty, only requests
      from this machine get the metrics.
    - `DISK_FREE_MB` is the free space, in megabytes, below which `readyz` reports a full disk.
    - `TRACES` is True to send traces, which needs the extra `otel`.
    - `LESSONS` is a folder with your own lessons (docs/lessons.md).
    - `EMBED` has the origins of the sites that may show lessons in their pages; empty for none.
    - `LEAST_SAVING` is the smallest saving for which pages recommend a policy. It is a percentage
      of the cost of sending everything.
    - `MANAGE` is the beginning of every command line that pages show, such as `python manage.py`.
    - `OPEN_FORM_BYTES` is the largest size of a form that needs no account. `FORM_BYTES` is the
      largest size of a form that needs an account.
    - `MESSAGES_FORM_BYTES` is the largest size of a form with messages, sent as
      multipart/form-data.
    - `UPLOAD_BYTES` is the largest size of an uploaded file.
    - `OTLP_BYTES` is the largest size of a request with OpenTelemetry traces (OTLP), unpacked.
    - `CALL_DAYS` is the number of days after which `vacuum` deletes model calls. With 0, model
      calls are kept as long as their conversation.
    - `PRICES` maps the beginning of a model's name to the price of a million input tokens, such as
      `$2.50`. `*` stands for all other models.
    - `WHOLE_SITE` is True if every page of the project is the inspector's. Then all pages need an
      account, and have the inspector's headers, log lines, metrics and error pages.
    """

    METRICS_TOKEN: str = setting("", Expected(is_text, "text", is_secret=True))
    DISK_FREE_MB: int = setting(100, whole_number(0, 10**9))
    TRACES: bool = setting(False, _FLAG)
    LESSONS: str | Path = setting("", _FOLDER)  # noqa: RUF009  (this makes a field)
    EMBED: Sequence[str] = setting((), _ORIGINS)
    LEAST_SAVING: int = setting(10, whole_number(0, 100))
    MANAGE: str = setting("python manage.py", _COMMAND)
    OPEN_FORM_BYTES: int = setting(64 * 2**10, BYTES)
    FORM_BYTES: int = setting(256 * 2**10, BYTES)
    MESSAGES_FORM_BYTES: int = setting(2 * 2**20, BYTES)
    UPLOAD_BYTES: int = setting(16 * 2**20, BYTES)
    OTLP_BYTES: int = setting(16 * 2**20, BYTES)
    CALL_DAYS: int = setting(0, whole_number(0, 36_500))
    PRICES: Mapping[str, str] = field(default_factory=dict, metadata={"expected": _PRICES})
    WHOLE_SITE: bool = setting(False, _FLAG)


@cache
def inspector_configuration() -> InspectorConfiguration:
    """Return the project's setting INSPECTOR, with defaults for missing members.

    Raises ImproperlyConfigured for unknown members, and for values of a wrong type or range.
    """
    return read("INSPECTOR", InspectorConfiguration, '{"METRICS_TOKEN": "…"}')


def _clear_cache(*, setting: str, **kwargs: object) -> None:
    if setting == "INSPECTOR":
        inspector_configuration.cache_clear()


setting_changed.connect(_clear_cache)
