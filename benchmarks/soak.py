"""Run a server at half of its capacity for some minutes, and check that it stays healthy.

    .venv/bin/python -m benchmarks.soak --minutes 20

Starts the configuration of deploy/ on a new SQLite file (or a new database beside DATABASE_URL),
measures the number of adds per second, then sends half of it while streams are open and pages are
read. Prints the results. Exits with 1 if a request failed, a viewer missed a step or received one
twice, a replay differs from the ledger, or the memory of the processes grew.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

import requests

from benchmarks.clients import Usage
from tests.deployed import Deployed
from tests.serving import database, served_by

CLIENTS, VIEWERS, READERS, CONVERSATIONS = 4, 20, 2, 20
WARM_UP_SECONDS, SAMPLE_SECONDS, DELIVERY_SECONDS = 20, 5, 10
GROWTH_MAX = 1.05
WORDS = "where is my parcel, and when will it come? " * 4


class Soak:
    """Threads that add messages, watch streams and read pages until they are stopped."""

    def __init__(self, deployed: Deployed) -> None:
        self.deployed, self.served = deployed, deployed.served
        self.ids = [f"soak-{n}" for n in range(CONVERSATIONS)]
        self.milliseconds: list[float] = []
        self.faults: list[str] = []
        self.last_steps = dict.fromkeys(range(VIEWERS), 0)
        self.over, self.closed = threading.Event(), threading.Event()

    @contextmanager
    def running(self, *work: Callable[[], None]) -> Iterator[None]:
        self.over.clear()
        threads = [threading.Thread(target=target, daemon=True) for target in work]
        for thread in threads:
            thread.start()
        yield
        self.over.set()
        for thread in threads:
            thread.join(30)

    def session(self) -> requests.Session:
        session = requests.Session()
        session.headers.update(self.served.api.headers)
        return session

    def add(self, number: int, rate: float | None = None) -> None:
        """Add messages as fast as possible, or at a fixed rate that does not wait for responses."""
        session, due, n = self.session(), time.monotonic(), 0
        while not self.over.is_set():
            n += 1
            if rate:
                due += 1 / rate
                self.over.wait(max(0.0, due - time.monotonic()))
            memory_id = self.ids[(number + n * CLIENTS) % CONVERSATIONS]
            body = {"messages": [{"role": "user", "content": WORDS}], "format": "openai_chat"}
            self.send(session, "POST", f"/api/v1/memories/{memory_id}/messages/", 201, json=body)

    def send(
        self, session: requests.Session, method: str, path: str, status: int, **body: Any
    ) -> None:
        started = time.perf_counter()
        try:
            response = session.request(method, self.served.url + path, **body)
        except requests.RequestException as error:
            self.faults.append(repr(error))
            return
        self.milliseconds.append((time.perf_counter() - started) * 1000)
        if response.status_code != status:
            self.faults.append(f"{response.status_code} {response.text[:200]}")

    def view(self, number: int) -> None:
        """Keep a stream open, and open it again when it ends, as browsers do."""
        while not self.closed.is_set():
            try:
                self.follow(number)
            except requests.RequestException as error:
                if not self.closed.is_set():
                    self.faults.append(f"viewer: {error!r}")

    def follow(self, number: int) -> None:
        lines = self.deployed.stream(self.ids[number], after=self.last_steps[number])
        is_step = False
        for line in lines:
            if self.closed.is_set():
                return
            if line.startswith("event: "):
                is_step = line == "event: step"
            if is_step and line.startswith("data: "):
                step = int(line.removeprefix("data: "))
                if step <= self.last_steps[number]:
                    self.faults.append(f"viewer {number} received step {step} twice")
                self.last_steps[number] = step

    def read(self, number: int) -> None:
        """Read a conversation and the list of conversations every second."""
        session = self.session()
        paths = (f"/api/v1/memories/{self.ids[number]}/history/", "/api/v1/memories/?search=parcel")
        while not self.over.wait(1):
            for path in paths:
                self.send(session, "GET", path, 200)

    def missed(self) -> list[str]:
        """Return the viewers whose last step is not the last step of their conversation."""
        return [
            f"viewer {n} received step {last} of {steps}"
            for n, last in self.last_steps.items()
            if last != (steps := self.steps(self.ids[n]))
        ]

    def steps(self, memory_id: str) -> int:
        url = f"{self.served.url}/api/v1/memories/{memory_id}/"
        return int(self.served.api.get(url).json()["last_step"])

    def megabytes(self) -> float:
        """Return the resident memory of all workers."""
        return sum(Usage.of(worker).megabytes for worker in self.deployed.workers())

    def capacity(self) -> float:
        """Return the adds per second of CLIENTS clients that each wait for the response."""
        with self.running(*(lambda n=n: self.add(n) for n in range(CLIENTS))):
            time.sleep(WARM_UP_SECONDS / 2)
            before = len(self.milliseconds)
            time.sleep(WARM_UP_SECONDS)
            done = len(self.milliseconds) - before
        self.milliseconds.clear()
        return done / WARM_UP_SECONDS

    def soak(self, rate: float, minutes: float) -> list[float]:
        """Run the load for some minutes; return samples of the memory in megabytes."""
        samples = []
        work = [
            *(lambda n=n: self.add(n, rate / CLIENTS) for n in range(CLIENTS)),
            *(lambda n=n: self.read(n) for n in range(READERS)),
        ]
        with self.watched(), self.running(*work):
            end = time.monotonic() + minutes * 60
            while time.monotonic() < end:
                time.sleep(SAMPLE_SECONDS)
                samples.append(self.megabytes())
        return samples

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Run the viewers, and give them some seconds after the last add to receive it."""
        for n in range(VIEWERS):
            threading.Thread(target=self.view, args=(n,), daemon=True).start()
        yield
        end = time.monotonic() + DELIVERY_SECONDS
        while self.missed() and time.monotonic() < end:
            time.sleep(0.2)
        self.closed.set()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20)
    minutes = parser.parse_args().minutes
    with (
        tempfile.TemporaryDirectory() as folder,
        database(Path(folder)) as url,
        served_by(url, Path(folder)) as served,
    ):
        served.stop()
        deployed = Deployed(served)
        deployed.start()
        try:
            return report(Soak(deployed), minutes)
        finally:
            deployed.stop()


def report(soak: Soak, minutes: float) -> int:
    for memory_id in soak.ids:
        soak.served.create(memory_id, limit=50)
    capacity = soak.capacity()
    print(f"capacity            {capacity:,.0f} adds per second", flush=True)
    samples = soak.soak(capacity / 2, minutes)
    missed = soak.missed()
    percentiles = quantiles(soak.milliseconds, n=100)
    fifth = len(samples) // 5
    early, late = mean(samples[fifth : 2 * fifth]), mean(samples[-fifth:])
    verified = soak.served.manage("verify_memories", *soak.ids).strip().splitlines()[-1]
    print(f"half of it for      {minutes:g} minutes, with {VIEWERS} streams, {READERS} readers")
    print(f"requests            {len(soak.milliseconds):,}")
    print(f"failed              {len(soak.faults)} {soak.faults[:3] or ''}")
    print(
        f"milliseconds        {percentiles[49]:.0f} median, {percentiles[98]:.0f} 99th percentile"
    )
    print(f"missed by viewers   {len(missed)} {missed[:3] or ''}")
    print(f"memory              {early:.0f} MB early, {late:.0f} MB late: {late / early:.3f} times")
    print(f"replayed            {verified}")
    is_healthy = not soak.faults and not missed and late / early <= GROWTH_MAX
    print("healthy" if is_healthy else "NOT HEALTHY")
    return 0 if is_healthy else 1


if __name__ == "__main__":
    sys.exit(main())
