"""The sentences of the product: `python -m benchmarks.sentences [FOLDER]` lists them, one a line.

They are read from the source: texts and labels of templates, strings of Python with a space in them
(docstrings, SQL and patterns left out), and texts of TOML files. With a second folder, such as a
checkout of an earlier commit, the command counts what changed between the two.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

FOLDERS = ("chatmemory", "inspector", "pytest_chatmemory", "templates")
LABELS = ("aria-label", "title", "placeholder", "alt")
_TAG = re.compile(r"{#.*?#}|{%-?\s*comment.*?endcomment\s*-?%}", re.DOTALL)
_BLOCK = re.compile(r"{%(.*?)%}", re.DOTALL)
_QUOTED = re.compile(r"\b(?:label|what|on|hint|title|placeholder)=\"([^\"]+)\"")
_VARIABLE = re.compile(r"{{.*?}}", re.DOTALL)
_SQL = re.compile(r"\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER|DROP|PRAGMA)\b")
_NOT_WORDS = re.compile(r"\\[bdswWSD]|\(\?|\[\^|^[\W\d_]*$")


class Sentence(NamedTuple):
    """A text of the product and the file that has it."""

    file: str
    text: str


def sentences(root: Path) -> Iterator[Sentence]:
    """Yield all sentences of a checkout, by file, in the order in which they stand there."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if "migrations" in path.parts or path.suffix not in READERS:
                continue
            name = path.relative_to(root).as_posix()
            for text in READERS[path.suffix](path.read_text("utf-8")):
                if shown := " ".join(text.split()):
                    yield Sentence(name, shown)


class _Page(HTMLParser):
    """Collects the texts and labels of a template, variables as `{}`."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._is_code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_code += tag in ("script", "style")
        self.texts += [value for name, value in attrs if name in LABELS and value]

    def handle_endtag(self, tag: str) -> None:
        self._is_code -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._is_code:
            self.texts.append(data)


def _of_template(source: str) -> Iterator[str]:
    source = _TAG.sub(" ", source)
    for block in _BLOCK.findall(source):
        yield from _QUOTED.findall(block)
    page = _Page()
    page.feed(_VARIABLE.sub("{}", _BLOCK.sub(" ", source)))
    page.close()
    yield from (text for text in page.texts if re.search(r"[^\W\d_]{2}", text))


def _of_python(source: str) -> Iterator[str]:
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = {id(each.value) for each in nodes if isinstance(each, ast.Expr)}
    formatted = [each.values for each in nodes if isinstance(each, ast.JoinedStr)]
    parts = {id(part) for values in formatted for part in values}
    for values in formatted:
        yield from _if_words("".join(_text(part) or "{}" for part in values))
    for node in nodes:
        if id(node) not in docstrings and id(node) not in parts:
            yield from _if_words(_text(node))


def _text(node: ast.AST) -> str:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return node.value if is_text else ""  # type: ignore[attr-defined]  # asked above


def _if_words(text: str) -> Iterator[str]:
    if " " in text.strip() and not _SQL.search(text) and not _NOT_WORDS.search(text):
        yield text


def _of_toml(source: str) -> Iterator[str]:
    yield from _strings(tomllib.loads(source))


def _strings(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for each in value.values():
                yield from _strings(each)
        case list():
            for each in value:
                yield from _strings(each)
        case str():
            yield from _if_words(value)


READERS = {".html": _of_template, ".txt": _of_template, ".py": _of_python, ".toml": _of_toml}


def main(folders: list[str]) -> None:
    now, *before = [Counter(sentences(Path(each))) for each in folders or ["."]]
    if not before:
        for each in now:
            print(f"{each.file}: {each.text}")
        return
    new, gone = now - before[0], before[0] - now
    print(f"{before[0].total():,} before, {now.total():,} now")
    print(f"{gone.total():,} changed or gone, {new.total():,} changed or new")


if __name__ == "__main__":
    main(sys.argv[1:])
