"""No sentence of the product has a phrase that its guide replaced."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from benchmarks.sentences import sentences

ROOT = Path(__file__).parents[2]
REPLACED = tomllib.loads(Path(__file__).with_name("replaced.toml").read_text("utf-8"))["replaced"]
# Lessons quote a person who learns; what is said in conversations is not the product's.
OF_OTHERS = ("inspector/rooms/lessons/files/", "chatmemory/recall/phrases.toml")
COLUMNS = "models.py"  # no page shows their descriptions
_CODE = re.compile(r"```.*?```|`[^`\n]*`|^    .*$", re.DOTALL | re.MULTILINE)


def texts() -> Iterator[tuple[str, str]]:
    """Yield the file and the text of all pages, helps, errors and documents."""
    for each in sentences(ROOT):
        if not each.file.startswith(OF_OTHERS) and not each.file.endswith(COLUMNS):
            yield each.file, each.text
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]:
        if "adr" not in path.parts:
            text = _CODE.sub(" ", path.read_text("utf-8"))
            yield path.relative_to(ROOT).as_posix(), " ".join(text.split())


def test_no_replaced_phrase_is_left():
    pattern = re.compile("|".join(rf"\b{re.escape(each)}" for each in REPLACED), re.IGNORECASE)
    found = [f"{file}: {hit[0]}" for file, text in texts() for hit in pattern.finditer(text)]
    assert "\n".join(found) == ""
