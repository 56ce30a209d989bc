"""Mutated files of every format: no reader fails, and no words are lost without a report.

A file is a sample in which records, properties and values are removed, moved, renamed, repeated or
exchanged, or whose text is cut. The words that people, models and tools said in it are stored, or
the report names something.
"""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import Reading, read_transcripts
from chatmemory.formats.words import strings_in

from ..formats.test_account import NAMED, SAMPLES, UNHEARD, written
from ..formats.test_nothing_is_lost import stored_text
from .budget import search, settings_of

FILES = [(name, *sample) for name, samples in SAMPLES.items() for sample in samples]
NAMES = ("type", "role", "content", "text", "parts", "message", "id", "x_note", "payload", "value")
VALUES = (None, True, 7, -1, "", "zzzz", [], {}, [[]], [{}], {"type": "text"}, "2026-05-01")


def copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


def holders(value: Any) -> list[Any]:
    """Return all lists and objects in a JSON value that hold something."""
    found, waiting = [], [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list) and each:
            found.append(each)
            waiting += each.values() if isinstance(each, dict) else each
    return found


def mutated(value: Any, rng: random.Random) -> None:
    """Change one thing in a value."""
    holder = rng.choice(holders(value))
    key = rng.choice([*holder]) if isinstance(holder, dict) else rng.randrange(len(holder))
    match rng.randrange(6):
        case 0:
            del holder[key]
        case 1:
            holder[key] = copied(rng.choice(VALUES))
        case 2 if isinstance(holder, dict):
            holder[rng.choice(NAMES)] = copied(holder.pop(key))
        case 3 if isinstance(holder, list):
            holder.insert(rng.randrange(len(holder) + 1), copied(holder[key]))
        case 4:
            other = rng.choice(holders(value))
            there = rng.choice([*other]) if isinstance(other, dict) else rng.randrange(len(other))
            holder[key] = copied(other[there])
        case _ if isinstance(holder, list):
            rng.shuffle(holder)


def text_of_a_file(seed: int) -> str:
    """Return the text of a mutated file."""
    rng = random.Random(seed)
    _, value, are_lines = rng.choice(FILES)
    value = json.loads(json.dumps(value))
    for _ in range(rng.randrange(1, 4)):
        if holders(value):
            mutated(value, rng)
    text = written(value, are_lines and isinstance(value, list))
    if rng.random() < 0.15:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(["", "\0", "{", "]", '"', "\n", "\ufeff"]) + text[at + 3 :]
    return text


def read(text: str) -> tuple[Reading | None, list[str]]:
    """Return what was read, and why anything was refused."""
    try:
        reading = read_transcripts(text)
    except UnreadableTranscript as error:
        return None, [str(error)]
    return reading, [each.why for each in reading.refused]


def test_a_mutated_file_is_read_or_refused():
    @settings_of(400)
    @given(st.integers(0, 2**32))
    def any_file(seed: int) -> None:
        text = text_of_a_file(seed)
        _, refused = read(text)
        assert not any("fault of chatmemory" in why for why in refused), text

    search(any_file)


def test_words_in_a_mutated_file_are_stored_or_something_is_named():
    @settings_of(200)
    @given(st.integers(0, 2**32))
    def any_file(seed: int) -> None:
        text = text_of_a_file(seed)
        said = f"{UNHEARD} {seed}"
        try:
            value = json.loads(text)
        except ValueError:
            return
        rng = random.Random(seed)
        texts = [
            (each, name)
            for each in holders(value)
            if isinstance(each, dict)
            for name in ("text", "content", "value", "thinking", "output", "arguments")
            if isinstance(each.get(name), str) and len(each[name]) > 3
        ]
        if not texts:
            return
        holder, name = rng.choice(texts)
        holder[name] = said
        places = [path for path, text in strings_in(value) if text == said]
        if not places or any(name in places[0] for name in ("config", "values")):
            return  # it is state of a graph, beside what people said
        reading, refused = read(json.dumps(value))
        if reading is None or refused:
            return
        losses = [loss.what for each in reading.transcripts for loss in each.losses]
        assert said in stored_text(reading) or any(
            words in what for what in losses for words in NAMED
        ), json.dumps(value)

    search(any_file)
