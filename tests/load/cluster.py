"""A PostgreSQL cluster in a temporary folder, which tests can kill."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from ..serving import free_port

USER = "postgres"


def binaries() -> Path | None:
    """The folder of initdb, on Debian or on the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


class Cluster:
    """Run as the account `postgres` if we are root, because PostgreSQL refuses to run as root."""

    def __init__(self, bin: Path) -> None:
        # Not in pytest's folder, which is closed to other accounts.
        self.bin, self.data = bin, Path(tempfile.mkdtemp(prefix="cluster-"))
        if os.getuid() == 0:
            shutil.chown(self.data, USER)
        self.port = free_port()
        # Processes are killed, but never the machine: nothing need be on the disk at once.
        options = ("--auth=trust", f"--username={USER}", "--no-sync")
        self.run("initdb", *options, "--pgdata", str(self.data))
        self.url = f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -h 127.0.0.1 -c unix_socket_directories="
        log = str(self.data / "log")
        self.run("pg_ctl", "start", "-w", "-D", str(self.data), "-l", log, "-o", options)

    def kill(self) -> None:
        """Kill the postmaster and its processes with SIGKILL, and wait until all have ended."""
        postmaster = int((self.data / "postmaster.pid").read_text().splitlines()[0])
        children = subprocess.run(
            ["pgrep", "-P", str(postmaster)], capture_output=True, text=True
        ).stdout.split()
        ends = [end for end in map(_end_of, (postmaster, *map(int, children))) if end is not None]
        for end in ends:
            signal.pidfd_send_signal(end, signal.SIGKILL)
        for end in ends:
            select.select([end], [], [])
            os.close(end)
        # Its number stays taken where nobody reaps orphans, and a start would wait for it.
        (self.data / "postmaster.pid").unlink()

    def pause(self) -> None:
        """Stop the cluster; `start` starts it again."""
        self.run("pg_ctl", "stop", "-w", "-m", "fast", "-D", str(self.data))

    def stop(self) -> None:
        self.pause()
        shutil.rmtree(self.data)

    def run(self, name: str, *arguments: str) -> None:
        as_user = ["runuser", "-u", USER, "--"] if os.getuid() == 0 else []
        subprocess.run(
            [*as_user, str(self.bin / name), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.data,
        )


def _end_of(process: int) -> int | None:
    """A file descriptor that becomes readable when the process ends; None if it has ended."""
    try:
        return os.pidfd_open(process)
    except ProcessLookupError:
        return None
