"""Ready-made conversations, written for this project: what a first look at the inspector shows.

A file holds an id, a policy, labels and a script: messages in the shape of OpenAI's chat
completions, and changes of policy between them.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from django.db import transaction

from chatmemory import services
from chatmemory.core.exceptions import MemoryExists
from chatmemory.core.policies import policy_from_dict
from chatmemory.formats import parse_messages

ACTOR = "demo"


def load() -> list[str]:
    """Store the demo conversations that are not there yet; their ids."""
    stored = []
    for file in sorted(resources.files(__name__).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".json"):
            demo = json.loads(file.read_text("utf-8"))
            try:
                _load(demo)
            except MemoryExists:
                continue
            stored.append(demo["id"])
    return stored


@transaction.atomic
def _load(demo: dict[str, Any]) -> None:
    services.create(demo["id"], policy_from_dict(demo["policy"]), demo["labels"], ACTOR)
    for policy, turns in _scenes(demo["script"]):
        if policy:
            services.change(demo["id"], policy=policy_from_dict(policy), actor=ACTOR)
        services.add(demo["id"], parse_messages(turns, "openai_chat").messages, actor=ACTOR)


def _scenes(script: list[dict[str, Any]]) -> list[tuple[dict[str, Any] | None, list[Any]]]:
    """The script cut at its changes of policy: (new policy, the messages that follow)."""
    scenes: list[tuple[dict[str, Any] | None, list[Any]]] = [(None, [])]
    for item in script:
        if "policy" in item:
            scenes.append((item["policy"], []))
        else:
            scenes[-1][1].append(item)
    return scenes
