"""Writes tests as text, for the button *Copy as test* on the inspector's pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from chatmemory.messages.texts import one_line
from chatmemory.patterns import declared_pattern
from chatmemory.windows.policies import Policy
from chatmemory.windows.written_policies import text_of_policy

FORMAT = "langchain4j"  # so that a message is kept whole
_PLAIN_VALUE = declared_pattern(r"[\w@%+=:,./-]+", re.ASCII)
_NO_NAME = declared_pattern(r"[^A-Za-z0-9]+")


def as_test(
    memory_id: str, policy: Policy | None, about: str, assertions: Iterable[str], why: str = ""
) -> str:
    """Return the text of a pytest test, with the command that exports its conversation.

    `about` becomes a part of the test's name. `assertions` are calls such as `holds("A-1182",
    at=45)`. `why` becomes a comment in the test, such as what happened in the stored conversation.
    """
    file = f"runs/{_NO_NAME.sub('-', memory_id).strip('-')[:60] or 'run'}.json"
    name = _NO_NAME.sub("_", f"{memory_id[:40]} {about}").strip("_").lower()[:80]
    lines = [
        f"# chatmemory export {_shell(memory_id)} --format {FORMAT} --output {file}",
        f"def test_{name}(chatmemory):",
        f"    run = chatmemory.transcript({_text(file)}, policy={_text(text_of_policy(policy))})",
        *([f"    # {one_line(why)}"] if why else []),
        *(f"    run.assert_{each}" for each in assertions),
    ]
    return "\n".join(lines) + "\n"


def holds(phrase: str, at: int | None = None) -> str:
    place = "" if at is None else f", at={at}"
    return f"holds({_text(phrase)}{place})"


def no_incident(kind: str) -> str:
    return f"no_incident(kind={_text(kind)})"


def accepted_by(providers: Iterable[str]) -> str:
    return f"accepted_by({', '.join(map(_text, providers))})"


def cost(at_most: float) -> str:
    return f"cost(at_most={at_most:.2f})"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False) if value.isprintable() else repr(value)


def _shell(value: str) -> str:
    """Return a text quoted as one word of a shell command."""
    if _PLAIN_VALUE.fullmatch(value) and not value.startswith("-"):
        return value
    quoted = one_line(value).replace("'", "'\"'\"'")
    return f"'{quoted}'"
