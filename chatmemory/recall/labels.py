"""Finds labels: what a text calls its terms, such as `flight_number` for HAT001.

A label is the key of a term in JSON, or the word before a colon or equals sign, as in `order:
A-1182`. No other words are labels, so lists of terms never contain sentences of users or tools.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from chatmemory.messages.json_values import JsonValue
from chatmemory.messages.message import ChatMessage
from chatmemory.patterns import declared_pattern
from chatmemory.recall.facts import PUNCTUATION, json_of, texts_with_facts

LONGEST_LABEL = 30  # characters
SHORT = 80  # characters of a text that is as good as one value
READ = 20_000  # characters in which a term of several words is looked for
_BEFORE = 50  # characters before a term
_RUN = declared_pattern(r"(?<![A-Za-z0-9._@/+\-])[A-Za-z0-9._@/+\-]+")
_WORD = r"(?<![A-Za-z0-9_\-])([A-Za-z_][A-Za-z0-9_\-]{0,29}+)"
_NAMED = declared_pattern(rf"{_WORD}[\"'`*]{{0,2}}\s?[:=]\s?[\"'`*(\[]{{0,3}}\Z", most=_BEFORE)
_KEY = declared_pattern(r"[A-Za-z_][A-Za-z0-9_\-]{0,29}")


def labels_in(message: ChatMessage, terms: Collection[str]) -> dict[str, str]:
    """Return, for each of these terms, the label that a message gives to it. A term without a label
    is left out.
    """
    found = _Labels(terms)
    for text in texts_with_facts(message):
        value = json_of(text)
        if isinstance(value, dict | list):
            found.read_json(value)
        else:
            found.read(text)
    return {term: label for term, label in found.labels.items() if label}


def lines_of(terms: Iterable[tuple[str, str]]) -> list[str]:
    """Return terms as lines of text, one line for each label, such as `order: A-1182, A-1183`. The
    lines are in the order in which their labels first occur in `terms`.

    `terms` are pairs of a label and a term. Terms with the label "" share one line, which has no
    label.
    """
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for label, term in terms:
        groups[label].append(term)
    return [
        f"{label}: {', '.join(each)}" if label else ", ".join(each)
        for label, each in groups.items()
    ]


class _Labels:
    """The labels found so far, by term; "" for a term that was only found without a label."""

    def __init__(self, terms: Collection[str]) -> None:
        self._missing = set(terms)
        self._of_words = {each for each in terms if not _RUN.fullmatch(each)}
        self.labels: dict[str, str] = {}

    def read_json(self, value: JsonValue) -> None:
        waiting: list[tuple[str, JsonValue]] = [("", value)]
        for key, each in waiting:  # it grows meanwhile
            if isinstance(each, Mapping):
                for name, one in each.items():
                    self._keep(name, key)
                    waiting.append((key if name in self.labels else name, one))
            elif isinstance(each, list):
                waiting += ((key, one) for one in each)
            elif isinstance(each, str):
                if each in self._missing:
                    self._keep(each, key)
                else:
                    self.read(each, key)
            elif each is not None:
                self._keep(str(each), key)

    def read(self, text: str, key: str = "") -> None:
        """Look for terms in a text. `key` is the JSON key of the text, if it has one."""
        if not self._missing:
            return
        key = key if len(text) <= SHORT else ""
        for run in _RUN.finditer(text):
            term = run[0].strip(PUNCTUATION)
            if term in self._missing:
                start = run.start() + run[0].index(term)
                self._keep(term, self._before(text, start) or key)
        for term in self._of_words & self._missing:
            start = text.find(term, 0, READ)
            if start >= 0:
                self._keep(term, self._before(text, start) or key)

    def _before(self, text: str, start: int) -> str:
        named = _NAMED.search(text[max(0, start - _BEFORE) : start])
        return named[1] if named else ""

    def _keep(self, term: str, label: str) -> None:
        """Store the label of a term. The first label counts."""
        if term in self._missing:
            label = label if _KEY.fullmatch(label) else ""
            self.labels[term] = label
            if label:
                self._missing.discard(term)
