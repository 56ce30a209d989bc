"""What holds for all formats, and the tables of docs/formats.md, which are made of real runs.

If formats have changed on purpose, run this file with WRITE_FORMATS=1 and read the diff.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    AudioContent,
    ChatMessage,
    CustomMessage,
    ImageContent,
    PdfFileContent,
    SystemMessage,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    VideoContent,
)
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import (
    FORMATS,
    parse_messages,
    parse_objects,
    read_transcripts,
    readable_formats,
    render_messages,
    two_way_formats,
    writable_formats,
)
from chatmemory.messages.contents import Audio, DetailLevel, Image, PdfFile, Video
from chatmemory.messages.message import text_of, with_attributes

from .random_conversations import DATA, LINK, conversations

PAGE = Path(__file__).parents[2] / "docs/formats.md"


def check_page(name: str, lines: Iterable[str]) -> None:
    """Compare lines with the lines between two comments of docs/formats.md."""
    made = "".join(f"{line}\n" for line in lines)
    before, mark, rest = PAGE.read_text("utf-8").partition(f"<!-- {name} -->\n")
    known, end, after = rest.partition("<!-- end -->")
    if "WRITE_FORMATS" in os.environ:
        PAGE.write_text(before + mark + made + end + after, "utf-8")
    else:
        assert known == made


def without_attributes(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    return [with_attributes(message, {}) for message in messages]


def read_back(value: Any, format: str) -> list[ChatMessage]:
    return without_attributes(parse_objects(value, format).messages)


# Detection

CALL = ToolExecutionRequest("call_1", "find_order", '{"order": "A-1182"}')
CONVERSATION = [
    SystemMessage("Be brief."),
    UserMessage("Where is order A-1182?"),
    AiMessage("I look it up.", [CALL]),
    ToolExecutionResultMessage("call_1", "find_order", '{"place": "Dijon"}'),
    AiMessage("It is in Dijon."),
]


@pytest.mark.parametrize("format", two_way_formats())
def test_a_written_file_is_detected_and_reads_back(format):
    rendered = render_messages(CONVERSATION, format)
    assert rendered.losses == ()
    for file in (rendered.value, [rendered.value] * 2):
        reading = read_transcripts(json.dumps(file))
        assert (reading.format, reading.refused) == (format, ())
        for transcript in reading.transcripts:
            assert transcript.losses == ()
            assert without_attributes(transcript.messages) == CONVERSATION


def test_a_file_is_of_the_format_that_finds_the_most_in_it():
    written = {name: render_messages(CONVERSATION, name).value for name in two_way_formats()}
    for format in written:
        others = [value for name, value in written.items() if name != format]
        file = [*others[:2], *[written[format]] * 3]
        reading = read_transcripts(json.dumps(file))
        assert (reading.format, len(reading.transcripts)) == (format, 3)


@pytest.mark.parametrize("format", writable_formats())
@pytest.mark.parametrize(
    "own",
    [
        5,
        {"differs": 5},
        *({"differs": {"=": value}} for value in (5, [5], [{}], [{"role": "assistant"}])),
        {"differs": {"=": [{"role": "assistant", "content": 5, "parts": 5, "type": 5}]}},
        {"differs": {"=": [{"role": "assistant", "content": [5], "parts": [5]}]}},
        {"differs": {"items": 5}, "joins": 5, "response": 5},
        {"joins": True},
    ],
)
def test_messages_with_attributes_that_clients_made_up_are_written(format, own):
    said = [with_attributes(message, {format: own}) for message in CONVERSATION]
    json.dumps(render_messages(said, format).value)


@pytest.mark.parametrize("format", two_way_formats())
@pytest.mark.parametrize(
    "own",
    [
        5,
        {"types": 5, "type": 5, "names": []},
        *({"types": types} for types in (["x"], [[]], [{}], ["x", [], {}], {"a": 5}, {"1": []})),
    ],
)
def test_what_clients_made_up_alters_nothing(format, own):
    said = [with_attributes(message, {format: own}) for message in CONVERSATION]
    value = render_messages(said, format).value
    assert read_back(json.loads(json.dumps(value)), format) == CONVERSATION


# Whatever is said

# Two answers in a row are one where nothing stands between their parts.
JOINING = {"openai_responses", "sharegpt"}


@pytest.mark.parametrize("format", two_way_formats())
@given(given=st.data())
def test_turns_that_lose_nothing_alone_come_back_from_a_conversation(format, given):
    """In ShareGPT calls and results have no ids: they come back in their order."""
    messages = given.draw(conversations(format))
    rendered = render_messages(messages, format)
    read = parse_objects(rendered.value, format) if messages else parse_messages([], format)
    back = without_attributes(read.messages)
    assert read.losses == ()
    if format in JOINING and rendered.losses:
        assert all("the end of the previous message" in loss.what for loss in rendered.losses)
    elif format == "sharegpt":
        assert (essence(back), rendered.losses) == (essence(messages), ())
    else:
        assert (back, rendered.losses) == (messages, ())


# What is lost

SAID, ANSWER = UserMessage("hi"), AiMessage("ho")
RESULT = ToolExecutionResultMessage("call_1", "find_order", "found")


def user(*contents: Any, **more: Any) -> list[ChatMessage]:
    return [UserMessage([TextContent("see"), *contents], **more), ANSWER]


def result(*contents: Any, is_error: bool | None = None) -> list[ChatMessage]:
    found = ToolExecutionResultMessage("call_1", "find_order", contents, is_error)
    return [SAID, AiMessage(None, [CALL]), found, ANSWER]


# All that LangChain4j's messages can say, in conversations that providers accept.
FEATURES: dict[str, list[ChatMessage]] = {
    "the name of a user": user(name="Ada"),
    "a text in several contents": user(TextContent("b")),
    "an image by its URL": user(ImageContent(LINK, DetailLevel.AUTO)),
    "an inline image": user(ImageContent(Image(None, DATA, "image/png"), DetailLevel.AUTO)),
    "the detail level of an image": user(ImageContent(LINK, DetailLevel.HIGH)),
    "its detail level MEDIUM": user(ImageContent(LINK, DetailLevel.MEDIUM)),
    "its revised prompt": user(ImageContent(Image(LINK, None, None, "a cat"), DetailLevel.AUTO)),
    "a sound by its URL": user(AudioContent(Audio(LINK, None, "audio/wav"))),
    "an inline sound": user(AudioContent(Audio(None, DATA, "audio/wav"))),
    "a video by its URL": user(VideoContent(Video(LINK, None, "video/mp4"))),
    "an inline video": user(VideoContent(Video(None, DATA, "video/mp4"))),
    "a PDF by its URL": user(PdfFileContent(PdfFile(LINK))),
    "an inline PDF": user(PdfFileContent(PdfFile(None, DATA))),
    "a null content": user(None),
    "thinking": [SAID, AiMessage("ho", (), "hm")],
    "thinking before a call": [SAID, AiMessage(None, [CALL], "hm"), RESULT, ANSWER],
    "words before a call": [SAID, AiMessage("I look.", [CALL]), RESULT, ANSWER],
    "an empty call": [SAID, AiMessage("ho", [None])],
    "an answer of nothing": [SAID, AiMessage(None), SAID],
    "that a result is an error": result(TextContent("no"), is_error=True),
    "an image in a result": result(TextContent("see"), ImageContent(LINK, DetailLevel.AUTO)),
    "a result in several contents": result(TextContent("a"), TextContent("b")),
    "a result without its call": [SAID, RESULT, ANSWER],
    "two messages of the user in a row": [SAID, SAID, ANSWER],
    "two answers in a row": [SAID, ANSWER, ANSWER],
    "a system message": [SystemMessage("Be brief."), SAID, ANSWER],
    "a system message in the middle": [SAID, ANSWER, SystemMessage("Be brief."), SAID, ANSWER],
    "a custom message": [SAID, ANSWER, CustomMessage({"type": "note", "text": "x"}), SAID],
    "attributes": user(attributes={"trace": 7}),
    "attributes of a system message": [SystemMessage("Be brief.", {"trace": 7}), SAID],
}


# What is told of a loss, by formats: of all that are not LangChain4j's own where none is named.
OTHERS = {*two_way_formats()} - {"langchain4j"}
BOTH = user(ImageContent(Image(LINK, DATA), DetailLevel.AUTO))[:1]
WORDS_OF_LOSSES = [
    (
        [UserMessage("x", "Ada")],
        "the name of the user",
        OTHERS - {"langchain", "openai_chat", "otel_genai"},
    ),
    (user(None)[:1], "empty content", OTHERS),
    (user(AudioContent())[:1], "audio content", OTHERS),
    (
        FEATURES["its detail level MEDIUM"],
        "the detail level 'medium'",
        OTHERS - {"bedrock", "sharegpt"},
    ),
    (
        FEATURES["its revised prompt"],
        "the revised prompt of an image",
        OTHERS - {"bedrock", "sharegpt"},
    ),
    (
        BOTH,
        "the url of image content whose data is also given inline",
        OTHERS - {"llama_index", "sharegpt"},
    ),
    ([UserMessage([TextContent("x"), TextContent(" ")])], "a blank text", {"anthropic", "bedrock"}),
    ([UserMessage("")], "an empty message", {"anthropic", "bedrock", "gemini"}),
    ([AiMessage(None)], "a message without text and calls", {"openai_responses"}),
    (
        [AiMessage("x", (), "hm")],
        "thinking",
        {"anthropic", "bedrock", "openai_chat", "openai_responses", "sharegpt"},
    ),
    ([AiMessage("x", (None,))], "an empty tool call", OTHERS),
    (
        [AiMessage(None, [ToolExecutionRequest("a", "f", "no")])],
        "that the arguments are no JSON object",
        {"anthropic", "bedrock", "gemini"},
    ),
    (
        result(TextContent("no"), is_error=True),
        "that the result is an error",
        {"llama_index", "openai_chat", "openai_responses", "otel_genai", "sharegpt"},
    ),
    (
        [ToolExecutionResultMessage(None, "find", "x")],
        "the name of the tool",
        {"anthropic", "bedrock", "sharegpt"},
    ),
    ([RESULT], "the absence of the result's tool call", {"vercel_ui"}),
    (
        FEATURES["an image in a result"],
        "contents of a result that are not text",
        {"openai_chat", "otel_genai"},
    ),
    (
        FEATURES["a result in several contents"],
        "how the text is divided into parts",
        {"gemini", "otel_genai", "sharegpt", "vercel_ui"},
    ),
    ([CustomMessage({"a": 1})], "a whole CUSTOM message", OTHERS),
    ([AiMessage("x", attributes={"elsewhere": {"a": 1}})], "attributes.elsewhere", OTHERS),
]


@pytest.mark.parametrize(("said", "what", "formats"), WORDS_OF_LOSSES)
def test_a_loss_is_reported_in_words(said, what, formats):
    told_by = {
        format
        for format in two_way_formats()
        if what in [loss.what for loss in render_messages(said, format).losses]
    }
    assert told_by == formats


@pytest.mark.parametrize(
    ("turn", "format"),
    [
        ({"role": "system", "content": " "}, "openai_chat"),
        ({"role": "system", "content": " "}, "openai_responses"),
        ({"role": "system", "parts": [{"type": "text", "text": " "}]}, "vercel_ui"),
        ({"role": "system", "parts": [{"type": "text", "content": " "}]}, "otel_genai"),
        ({"type": "system", "content": " "}, "langchain"),
    ],
)
def test_a_blank_system_message_is_lost(turn, format):
    read = parse_messages([turn], format)
    assert [loss.what for loss in read.losses] == ["a blank system message"]


@cache
def losses_by_feature(format: str) -> dict[str, list[str]]:
    """Return the losses that the format reports for each feature."""
    found = {name: render_messages(said, format).losses for name, said in FEATURES.items()}
    return {name: [loss.what for loss in losses] for name, losses in found.items() if losses}


def features_read_otherwise(format: str) -> list[str]:
    """Return the features that read back otherwise, though nothing of them is lost."""
    written = {
        name: render_messages(said, format).value
        for name, said in FEATURES.items()
        if name not in losses_by_feature(format)
    }
    return [
        name
        for name, value in written.items()
        if read_back(value, format) != without_attributes(FEATURES[name])
    ]


def test_the_docs_list_the_losses_of_each_format():
    rows = ["| format | lost, and reported as such | reads back otherwise |", "|---|---|---|"]
    for format in writable_formats():
        otherwise = (
            features_read_otherwise(format) if format in two_way_formats() else ["it is not read"]
        )
        rows.append(
            f"| `{format}` | {', '.join(losses_by_feature(format))} | {', '.join(otherwise)} |"
        )
    check_page("what is lost", rows)


def test_the_docs_tell_where_each_format_comes_from():
    _, _, section = PAGE.read_text("utf-8").partition("## What is read from where\n")
    rows = re.findall(r"^\| `(\w+)` \|", section.partition("\n## ")[0], re.MULTILINE)
    assert sorted(rows) == sorted(readable_formats())


# Real conversations


def real_conversations(data_file: Any) -> Iterator[tuple[str, list[ChatMessage]]]:
    """Yield the origin and the messages of some of the real conversations."""
    for name in ("tau_bench_airline.openai_chat.json", "glaive_toolcall.sharegpt.json"):
        transcripts = read_transcripts(data_file(name).read_bytes()).transcripts
        for transcript in transcripts[::10]:
            yield name.partition(".")[0], [*transcript.messages]
    for format, request in islice(accepted(data_file), 0, None, 3):
        with suppress(UnreadableTranscript):
            yield "provider_exchanges", [*parse_objects(request, format).messages]


# How the recorded requests say their messages: the format, and its members of a request.
EXCHANGES = {
    "openai-chat": ("openai_chat", ("messages",)),
    "anthropic-messages": ("anthropic", ("messages", "system")),
    "openai-responses": ("openai_responses", ("input", "instructions")),
}


def accepted(data_file: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the format and the messages of each request that a provider has accepted."""
    for each in json.loads(data_file("provider_exchanges.json").read_text("utf-8")):
        format, members = EXCHANGES.get(each["format"], ("", ()))
        if format in FORMATS and each["status"] < 400:
            request = each["request"]
            yield format, {name: request[name] for name in members if request.get(name)}


def essence(messages: Iterable[ChatMessage]) -> list[Any]:
    """Return the content of messages: calls in order, arguments as JSON, and no text as ""."""
    ids: dict[str | None, int] = {}
    numbers = count()
    found: list[Any] = []
    for message in without_attributes(messages):
        if isinstance(message, AiMessage):
            made = [call for call in message.tool_execution_requests if call is not None]
            ids |= {call.id: next(numbers) for call in made}
            calls = [(ids[call.id], call.name, as_json(call.arguments)) for call in made]
            found.append((message.text or "", message.thinking or "", calls))
        elif isinstance(message, ToolExecutionResultMessage):
            found.append(replace_id(message, str(ids.get(message.id))))
        else:
            found.append(message)
    return found


def replace_id(message: ToolExecutionResultMessage, id: str) -> ChatMessage:
    error = message.is_error or None
    return ToolExecutionResultMessage(id, message.tool_name, message.contents, error)


def as_json(text: str | None) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def test_real_conversations_go_through_every_format_and_back(data_file):
    """What comes back equal is counted in the docs; no text is missing without a loss."""
    counts: dict[str, Counter[tuple[str, str]]] = {name: Counter() for name in two_way_formats()}
    totals: Counter[str] = Counter()
    for origin, messages in real_conversations(data_file):
        totals[origin] += 1
        bare = without_attributes(messages)
        for format in counts:
            rendered = render_messages(bare, format)
            back = read_back(rendered.value, format)
            is_equal = essence(back) == essence(bare)
            kind = "equal" if is_equal else "lossy" if rendered.losses else "otherwise"
            counts[format][origin, kind] += 1
            if not rendered.losses:
                assert words_of(bare) <= words_of(back)
    head = " | ".join(f"{origin} ({total})" for origin, total in totals.items())
    rows = [f"| format | {head} |", "|---" * (len(totals) + 1) + "|"]
    for format, found in counts.items():
        cells = [
            ", ".join(f"{found[origin, kind]} {kind}" for kind in ORDER if found[origin, kind])
            for origin in totals
        ]
        rows.append(f"| `{format}` | {' | '.join(cells)} |")
    check_page("real conversations", rows)


ORDER = ("equal", "lossy", "otherwise")


def words_of(messages: Iterable[ChatMessage]) -> set[str]:
    return {word for message in messages for word in re.findall(r"\w+", text_of(message))}


def test_the_docs_count_the_recorded_requests_that_come_back_equal(data_file):
    totals: Counter[str] = Counter()
    others: dict[str, Counter[str]] = {}
    for format, request in accepted(data_file):
        totals[format] += 1
        why = why_not_equal(format, request)
        if why:
            others.setdefault(format, Counter())[why] += 1
    rows = ["| format | accepted requests | come back equal | the others |", "|---|---|---|---|"]
    for format, total in totals.items():
        found = others.get(format, Counter())
        listed = "; ".join(f"{times}: {why}" for why, times in found.items())
        rows.append(f"| `{format}` | {total} | {total - found.total()} | {listed} |")
        assert found.total() <= 0.03 * total
    check_page("recorded requests", rows)


def why_not_equal(format: str, request: dict[str, Any]) -> str:
    """Return the reason why a request does not come back equal, or ""."""
    try:
        read = parse_objects(request, format)
    except UnreadableTranscript as error:
        return f"refused, {error.why}"
    value = render_messages(read.messages, format).value
    ours = value if isinstance(value, dict) else {next(iter(request)): value}
    if ours == request:
        return ""
    lost = ", ".join(dict.fromkeys(loss.what for loss in read.losses))
    return f"lost is {lost}" if lost else f"differs in {place_of_difference(ours, request)}"


def place_of_difference(ours: Any, theirs: Any) -> str:
    """Return the path of the first difference, without the places in lists."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        name = next(name for name in ours | theirs if ours.get(name) != theirs.get(name))
        inner = place_of_difference(ours.get(name), theirs.get(name))
        return f"{name}.{inner}" if inner else name
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = zip(ours, theirs, strict=True)
        return next(place_of_difference(*pair) for pair in pairs if pair[0] != pair[1])
    return ""
