"""A rule for tests: a shop's provider objects to messages that shout."""

from __future__ import annotations

from collections.abc import Iterator

from chatmemory import UserMessage
from chatmemory.lint import since
from chatmemory.lint.rules import Fault, Law, Rule
from chatmemory.lint.turns import OPENAI, ProviderWindow


def shouting(sent: ProviderWindow) -> Iterator[Fault]:
    for turn in sent.turns:
        if turn.message is not None and turn.message.text.isupper():
            yield Fault([turn], "it shouts")


RULE = Rule(
    shouting,
    "A message that shouts",
    {OPENAI: Law("refused", "messages.{at}: please be calm", "https://shop.example/rules")},
    bad=[UserMessage("WHERE IS IT?")],
    good=[UserMessage("Where is it?")],
    began="a message came that shouts",
    since=since.when_it_came,
)
