"""The CPU of new processes: the library, the list of commands, and a list of conversations.

The floor is the import of Django's models, which a program of Django imports in any case. With
BASE=/path/to/checkout, such as a worktree of an older commit, each start takes turns with the same
start of that checkout, and the ratio to it is a figure, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import QUICK, Figure

HERE = Path(__file__).parents[1]
BASE = os.environ.get("BASE")
ROUNDS = 5 if QUICK else 20
COMMAND = "import sys; sys.argv[1:] = {!r}; from inspector.command import main; main()"
FLOOR, PYTHON = "import django.db.models", "pass"
# Each start with the most that it may take, as a multiple of the floor
STARTS = {
    "import chatmemory": ("import chatmemory", 1.0),
    "chatmemory --help": (COMMAND.format(["--help"]), 1.0),
    "chatmemory list": (COMMAND.format(["list"]), 5.0),
}


def figures(folder: str) -> Iterator[Figure]:
    """Yield each start against the floor, and against the checkout in BASE if there is one."""
    places = {"": HERE} | ({"BASE ": Path(BASE)} if BASE else {})
    for name, place in places.items():
        _migrate(place, _database(folder, name))
    calls = {"floor": FLOOR} | {name: code for name, (code, _) in STARTS.items()}
    least: dict[str, float] = {}
    for _ in range(ROUNDS):
        for place_name, place in places.items():
            for name, code in calls.items():
                cpu = milliseconds(code, place, _database(folder, place_name))
                key = place_name + name
                least[key] = min(cpu, least.get(key, cpu))
    for name, (_, limit) in STARTS.items():
        yield _figure(f"CPU of {name}", limit, least[name], least["floor"], FLOOR)
        if BASE:
            yield _figure(
                f"CPU of {name}, against BASE", 0.5, least[name], least[f"BASE {name}"], BASE
            )


def milliseconds(code: str, place: Path, database: str) -> float:
    """Return the CPU of a new process that runs code in a checkout, its start included."""
    environment = os.environ | {"DATABASE_URL": database, "PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=place, env=environment, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{code!r} ended with {process.returncode}")
    return 1000 * (used.ru_utime + used.ru_stime)


def _database(folder: str, name: str) -> str:
    return f"sqlite:///{folder}/{name.strip() or 'here'}.sqlite3"


def _migrate(place: Path, database: str) -> None:
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
        cwd=place,
        env=os.environ | {"DATABASE_URL": database},
        check=True,
    )


def _figure(name: str, limit: float, ours: float, other: float, what: str) -> Figure:
    return Figure(name, ours / other, limit, f"least: {ours:.0f} ms, {what} {other:.0f} ms")
