"""Imported files show the hours of their source on the strip, not the hour of the import."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import call_command

from benchmarks.first_screen import Clock
from chatmemory.models import Message
from inspector.rooms.hours.figures import refresh

from ...conversations import keep

pytestmark = [pytest.mark.django_db, pytest.mark.needs("transfer")]

FIELD = Path(__file__).parents[2] / "data" / "field"
# Files of programs, of as many formats, with the hour in which all of their messages were said
FILES = {
    "chatgpt.json": "2026-05-01T10",
    "claude-ai.json": "2026-05-01T10",
    "cc-fork.jsonl": "2026-05-01T10",
    "codex-events-only.jsonl": "2026-05-01T12",
    "gemini-cli.json": "2026-05-01T10",
    "langfuse.json": "2026-05-01T10",
    "langgraph-history.json": "2026-05-01T10",
    "librechat.json": "2026-05-01T10",
    "open-webui.json": "2026-05-01T10",
    "qwen-code.jsonl": "2026-05-01T13",
}


@pytest.mark.parametrize(("name", "hour"), FILES.items())
def test_the_strip_shows_the_hours_of_the_source(operator_client, name, hour):
    begun = datetime.fromisoformat(hour).replace(tzinfo=UTC)
    clock = Clock(begun.replace(hour=23, minute=30))
    with clock.set():
        call_command("import_transcripts", FIELD / name)
        keep()
        refresh()
        page = operator_client.get("/over-time/?span=24h")
    strip = page.context["strip"].context["strip"]
    row = next(cells for row, cells in strip.table if row.words == "Turns")
    asked = Message.objects.filter(type="USER", origin=Message.Origin.SAID).count()
    assert strip.first == "00:00"
    assert [bar.left for bar in row[0][1].bars] == [begun.hour]
    assert row[0][1].words == f"{asked}"
    assert strip.untimed == 0
