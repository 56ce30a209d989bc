"""Files by which the server's processes share their metrics.

Each process has files of its own. The files of ended processes are added up in one file for each
type of metric. So counts never fall and the folder stays small, no matter how often the server is
reloaded.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import mark_process_dead

_ENDED = "ended"  # in place of a process id
_ADDED_UP = ("counter", "histogram", "summary")


@contextmanager
def reading(folder: str) -> Iterator[None]:
    """Make `process_ended` wait while the caller reads the metrics files within this context."""
    with _locked(Path(folder), fcntl.LOCK_SH):
        yield


def process_ended(folder: str, pid: int) -> None:
    """Remove the gauges of an ended process, and add its counts to the sums of all ended processes.
    `pid` is the process ID.
    """
    mark_process_dead(pid, folder)  # type: ignore[no-untyped-call]  # prometheus_client has no types
    with _locked(Path(folder), fcntl.LOCK_EX):
        for kind in _ADDED_UP:
            file = Path(folder, f"{kind}_{pid}.db")
            if file.exists():
                _add(file, Path(folder, f"{kind}_{_ENDED}.db"))
                file.unlink()


def _add(file: Path, to: Path) -> None:
    values: Any = MmapedDict  # it has no types
    with closing(values(str(to))) as sums:
        for key, value, *_ in values.read_all_values_from_file(str(file)):
            sums.write_value(key, sums.read_value(key)[0] + value, 0.0)


@contextmanager
def _locked(folder: Path, how: int) -> Iterator[None]:
    with (folder / "lock").open("ab") as file:
        fcntl.flock(file, how)
        yield
