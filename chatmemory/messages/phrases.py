"""Phrases: their places in texts, and their speakers.

Case is ignored, as in a search. Only the beginning of a long text is searched, here and by
databases.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import accumulate

from chatmemory.messages.message import MessageType

SEARCHED = 100_000  # characters of a text that are searched


def folded(text: str) -> str:
    """Return a text without differences of case. It can be longer: "İ" becomes two letters."""
    return text.lower().replace("ς", "σ")


def has_phrase(text: str, phrase: str) -> bool:
    return folded(phrase) in folded(text[:SEARCHED])


def phrase_place(text: str, phrase: str) -> slice | None:
    """Return the first place of a phrase in a text, or None."""
    text = text[:SEARCHED]
    whole, sought = folded(text), folded(phrase)
    start = whole.find(sought)
    if start < 0:
        return None
    if len(whole) == len(text):
        return slice(start, start + len(sought))
    ends = list(accumulate(len(folded(character)) for character in text))
    first = next(n for n, end in enumerate(ends) if end > start)
    last = next(n for n, end in enumerate(ends) if end >= start + len(sought))
    return slice(first, last + 1)


class Speaker(IntEnum):
    """The speaker of a message, which separates the statements of users and tools from repetitions
    and questions.

    Speakers whose words count most as knowledge come first. Only the role decides: a user's
    question also counts as a statement.
    """

    OTHERS = 0
    ASSISTANT = 1
    SYSTEM = 2
    CLIENT = 3


_SPEAKERS = {
    MessageType.USER: Speaker.OTHERS,
    MessageType.TOOL_EXECUTION_RESULT: Speaker.OTHERS,
    MessageType.CUSTOM: Speaker.ASSISTANT,
    MessageType.AI: Speaker.ASSISTANT,
    MessageType.SYSTEM: Speaker.SYSTEM,
}


def speaker_of(type: MessageType, is_injected: bool = False) -> Speaker:
    """Return the speaker of a message, CLIENT for a synthetic one that was put into the window."""
    return Speaker.CLIENT if is_injected else _SPEAKERS[type]
