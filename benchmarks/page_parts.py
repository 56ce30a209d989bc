"""Count what each part of the conversation page costs: `python -m benchmarks.page_parts [ADDRESS]`.

Function calls of one GET are counted by the innermost part that makes them: a template by its name,
a room, or a presenter of the page. Calls of the kernel, of Django and of Python belong to the part
that needs them. The counts are exact, whatever else the machine does. ADDRESS is a step or message
of the demo, such as `?at=43&msg=25`.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.database import migrated
from benchmarks.server import client

ROOT = Path(__file__).parent.parent
CONVERSATION = "/c/order-7741/"
ELSEWHERE = "Django: middleware, routes, account"


class Calls:
    """Counts calls of functions by part, as long as it is entered."""

    def __init__(self) -> None:
        self.by_part: Counter[str] = Counter()
        self._parts = [ELSEWHERE]

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            self._parts.append(_part_of(frame) or self._parts[-1])
        elif event == "return" and len(self._parts) > 1:
            self._parts.pop()
        if event in ("call", "c_call"):
            self.by_part[self._parts[-1]] += 1


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count calls by part, in all threads that begin meanwhile and in this one."""
    calls = Calls()
    threading.setprofile(calls.profile)
    sys.setprofile(calls.profile)
    try:
        yield calls.by_part
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _part_of(frame: FrameType) -> str | None:
    """Return the part that a call begins, or None if it belongs to its caller's."""
    code = frame.f_code
    if code.co_name == "_render" and code.co_filename.endswith("django/template/base.py"):
        return f"template {frame.f_locals['self'].name}"
    path = Path(code.co_filename)
    if not path.is_relative_to(ROOT) or ".venv" in path.parts:
        return None
    names = path.relative_to(ROOT).parts
    if names[:2] == ("inspector", "rooms") and len(names) > 3:
        return f"room {names[2]}"
    if names[:2] == ("inspector", "conversation"):
        return "/".join(names[:3])
    return None


def print_parts(get: Callable[[], Any]) -> None:
    with counted() as by_part:
        get()
    for name, count in by_part.most_common():
        print(f"{count:8,}  {name}")
    print(f"{by_part.total():8,}  in all")


def main(arguments: Sequence[str]) -> None:
    from django.core.management import call_command

    from chatmemory import services

    call_command("load_demo", verbosity=0)
    services.keep("order-7741")
    reader, address = client(), CONVERSATION + next(iter(arguments), "")
    for _ in range(2):  # templates are compiled, and caches are filled
        assert reader.get(address).status_code == 200, address
    print_parts(lambda: reader.get(address))


if __name__ == "__main__":
    with migrated():
        main(sys.argv[1:])
