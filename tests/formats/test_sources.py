"""The tables of docs/formats.md about programs: what is read of their files, and which are refused.

If formats have changed on purpose, run this file with WRITE_FORMATS=1 and read the diff.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from chatmemory import AiMessage, SystemMessage, ToolExecutionResultMessage, UserMessage
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import Reading, read_transcripts, readable_formats, two_way_formats
from chatmemory.formats.format import NOT_KNOWN
from chatmemory.formats.known import KNOWN, KNOWN_BEGINNINGS
from chatmemory.messages.contents import TextContent

from .test_account import FIELD, SAMPLES, written
from .test_every_format import check_page


class Source(NamedTuple):
    """A program whose files are read. `version` is the newest one whose files are known, and
    `source` is where their shape comes from. The samples are written for this project.
    """

    program: str
    version: str
    source: str


SOURCES = {
    "call_log": Source("logs and batches of OpenAI and Anthropic", NOT_KNOWN, "API references"),
    "chatgpt": Source("ChatGPT, export", NOT_KNOWN, "public descriptions of the export"),
    "claude_ai": Source("Claude.ai, export", NOT_KNOWN, "public descriptions of the export"),
    "claude_code": Source("Claude Code", "2.1.42", "13 captured sessions, and reported shapes"),
    "codex": Source("Codex CLI", "0.128.0", "openai/codex, and reported shapes"),
    "copilot_chat": Source("GitHub Copilot in VS Code", "0.32.3", "a published export"),
    "copilot_cli": Source("GitHub Copilot CLI", "1.0.88", "github/copilot-sdk, published events"),
    "cursor": Source("Cursor, transcripts of its agent", NOT_KNOWN, "published lines"),
    "gemini_cli": Source("Gemini CLI", NOT_KNOWN, "google-gemini/gemini-cli"),
    "goose": Source("Goose", NOT_KNOWN, "block/goose"),
    "langfuse": Source("Langfuse", NOT_KNOWN, "its API reference"),
    "langgraph": Source("LangGraph", NOT_KNOWN, "langgraph.types, and its API reference"),
    "langsmith": Source("LangSmith", NOT_KNOWN, "its documentation of run data"),
    "librechat": Source("LibreChat", NOT_KNOWN, "danny-avila/LibreChat"),
    "llama_index_store": Source("LlamaIndex", "0.14", "the library"),
    "open_webui": Source("Open WebUI", NOT_KNOWN, "its documentation, and reported shapes"),
    "openai_list": Source("OpenAI, threads and conversations", NOT_KNOWN, "its API reference"),
    "opencode": Source("opencode", NOT_KNOWN, "anomalyco/opencode"),
    "openhands": Source(
        "OpenHands", NOT_KNOWN, "OpenHands/software-agent-sdk, OpenHands/OpenHands"
    ),
    "qwen_code": Source("Qwen Code", NOT_KNOWN, "QwenLM/qwen-code"),
    "vercel_model": Source("AI SDK, ModelMessages", NOT_KNOWN, "vercel/ai"),
    "wrapped": Source("LMSYS, WildChat", NOT_KNOWN, "the data sets"),
}


def readings(format: str) -> Iterator[Reading]:
    for value, are_lines in SAMPLES[format]:
        yield read_transcripts(written(value, are_lines))


def what_is_read(reading: Reading) -> Iterator[str]:
    for each in reading.transcripts:
        if each.is_branch:
            yield "branches"
        if each.session and each.session.compactions:
            yield "compactions"
        for message in each.session.messages if each.session else each.messages:
            match message:
                case SystemMessage():
                    yield "system messages"
                case UserMessage():
                    yield "messages of the user"
                    if not all(isinstance(part, TextContent) for part in message.contents):
                        yield "media"
                case AiMessage():
                    yield "answers"
                    if message.thinking:
                        yield "thoughts"
                    if message.tool_execution_requests:
                        yield "calls"
                case ToolExecutionResultMessage():
                    yield "results"


def what_is_lost(reading: Reading) -> Iterator[str]:
    for each in reading.transcripts:
        for loss in each.losses:
            yield re.sub(r" \([\d,]+\)$", "", loss.what)


def test_each_format_that_is_only_read_has_a_source():
    assert sorted(SOURCES) == sorted(readable_formats().keys() - two_way_formats().keys())


def test_the_docs_list_what_is_read_of_programs_and_what_is_lost():
    rows = ["| program | version seen | source of the samples | read | named as lost |"]
    rows.append("|---|---|---|---|---|")
    for format, source in SOURCES.items():
        every = [*readings(format)]
        read = sorted({what for each in every for what in what_is_read(each)})
        lost = sorted({what for each in every for what in what_is_lost(each)})
        cells = (*source, ", ".join(read), "; ".join(lost))
        rows.append(f"| {' | '.join(cells)} |")
    check_page("programs", rows)


# Refusals: files that no case of tests/data/field has
MORE: dict[str, object] = {
    "the state of an AutoGen agent": {"type": "AssistantAgentState", "llm_context": {}},
    "the state of an AutoGen team": {"type": "TeamState", "agent_states": {}},
    "a session of dsh, DeepSeek's harness": [
        {"type": "session", "version": 0, "id": "s", "createdAt": 1, "delegationDepth": 0},
        {"type": "user/message", "seq": 1, "time": 1, "data": {"text": "hello"}},
    ],
}


def samples_of_others() -> Iterator[str]:
    for file in sorted(FIELD.glob("*.json*")):
        yield file.read_text("utf-8")
    for value in MORE.values():
        yield "\n".join(map(json.dumps, value)) if isinstance(value, list) else json.dumps(value)


def refusals() -> set[str]:
    found: set[str] = set()
    for text in samples_of_others():
        try:
            read_transcripts(text)
        except UnreadableTranscript as error:
            found |= {each.name for each in KNOWN if f"is {each.name}, which" in str(error)}
    return found


def test_each_known_file_has_a_sample_that_is_refused_by_its_name():
    assert sorted(refusals()) == sorted(each.name for each in KNOWN)


@pytest.mark.parametrize("known", KNOWN_BEGINNINGS, ids=lambda each: each.name)
def test_a_file_that_is_no_json_is_refused_by_what_it_is(known):
    with pytest.raises(UnreadableTranscript, match=re.escape(known.name)):
        read_transcripts(known.beginning + b"\n\x01\x02 more of it")


def test_the_docs_list_the_files_that_are_refused():
    rows = ["| a file of this kind is refused | recognized by | instead |", "|---|---|---|"]
    every = [(each.name, each.sign, each.instead) for each in KNOWN]
    every += [(each.name, "its first bytes", each.instead) for each in KNOWN_BEGINNINGS]
    rows += [f"| {' | '.join(each)} |" for each in sorted(set(every), key=lambda each: each[0])]
    check_page("refused", rows)
