"""What changed in REST since the last release has a line in CHANGELOG.md.

With WRITE_SCHEMA=1, this test records the document of a release.
"""

from __future__ import annotations

import json
import os
import re
from hashlib import sha256
from pathlib import Path

from .test_schema import operations

RECORDED = Path(__file__).with_name("recorded_schema.json")
CHANGELOG = (Path(__file__).parents[2] / "CHANGELOG.md").read_text("utf-8")
SAID = {"description", "example", "examples", "summary", "externalDocs"}  # words and examples


def shape(value: object, is_named: bool = False) -> object:
    """A part of the document without its words: what clients are generated from. Members of
    `properties` are names, not keywords.
    """
    if isinstance(value, list):
        return [shape(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: shape(each, is_named=key == "properties")
        for key, each in value.items()
        if is_named or key not in SAID
    }


def digests(document) -> dict[str, str]:
    """The digest of each operation and each schema, by its name."""
    named = {**operations(document), **document["components"]["schemas"]}
    return {
        name: sha256(json.dumps(shape(each), sort_keys=True).encode()).hexdigest()[:16]
        for name, each in named.items()
    }


def named_in_changelog() -> set[str]:
    """The names in the lines of the next release that begin with REST."""
    unreleased = CHANGELOG.split("\n## ")[1]
    lines = re.findall(r"^- REST: (.*(?:\n  .*)*)", unreleased, re.MULTILINE)
    return set(re.findall(r"`([A-Za-z_]+)`", " ".join(lines)))


def test_each_change_of_the_schema_has_a_line_in_the_changelog(document):
    now = digests(document)
    if "WRITE_SCHEMA" in os.environ:
        RECORDED.write_text(f"{json.dumps(now, indent=1, sort_keys=True)}\n", "utf-8")
    before = json.loads(RECORDED.read_text("utf-8"))
    changed = {name for name in {*now, *before} if now.get(name) != before.get(name)}
    assert changed <= named_in_changelog(), sorted(changed - named_in_changelog())


def test_words_and_examples_are_no_change(document):
    part = {"properties": {"description": {"type": "string", "description": "a"}}, "example": 1}
    assert shape(part) == {"properties": {"description": {"type": "string"}}}
