"""Clients that add messages and summarize them without a pause, and checks of the stored rows."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

import requests

from ..serving import Served

CLIENTS = int(os.environ.get("LOAD_CLIENTS", "2"))
IDS = ("one", "two", "three")


class Load:
    """Clients that add messages, and summaries of them, until they are stopped. They repeat a
    request that has no response.
    """

    def __init__(self, served: Served, url: str = "", certificate: str = "") -> None:
        self.served = served
        self.url = url or served.url
        self.certificate = certificate
        self.seconds: list[float] = []
        self.acknowledged: list[tuple[str, str, int]] = []
        self.summaries = 0
        self.faults: list[str] = []
        self.sent_again: list[str] = []
        self.up = threading.Event()
        self.up.set()
        self.grew = threading.Condition()
        self.is_over = False
        self.threads = [threading.Thread(target=self.write, args=(n,)) for n in range(CLIENTS)]

    def __enter__(self) -> Load:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over = True
        self.up.set()
        for thread in self.threads:
            thread.join()
        assert not self.faults, self.faults[:3]

    def write(self, number: int) -> None:
        chance, session = random.Random(number), requests.Session()
        session.headers.update(self.served.api.headers)
        if self.certificate:  # of a proxy, which keeps connections
            session.trust_env, session.verify = False, self.certificate
            del session.headers["Connection"]
        n = 0
        while not self.is_over:
            n += 1
            self.say(session, chance.choice(IDS), f"client {number}, message {n}")
            if n % 4 == 0:
                self.summarize(session, chance.choice(IDS))

    def say(self, session: requests.Session, memory_id: str, text: str) -> None:
        body = {"messages": [{"role": "user", "content": text}], "format": "openai_chat"}
        if answer := self.send(session, f"{memory_id}/messages/", body):
            self.note(memory_id, text, answer["changes"][0]["seq"])

    def summarize(self, session: requests.Session, memory_id: str) -> None:
        body = {"summary": "They talked.", "keep_last": 3}
        if self.send(session, f"{memory_id}/compact/", body):
            self.summaries += 1

    def send(
        self, session: requests.Session, path: str, body: dict[str, object]
    ) -> dict[str, Any] | None:
        """Repeat a request until it is acknowledged, cannot be done, or the test is over."""
        url = f"{self.url}/api/v1/memories/{path}"
        headers = {"Idempotency-Key": uuid4().hex}
        while not self.is_over:
            self.up.wait()
            try:
                answer = session.post(url, json=body, headers=headers, timeout=30)
            except requests.RequestException as error:
                self.repeat(repr(error))
                continue
            self.seconds.append(answer.elapsed.total_seconds())
            if answer.ok:
                return answer.json()
            if answer.status_code in (502, 504):  # of a proxy
                self.repeat(f"{answer.status_code} {answer.text[:300]}")
                continue
            if answer.json()["title"] == "Not compactable":
                return None
            if answer.status_code not in (409, 503):
                self.faults.append(f"{answer.status_code} {answer.text[:300]}")
                return None
            self.repeat(f"{answer.status_code} {answer.text[:300]}")
        return None

    def repeat(self, reason: str) -> None:
        with self.grew:
            self.sent_again.append(reason)
            self.grew.notify_all()

    def note(self, memory_id: str, text: str, seq: int) -> None:
        with self.grew:
            self.acknowledged.append((memory_id, text, seq))
            self.grew.notify_all()

    def wait_for(self, more: int) -> None:
        """Wait until this many more messages are acknowledged."""
        with self.grew:
            target = len(self.acknowledged) + more
            assert self.grew.wait_for(lambda: len(self.acknowledged) >= target, timeout=120)

    def wait_for_repeat(self) -> None:
        """Wait until one more request had no response."""
        with self.grew:
            before = len(self.sent_again)
            assert self.grew.wait_for(lambda: len(self.sent_again) > before, timeout=120)


def check(served: Served, acknowledged: list[tuple[str, str, int]], ids: Iterable[str]) -> None:
    """Each acknowledged message is in its history once, at its number, and nothing else is, except
    lists that were set. A missing number belongs to a summary. Each conversation matches its
    replay.
    """
    stored = []
    for memory_id in ids:
        history = served.history(memory_id)
        numbers = [seq for seq, _ in history]
        assert numbers == sorted(set(numbers))
        missing = set(range(1, numbers[-1])) - set(numbers)
        assert {served.origin(memory_id, seq) for seq in missing} <= {"SYNTHETIC"}
        stored += [(memory_id, text, seq) for seq, text in history if not text.startswith("set by")]
    assert sorted(stored) == sorted(acknowledged)
    assert "verified: all match their replay" in served.manage("verify_memories", *ids)
