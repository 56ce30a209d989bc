"""Write the figures of a run into docs/performance.md, with the machine that made them."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from benchmarks.database import ON_POSTGRESQL, SERVER
from benchmarks.measuring import QUICK, Figure

RECORD = os.environ.get("RECORD") == "1"
DOCS = Path(__file__).parents[1] / "docs"
PAGE, IMAGES = DOCS / "performance.md", DOCS / "images"
BEGIN, END = "<!-- figures: make bench RECORD=1 -->", "<!-- end of figures -->"
if ON_POSTGRESQL:
    BEGIN = "<!-- figures: make bench POSTGRESQL=1 RECORD=1 -->"
CPU = "model name"


def record(figures: Sequence[Figure]) -> None:
    """Replace the figures of the page by these."""
    write_between(BEGIN, END, _lines(figures), PAGE)


def write_between(begin: str, end: str, text: str, page: Path) -> None:
    """Replace the text between two lines of a page."""
    before, rest = page.read_text("utf-8").split(begin)
    _, after = rest.split(end, 1)
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", "utf-8")


def machine() -> str:
    """Return the machine and the versions in words."""
    parts = (
        f"{os.cpu_count()} CPUs ({_cpu()})",
        f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        f"Python {platform.python_version()}",
        _database(),
    )
    return ", ".join(parts)


def _database() -> str:
    if not ON_POSTGRESQL:
        return f"SQLite {sqlite3.sqlite_version}"
    with psycopg.connect(SERVER) as connection:
        return f"PostgreSQL {connection.info.server_version // 10_000}"


def _lines(figures: Sequence[Figure]) -> str:
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    rows = "\n".join(map(_row, figures))
    how = ", with smaller databases (`QUICK=1`)" if QUICK else ""
    head = "| what | ratio | limit | of |\n|---|--:|--:|---|"
    return f"Measured {today} on {machine()}{how}.\n\n{head}\n{rows}"


def _row(figure: Figure) -> str:
    limit = f"{figure.limit:.3g}" if figure.ok else f"{figure.limit:.3g}, missed"
    return f"| {figure.name} | {figure.ratio:.3g} | {limit} | {figure.detail} |"


def _cpu() -> str:
    """Return the name of the processor, if Linux has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith(CPU)), "unknown")
