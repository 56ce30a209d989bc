"""The extensions of a made-up project: a policy, an estimator and formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chatmemory import MessageWindow, SystemMessage, UnknownEstimator, UserMessage
from chatmemory.formats import Format, RawTranscript, Reader, Writer


@dataclass(frozen=True)
class HalfWindow(MessageWindow):
    """A policy in which every message counts twice."""

    kind: ClassVar[str] = "half_window"
    label: ClassVar[str] = "Half window"

    def cost(self, message):
        return 2

    def cost_of(self, totals):
        return None


class WordEstimator:
    """An estimator by words: one token each, or the number in its name (`words:3`)."""

    name = "words"

    def __init__(self, name="words"):
        per_word = name.partition(":")[2] or "1"
        if not per_word.isdigit():
            raise UnknownEstimator(f"{per_word!r} is no number of tokens per word")
        self.per_word = int(per_word)

    def estimate_token_count_in_text(self, text):
        return self.per_word * len(text.split())

    def estimate_token_count_in_message(self, message):
        return self.estimate_token_count_in_text(message.contents[0].text)

    def estimate_token_count_in_messages(self, messages):
        return 1 + sum(map(self.estimate_token_count_in_message, messages))


class LineReader(Reader):
    def read(self, turn):
        yield UserMessage(turn["said"])


class LineWriter(Writer):
    def write(self, message):
        yield {"said": message.contents[0].text}


LINES = Format(
    "lines",
    find=lambda value: (
        RawTranscript(None, value["lines"])
        if isinstance(value, dict) and "lines" in value
        else None
    ),
    parse=lambda turns, after: LineReader().read_all(turns, after),
    render=lambda messages: LineWriter().write_each(messages),
)


class ObjectReader(Reader):
    def read(self, turn):
        yield SystemMessage(turn["about"]) if "about" in turn else UserMessage(turn["said"])


class ObjectWriter(Writer):
    within = "lines"
    beside = ("about",)

    def write(self, message):
        if isinstance(message, SystemMessage):
            yield {"about": message.text}
        else:
            yield {"said": message.contents[0].text}


def _object(value):
    if not isinstance(value, dict) or "lines" not in value:
        return None
    about = [{"about": value["about"]}] if "about" in value else []
    return RawTranscript(None, [*about, *value["lines"]])


OBJECT = Format(
    "object",
    find=_object,
    parse=lambda turns, after: ObjectReader().read_all(turns, after),
    render=lambda messages: ObjectWriter().write_each(messages),
)
