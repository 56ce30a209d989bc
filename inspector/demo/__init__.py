"""Example conversations for a first look at the inspector.

Each JSON file has an id, a policy, labels and a script: messages in the format of OpenAI's chat
completions, with changes of the policy between the messages.
"""

from __future__ import annotations

import json
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import groupby

from chatmemory import MemoryExists, policy_from_dict, services
from chatmemory.formats import parse_messages
from chatmemory.messages.json_values import JsonMap

ACTOR = "demo"


def ids() -> frozenset[str]:
    """Return the ids of the example conversations, stored or not."""
    return frozenset(file.name.removesuffix(".json") for file in _files())


def load() -> list[str]:
    """Store the example conversations that are not stored yet, with their incidents, and return the
    new ids.
    """
    stored = []
    for file in _files():
        demo = json.loads(file.read_text("utf-8"))
        try:
            with services.atomic():
                _load(demo)
        except MemoryExists:
            continue
        services.keep(demo["id"])
        stored.append(demo["id"])
    return stored


def _files() -> list[Traversable]:
    files = (file for file in resources.files(__name__).iterdir() if file.name.endswith(".json"))
    return sorted(files, key=lambda file: file.name)


def _load(demo: JsonMap) -> None:
    services.create(demo["id"], policy_from_dict(demo["policy"]), demo["labels"], ACTOR)
    for is_policy, items in groupby(demo["script"], key=lambda item: "policy" in item):
        if is_policy:
            for item in items:
                policy = policy_from_dict(item["policy"])
                services.change(demo["id"], policy=policy, actor=ACTOR)
        else:
            turns = parse_messages(list(items), "openai_chat").messages
            services.add(demo["id"], turns, actor=ACTOR)
