"""Downloads of numbers as CSV or JSON, for the lab and for comparisons of policies."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence

from django.http import HttpResponse

from chatmemory.explain.wording import sentence

Rows = Sequence[Mapping[str, object]]
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", *(chr(ord(sign) + 0xFEE0) for sign in "=+-@"))


def csv_file(columns: Sequence[str], rows: Rows, name: str) -> HttpResponse:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return _file(text.getvalue(), "text/csv; charset=utf-8", f"{name}.csv")


def json_file(rows: Rows, name: str) -> HttpResponse:
    return _file(json.dumps(rows, indent=2), "application/json", f"{name}.json")


def no_numbers(problem: str) -> HttpResponse:
    """Return a plain-text response with status 422, which says why there is no file with
    numbers.
    """
    return HttpResponse(f"{sentence(problem)}\n", "text/plain; charset=utf-8", status=422)


def _file(content: str, type: str, name: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{_plain(name)}"'}
    return HttpResponse(content, type, headers=headers)


def _cell(value: object) -> object:
    """Return a value for a spreadsheet. A text that could be read as a formula gets an apostrophe
    in front.
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULAS) else value


def _plain(name: str) -> str:
    return "".join(
        char if char.isascii() and (char.isalnum() or char in "-._") else "_" for char in name
    )
