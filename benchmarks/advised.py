"""A fleet of 60 conversations of four kinds, for which different advice is right.

    python -m benchmarks.advised FOLDER    # writes one file for each, as OpenAI's messages

- `desk-`: order numbers that are said once and needed until the end: any limit loses some.
- `agent-`: long turns, whose facts are needed only shortly afterwards: a window in blocks saves.
- `chat-`: talk in which nothing is needed again.
- `lean-`: the same as the agents, with the limit that is right for them.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from chatmemory import AiMessage, ChatMessage, SystemMessage, TokenWindow, UserMessage, text_of
from chatmemory.windows.policies import Policy

EACH = 15
WORDS = ("the", "parcel", "came", "late", "and", "nobody", "knew", "where", "it", "was", "kept")
SYSTEM = SystemMessage("You help people with their orders. Be brief.")
POLICIES: dict[str, Policy] = {
    "desk": TokenWindow(300),
    "agent": TokenWindow(4_000),
    "chat": TokenWindow(800),
    "lean": TokenWindow(350),
}


class Made(NamedTuple):
    """A conversation of the fleet."""

    id: str
    policy: Policy
    messages: list[ChatMessage]


def fleet(each: int = EACH) -> Iterator[Made]:
    """Yield the conversations, the same ones each time."""
    for kind, policy in POLICIES.items():
        for n in range(each):
            chance = random.Random(f"{kind}-{n}")
            yield Made(f"{kind}-{n:02}", policy, [SYSTEM, *_SAYING[kind](chance)])


def huge(kind: str, messages: int = 10_000) -> Made:
    """Return a very long conversation of a kind, which stands apart from the others."""
    chance, said = random.Random(kind), [SYSTEM, *_agent(random.Random(kind), 3)]
    while len(said) < messages:
        said += _desk(chance, 40)
    return Made(f"{kind}-huge", POLICIES[kind], said[:messages])


def _words(chance: random.Random, number: int) -> str:
    return " ".join(chance.choices(WORDS, k=number))


def _desk(chance: random.Random, turns: int = 20) -> Iterator[ChatMessage]:
    """Yield a talk about twelve orders, of which the assistant names one in most turns."""
    orders = [f"ORD-{chance.randrange(10_000, 99_999)}" for _ in range(12)]
    yield UserMessage(f"I ordered {', '.join(orders)}.")
    yield AiMessage("Thank you. One moment, please.")
    for turn in range(turns):
        named = orders[turn * len(orders) // turns]
        yield UserMessage(_words(chance, chance.randrange(12, 24)))
        yield AiMessage(f"{_words(chance, 10)} {named}.")


def _agent(chance: random.Random, turns: int = 24) -> Iterator[ChatMessage]:
    """Yield long turns; each answer names what was said in its own turn or the one before."""
    last = ""
    for _ in range(turns):
        code = f"RUN-{chance.randrange(10_000, 99_999)}"
        yield UserMessage(f"{code} failed: {_words(chance, chance.randrange(150, 250))}")
        yield AiMessage(f"{code}{' and ' + last if last else ''}: {_words(chance, 60)}")
        last = code


def _chat(chance: random.Random) -> Iterator[ChatMessage]:
    for _ in range(10):
        yield UserMessage(_words(chance, chance.randrange(20, 40)))
        yield AiMessage(_words(chance, chance.randrange(20, 40)))


_SAYING = {"desk": _desk, "agent": _agent, "chat": _chat, "lean": _agent}


def write(folder: Path, each_kind: int = EACH) -> None:
    """Write one file for each conversation."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in fleet(each_kind):
        told = [{"role": _role(message), "content": _text(message)} for message in each.messages]
        (folder / f"{each.id}.json").write_text(json.dumps(told, indent=1) + "\n")


def _role(message: ChatMessage) -> str:
    return {"SYSTEM": "system", "USER": "user", "AI": "assistant"}[message.type.value]


def _text(message: ChatMessage) -> str:
    return text_of(message)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(Path(sys.argv[1]))
