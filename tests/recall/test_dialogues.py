"""Small dialogues in which a user repeats something, or seems to; see dialogues/README.md.

controls.json has messages of real conversations that share words with earlier ones of their users,
and that nobody would call a repetition.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from pathlib import Path

import pytest

from chatmemory import (
    AiMessage,
    ChatMessage,
    MessageWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.recall.incidents import Incident, IncidentKind, incidents_under
from chatmemory.recall.lexicon import nameable
from chatmemory.recall.phrases import LANGUAGES
from chatmemory.recall.values import signs_of

FOLDER = Path(__file__).with_name("dialogues")
FILES = sorted(FOLDER.glob("*.json"))
CONTROLS = json.loads(Path(__file__).with_name("controls.json").read_text())


@dataclass
class Dialogue:
    """A dialogue of a file, with its messages and with the incidents under a small limit."""

    name: str
    value: str | None
    messages: list[ChatMessage]
    incidents: list[Incident]

    @property
    def repetitions(self) -> list[Incident]:
        """The incidents in which the user repeats the value in the last message."""
        return [
            each
            for each in self.incidents
            if each.again == len(self.messages)
            and each.kind is IncidentKind.USER_REPEATED
            and any(signs_of(fact.fact) in signs_of(self.value) for fact in each.facts)
        ]


def read(file):
    return json.loads(file.read_text(encoding="utf-8"))


@cache
def dialogues_of(file) -> list[Dialogue]:
    found = []
    for each in read(file):
        messages = messages_of(each)
        incidents = incidents_under(MessageWindow(4), messages)
        found.append(Dialogue(each["name"], each.get("value"), messages, incidents))
    return found


def messages_of(dialogue):
    """The messages of a dialogue: its texts in turn, and each tool as its call and its result."""
    speakers = cycle((UserMessage, AiMessage))
    messages = []
    for n, each in enumerate(dialogue["messages"]):
        if isinstance(each, str):
            messages.append(next(speakers)(each))
        else:
            arguments = json.dumps(each["arguments"], ensure_ascii=False)
            call = ToolExecutionRequest(str(n), each["tool"], arguments)
            result = ToolExecutionResultMessage(str(n), each["tool"], each["result"])
            messages += [AiMessage(tool_execution_requests=[call]), result]
    return messages


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_repetitions_are_found_and_red(file):
    repeated = [each for each in dialogues_of(file) if each.value is not None]
    found = {each.name: each.repetitions for each in repeated}
    missed = [name for name, incidents in found.items() if not incidents]
    not_red = [name for name in found if not any(each.is_forced for each in found[name])]
    assert len(missed) <= len(repeated) / 10, missed
    assert len(not_red) <= len(repeated) / 5, not_red


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_no_control_is_red(file):
    controls = [each for each in dialogues_of(file) if each.value is None]
    red = [each.name for each in controls if any(one.is_forced for one in each.incidents)]
    assert red == []


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_each_fact_of_an_incident_can_be_named_by_its_message(file):
    for dialogue in dialogues_of(file):
        for each in dialogue.incidents:
            facts = {fact.fact for fact in each.facts}
            assert facts <= set(nameable(dialogue.messages[each.again - 1])), dialogue.name


def test_a_phrase_that_opens_an_answer_can_be_named():
    assert "going" in nameable(UserMessage("It's going to be a round-trip. Can I get back to you?"))


def test_the_dialogues_have_all_languages_and_as_many_controls():
    dialogues = read(FOLDER / "written.json")
    assert {each["language"] for each in dialogues} == set(LANGUAGES)
    assert sum("value" in each for each in dialogues) == len(dialogues) / 2 == 30


def test_shared_words_of_real_conversations_are_not_red(airline_runs):
    assert len(CONTROLS) == 34
    for limit in (500, 1_000, 2_000):
        for run in {each["conversation"] for each in CONTROLS}:
            red = {each.again for each in airline_runs.incidents(run, limit) if each.is_forced}
            here = {each["again"] for each in CONTROLS if each["conversation"] == run}
            assert not red & here, (limit, run)
