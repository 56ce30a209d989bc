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
from chatmemory.formats import FORMATS, Reading, read_transcripts
from chatmemory.formats.words import strings_in

from ..formats.test_account import NAMED, SAMPLES, UNHEARD, written
from ..formats.test_nothing_is_lost import stored_text
from .budget import search, settings_of

FILES = [(name, *sample) for name, samples in SAMPLES.items() for sample in samples]
NAMES = ("type", "role", "content", "text", "parts", "message", "id", "x_note", "payload", "value")
SAYING = ("text", "content", "value", "thinking", "output", "arguments", "message", "prompt")
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


def mutated_file(seed: int) -> tuple[Any, bool]:
    """Return the value of a mutated file, and whether it is lines."""
    rng = random.Random(seed)
    _, value, are_lines = rng.choice(FILES)
    value = copied(value)
    for _ in range(rng.randrange(1, 4)):
        if holders(value):
            mutated(value, rng)
    return value, are_lines and isinstance(value, list)


def text_of_a_file(seed: int) -> str:
    """Return the text of a mutated file, which may be damaged."""
    text, rng = written(*mutated_file(seed)), random.Random(seed)
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


def words_put_in(value: Any, seed: int) -> str | None:
    """Put words in the place of a text, and return them; None if no text may have words."""
    texts = [
        (each, name)
        for each in holders(value)
        if isinstance(each, dict)
        for name in SAYING
        if isinstance(each.get(name), str) and len(each[name]) > 3
    ]
    if not texts:
        return None
    said = f"{UNHEARD} {seed}"
    holder, name = random.Random(seed).choice(texts)
    holder[name] = said
    return said if any(text == said for _, text in strings_in(value)) else None


def is_silent(value: Any, said: str, format: str) -> bool:
    """Return whether words are in a record of a type that has none."""
    kinds = FORMATS[format].kinds
    if kinds is None or not isinstance(value, list):
        return False
    return any(said in json.dumps(each) and kinds.of(each) in kinds.silent for each in value)


# What a loss says of all that is in a property, and the property
NAMED_WHOLE = {
    "files beside a question": "variableData",
    "the definitions of the tools": "tools",
}


def are_named(said: str, value: Any, reading: Reading) -> bool:
    """Return whether a loss says that words somewhere in the file are lost, or names the property
    in which these words are.
    """
    losses = [loss.what for each in reading.transcripts for loss in each.losses]
    if any(words in what for what in losses for words in NAMED):
        return True
    wholes = [name for start, name in NAMED_WHOLE.items() if any(start in what for what in losses)]
    objects = [each for each in holders(value) if isinstance(each, dict)]
    return any(said in json.dumps(each.get(name)) for each in objects for name in wholes)


def test_words_in_a_mutated_file_are_stored_or_named():
    @settings_of(400)
    @given(st.integers(0, 2**32))
    def any_file(seed: int) -> None:
        value, are_lines = mutated_file(seed)
        said = words_put_in(value, seed)
        reading, refused = read(written(value, are_lines)) if said else (None, [])
        if said is None or reading is None or refused or is_silent(value, said, reading.format):
            return
        is_known = are_named(said, value, reading) or said in stored_text(reading)
        assert is_known, written(value, are_lines)

    search(any_file)
