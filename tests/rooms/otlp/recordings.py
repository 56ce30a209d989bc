"""What real instrumentations exported, and the requests that the provider got (tests/data/otlp).

Names, versions and what each lacks are in the README.md of the archive.
"""

from __future__ import annotations

import json
import tarfile
from functools import cache
from pathlib import Path

from inspector.rooms.calls.call import Dropped, NewCall
from inspector.rooms.otlp.records import JSON, PROTOBUF, read_batch
from inspector.rooms.otlp.spans import calls_of_logs, calls_of_spans

ARCHIVE = Path(__file__).parents[2] / "data/otlp.tar.xz"
TYPES = {"json": JSON, "pb": PROTOBUF}


@cache
def files() -> dict[str, bytes]:
    with tarfile.open(ARCHIVE) as archive:
        members = [each for each in archive.getmembers() if each.isfile()]
        return {Path(each.name).name: archive.extractfile(each).read() for each in members}


def names() -> list[str]:
    return sorted(name.partition(".")[0] for name in files() if name.endswith(".requests.json"))


def sent(name: str) -> list[dict]:
    """The bodies that the provider got."""
    return json.loads(files()[f"{name}.requests.json"])


def bodies(name: str, kind: str = "pb") -> list[tuple[str, bytes]]:
    """The bodies of a recording with their signals."""
    found = [(signal, files().get(f"{name}.{signal}.{kind}")) for signal in ("traces", "logs")]
    return [(signal, body) for signal, body in found if body]


def read(name: str, kind: str = "pb") -> tuple[list[NewCall], list[Dropped]]:
    """The calls of a recording, each once and in the order of their start, and dropped ones."""
    calls, dropped = {}, []
    for signal, body in bodies(name, kind):
        read_calls = calls_of_spans if signal == "traces" else calls_of_logs
        for each in read_calls(read_batch(body, signal, TYPES[kind]).records):
            if isinstance(each, NewCall):
                calls.setdefault(each.key, each)
            else:
                dropped.append(each)
    return sorted(calls.values(), key=lambda each: each.at), dropped
