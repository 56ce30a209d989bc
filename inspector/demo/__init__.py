"""Example conversations for a first look at the inspector.

Each JSON file has an id, a policy, labels and a script: messages in the format of OpenAI's chat
completions, with changes of the policy between them.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from chatmemory import MemoryExists, policy_from_dict, services
from chatmemory.formats import parse_messages

ACTOR = "demo"


def load() -> list[str]:
    """Store the example conversations that do not exist yet, with their incidents, and return
    their ids.
    """
    stored = []
    for file in sorted(resources.files(__name__).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".json"):
            demo = json.loads(file.read_text("utf-8"))
            try:
                with services.atomic():
                    _load(demo)
            except MemoryExists:
                continue
            services.current_incidents(demo["id"])
            stored.append(demo["id"])
    return stored


def _load(demo: dict[str, Any]) -> None:
    services.create(demo["id"], policy_from_dict(demo["policy"]), demo["labels"], ACTOR)
    for policy, turns in _scenes(demo["script"]):
        if policy:
            services.change(demo["id"], policy=policy_from_dict(policy), actor=ACTOR)
        services.add(demo["id"], parse_messages(turns, "openai_chat").messages, actor=ACTOR)


def _scenes(script: list[dict[str, Any]]) -> list[tuple[dict[str, Any] | None, list[Any]]]:
    """Split a script into pairs of a new policy (None at the start) and its messages."""
    scenes: list[tuple[dict[str, Any] | None, list[Any]]] = [(None, [])]
    for item in script:
        if "policy" in item:
            scenes.append((item["policy"], []))
        else:
            scenes[-1][1].append(item)
    return scenes
