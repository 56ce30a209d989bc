"""Small dialogues in which a user repeats something, or seems to; see dialogues/README.md.

controls.json has messages of real conversations that share words with earlier ones of their users,
and that nobody would call a repetition.
"""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path

import pytest

from chatmemory import (
    AiMessage,
    MessageWindow,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.formats import read_transcripts
from chatmemory.recall.incidents import IncidentKind, incidents_under
from chatmemory.recall.lexicon import nameable
from chatmemory.recall.phrases import LANGUAGES
from chatmemory.recall.values import signs_of

FOLDER = Path(__file__).with_name("dialogues")
FILES = sorted(FOLDER.glob("*.json"))
CONTROLS = json.loads(Path(__file__).with_name("controls.json").read_text())


def read(file):
    return json.loads(file.read_text(encoding="utf-8"))


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


def incidents_in(dialogue):
    return incidents_under(MessageWindow(4), messages_of(dialogue))


def repetitions_of(dialogue):
    """The incidents in which the user repeats the value of a dialogue in its last message."""
    return [
        each
        for each in incidents_in(dialogue)
        if each.again == len(messages_of(dialogue))
        and each.kind is IncidentKind.USER_REPEATED
        and any(signs_of(fact.fact) in signs_of(dialogue["value"]) for fact in each.facts)
    ]


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_repetitions_are_found_and_red(file):
    repeated = [each for each in read(file) if "value" in each]
    found = {each["name"]: repetitions_of(each) for each in repeated}
    missed = [name for name, incidents in found.items() if not incidents]
    not_red = [name for name in found if not any(each.is_forced for each in found[name])]
    assert len(missed) <= len(repeated) / 10, missed
    assert len(not_red) <= len(repeated) / 5, not_red


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_no_control_is_red(file):
    controls = [each for each in read(file) if "value" not in each]
    red = [each["name"] for each in controls if any(one.is_forced for one in incidents_in(each))]
    assert red == []


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_each_fact_of_an_incident_can_be_named_by_its_message(file):
    for dialogue in read(file):
        messages = messages_of(dialogue)
        for each in incidents_in(dialogue):
            facts = {fact.fact for fact in each.facts}
            assert facts <= set(nameable(messages[each.again - 1])), dialogue["name"]


def test_a_phrase_that_opens_an_answer_can_be_named():
    assert "going" in nameable(UserMessage("It's going to be a round-trip. Can I get back to you?"))


def test_the_dialogues_have_all_languages_and_as_many_controls():
    dialogues = read(FOLDER / "written.json")
    assert {each["language"] for each in dialogues} == set(LANGUAGES)
    assert sum("value" in each for each in dialogues) == len(dialogues) / 2 == 30


def test_shared_words_of_real_conversations_are_not_red(data_file):
    content = data_file("tau_bench_airline.openai_chat.json").read_bytes()
    runs = [run.messages for run in read_transcripts(content).transcripts]
    assert len(CONTROLS) == 34
    for limit in (500, 1_000, 2_000):
        for run in {each["conversation"] for each in CONTROLS}:
            red = {
                each.again
                for each in incidents_under(TokenWindow(limit), runs[run])
                if each.is_forced
            }
            here = {each["again"] for each in CONTROLS if each["conversation"] == run}
            assert not red & here, (limit, run)
