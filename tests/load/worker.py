"""A writer process that prints the acknowledged messages as JSON Lines.

    worker.py NUMBER COUNT IDS [URL TOKEN]

Adds COUNT messages, each with a text of its own, over REST where a URL is given, in-process
otherwise, with policy changes, clears and sets between them. Over REST a 503 is tried again after
the time that it names.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time

LIMITS = (5, 20, 50)


class InProcess:
    def __init__(self) -> None:
        os.environ["DJANGO_SETTINGS_MODULE"] = "inspector.project.settings"
        import django

        django.setup()
        from chatmemory import UserMessage, services
        from chatmemory.windows.policies import MessageWindow

        self.services, self.message, self.policy = services, UserMessage, MessageWindow

    def add(self, memory_id: str, text: str) -> int:
        (outcome,) = self.services.add(memory_id, [self.message(text)])
        return outcome.seq

    def change(self, memory_id: str, limit: int) -> None:
        self.services.change(memory_id, policy=self.policy(limit))

    def clear(self, memory_id: str) -> None:
        self.services.clear_messages(memory_id)

    def set(self, memory_id: str, text: str) -> None:
        self.services.set_messages(memory_id, [self.message(text)])


class OverRest:
    def __init__(self, url: str, token: str) -> None:
        import requests

        self.url, self.session = url, requests.Session()
        self.session.headers["Authorization"] = f"Bearer {token}"

    def send(self, method: str, path: str, body: object = None) -> dict:
        while True:
            answer = self.session.request(method, f"{self.url}/api/v1/memories/{path}", json=body)
            if answer.status_code != 503:
                assert answer.ok, answer.text
                return answer.json()
            time.sleep(float(answer.headers["Retry-After"]))

    def add(self, memory_id: str, text: str) -> int:
        answer = self.send("POST", f"{memory_id}/messages/", body_with(text))
        return answer["changes"][0]["seq"]

    def change(self, memory_id: str, limit: int) -> None:
        policy = {"kind": "message_window", "max_messages": limit}
        self.send("PATCH", f"{memory_id}/", {"policy": policy})

    def clear(self, memory_id: str) -> None:
        self.send("DELETE", f"{memory_id}/messages/")

    def set(self, memory_id: str, text: str) -> None:
        self.send("PUT", f"{memory_id}/messages/", body_with(text))


def body_with(text: str) -> dict:
    return {"messages": [{"role": "user", "content": text}], "format": "openai_chat"}


def main(number: int, count: int, ids: list[str], *address: str) -> None:
    writer = OverRest(*address) if address else InProcess()
    chance = random.Random(number)
    for n in range(count):
        memory_id, text = chance.choice(ids), f"writer {number}, message {n}"
        if n % 10 == 9:
            disturb = chance.choice(("change", "clear", "set"))
            value = {"change": (chance.choice(LIMITS),), "clear": (), "set": (f"set by {text}",)}
            getattr(writer, disturb)(memory_id, *value[disturb])
        seq = writer.add(memory_id, text)
        sys.stdout.write(json.dumps([memory_id, text, seq]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    number, count, ids, *address = sys.argv[1:]
    main(int(number), int(count), ids.split(","), *address)
