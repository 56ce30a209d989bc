"""What formats keep in attributes: it comes back, it holds no text, and an edit wins over it."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    CustomMessage,
    Image,
    ImageContent,
    TextContent,
    ToolExecutionRequest,
    UserMessage,
)
from chatmemory.formats import parse_messages, render_messages
from chatmemory.formats.difference import applied, difference, names_in, sources_of, texts_of
from chatmemory.messages.message import text_of, with_attributes

# Few words, so that a text is also that of a type, of a property or of another text.
words = st.sampled_from(["text", "type", "$", "a", "ab", "b", "so it is", ""])
leaves = st.none() | st.booleans() | st.integers(0, 2) | st.floats(0, 2) | words
names = st.sampled_from(["type", "role", "text", "content", "arguments", "id", "$", "=", "was"])
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
messages = st.one_of(
    st.builds(UserMessage, st.lists(st.builds(TextContent, words), min_size=1, max_size=3)),
    st.builds(
        lambda text, thinking, arguments: AiMessage(
            text, [ToolExecutionRequest("1", "f", each) for each in arguments], thinking
        ),
        words,
        words,
        st.lists(words, max_size=2),
    ),
)


labels = st.sampled_from(["assistant#0", "ai#0", "response#0"])
inner = st.dictionaries(
    st.sampled_from(["as", "data", "content", "kind", "parts", "type", "instructions"]),
    st.builds(lambda value: {"=": value}, values)
    | st.builds(lambda value: {"=": {"around": value, "type": value}}, values)
    | st.builds(lambda name, value: {"in": {name: {"=": value}}}, names, values),
    max_size=3,
)
hostile_items = st.builds(lambda label, found: {"at": label, "in": found}, labels, inner)


def spelt(value: object) -> str:
    return json.dumps(value, sort_keys=True)


@given(values, values, messages)
def test_a_difference_restores_the_original(written, said, message):
    texts = texts_of(message)
    differs = difference(written, said, texts)
    assert (differs is None) == (spelt(written) == spelt(said))
    if differs is not None:
        json.dumps(differs)
        assert spelt(applied(differs, written, texts)) == spelt(said)


@given(values, values, messages)
def test_clients_may_send_any_difference(differs, written, message):
    with suppress(ValueError):
        json.dumps(applied(differs, written, texts_of(message)))


@pytest.mark.parametrize(
    "holes",
    [
        [{"$": ["text", 0, 1000, 1000]}],
        [{"$": ["text", 0, 1, 9]}],  # of a text that was edited
        [{"$": ["text", 10**9, 0, 1000]}, {"$": ["text", 0, 1000, 1000]}],
    ],
)
def test_a_difference_does_not_multiply_texts(holes):
    with pytest.raises(ValueError, match="more texts"):
        applied({"=": holes * 1000}, None, {"text": "x" * 1000})


def test_texts_that_a_client_multiplied_are_not_written():
    hole = {"$": ["text", 0, 1000, 1000]}
    many = AiMessage("x" * 1000, attributes={"openai_chat": {"differs": {"=": [hole] * 1000}}})
    rendered = render_messages([many], "openai_chat")
    assert rendered.value == [{"role": "assistant", "content": "x" * 1000}]
    assert [loss.what for loss in rendered.losses] == ["attributes.openai_chat"]


def test_a_list_of_many_parts_of_another_kind_is_compared_in_time():
    parts = [{"type": "refusal", "refusal": f"{n}."} for n in range(1000)]
    turn = {"role": "user", "content": parts}
    start = process_time()
    (read,) = parse_messages([turn], "openai_chat").messages
    assert process_time() - start < 2  # with a scan for each part: 4 seconds
    assert render_messages([read], "openai_chat").value == [turn]


def test_attributes_do_not_repeat_a_text_that_occurs_twice():
    said = [{"text": "a b"}, {"summary": "b"}, {"text": "a b"}]
    differs = difference([], said, {"text": "a b"})
    assert not {"a b", "b"} & set(texts_in(differs))
    assert applied(differs, [], {"text": "a b"}) == said


def test_an_edited_text_is_in_its_first_place_and_nothing_empty_is_left():
    texts = {"text": "one\ntwo\nmore"}
    said = [
        {"role": "assistant", "content": [{"text": "one", "notes": []}], "id": 1},
        {"role": "assistant", "content": [{"text": "two", "notes": [5]}], "id": 2},
        {"summary": [{"text": "one"}], "content": [{"text": "more"}], "id": 3},
    ]
    differs = difference([], said, texts)
    assert applied(differs, [], texts) == said
    assert applied(differs, [], {"text": "other words"}) == [
        {"role": "assistant", "content": [{"text": "other words", "notes": []}], "id": 1},
        {"summary": [{"text": "other words"}], "id": 3},
    ]


@pytest.mark.parametrize(
    "differs",
    [
        {"=": "x"},
        {"=": 5},
        {"=": [5]},
        {"items": [{"=": None}]},
        {"=": {"$": ["text"], "before": ""}},
    ],
)
def test_what_a_client_says_in_place_of_values_is_not_written(differs):
    message = AiMessage("x", attributes={"openai_chat": {"differs": differs}})
    rendered = render_messages([message], "openai_chat")
    assert rendered.value == [{"role": "assistant", "content": "x"}]
    assert [loss.what for loss in rendered.losses] == ["attributes.openai_chat"]


@pytest.mark.parametrize("format", ["openai_chat", "langchain", "pydantic_ai"])
@given(given=st.data())
def test_attributes_of_clients_do_not_break_a_format(format, given):
    said = given.draw(
        st.lists(values, max_size=2).map(lambda said: {"=": said})
        | st.fixed_dictionaries({"items": st.lists(hostile_items, max_size=2)})
    )
    own = {"differs": said, "joins": True}
    message = AiMessage("so it is", attributes={format: own})
    written = render_messages([message, message], format).value
    json.dumps(written)


# Real exchanges: what is edited after reading is what is written


def edited(message):
    """Return a message with other texts, arguments and results of other lengths."""
    if isinstance(message, AiMessage):
        calls = [
            replace(call, arguments=json.dumps({"edited": call.id}))
            for call in message.tool_execution_requests
        ]
        text = message.text and "edited text"
        thinking = message.thinking and "edited thinking"
        return AiMessage(text, calls, thinking, message.attributes)
    if isinstance(message, CustomMessage):
        return message
    if not hasattr(message, "contents"):
        return replace(message, text="edited text")
    contents = [
        TextContent("edited text") if isinstance(content, TextContent) else content
        for content in message.contents
    ]
    return replace_contents(message, contents)


def replace_contents(message, contents):
    if isinstance(message, UserMessage):
        return UserMessage(contents, message.name, message.attributes)
    return type(message)(
        message.id, message.tool_name, contents, message.is_error, message.attributes
    )


def texts_in(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [text for each in inner for text in texts_in(each)]
    return []


def values_in(value: object) -> list[str]:
    """Return objects and lists as JSON text: arguments and results are such values, too."""
    if not isinstance(value, dict | list):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [json.dumps(value), *(text for each in inner for text in values_in(each))]


SENT = {
    "openai_chat": ("openai-chat", "messages"),
    "anthropic": ("anthropic-messages", "messages"),
    "openai_responses": ("openai-responses", "input"),
}


def list_in(rendered, key):
    return rendered.value if isinstance(rendered.value, list) else rendered.value[key]


@pytest.mark.parametrize("format", SENT)
def test_recorded_requests_come_back_and_edits_are_found(format, data_file):
    theirs, key = SENT[format]
    recorded = json.loads(data_file("provider_exchanges.json").read_text())
    requests = [each["request"] for each in recorded if each["format"] == theirs]
    assert len(requests) > 80
    equal = 0
    for request in requests:
        read = parse_messages(request[key], format)
        equal += list_in(render_messages(read.messages, format), key) == request[key]
        changed = [edited(message) for message in read.messages]
        value = render_messages(changed, format).value
        written = texts_in(value) + values_in(value)
        for message, change in zip(read.messages, changed, strict=True):
            kept = texts_in(getattr(message, "attributes", {}))
            said = {text for text in texts_of(message).values() if len(text) > 12}
            assert said.isdisjoint(kept)
            if format != "openai_responses":  # keeps definitions of the tools that were found
                assert {text for text in all_texts_of(message) if len(text) > 12}.isdisjoint(kept)
            for text in texts_of(change).values():
                assert any(text in each for each in written), (text, written)
            assert not said & set(written)
    assert equal / len(requests) > 0.97


def assert_edits_are_found(read, format, names=frozenset()):
    """Attributes repeat no text, and edits are written, and nothing else."""
    changed = [edited(message) for message in read]
    written = texts_in(render_messages(changed, format).value)
    for message, change in zip(read, changed, strict=True):
        kept = texts_in(getattr(message, "attributes", {}))
        texts = {text for text in texts_of(message).values() if len(text) > 8}
        texts |= {each for text in texts if text[0] in "[{" for each in values_of(text)}
        texts -= names
        assert not [text for text in texts for each in kept if text in each]
        for text in texts_of(change).values():
            assert any(each in {text, *values_of(text)} for each in written), (text, written)
        assert not texts & set(written) - {getattr(change, "thinking", None)}


def values_of(text: str) -> set[str]:
    """Return the texts in a text that is JSON."""
    try:
        return set(texts_in(json.loads(text)))
    except ValueError:
        return set()


def all_texts_of(message):
    """Return the texts of a message, and the texts in arguments and results that are JSON."""
    for text in texts_of(message).values():
        yield text
        with suppress(ValueError):
            yield from texts_in(json.loads(text))


def test_a_text_in_pieces_stays_in_pieces_until_it_is_edited():
    parts = [{"type": "text", "text": "a", "mark": 1}, {"type": "text", "text": "b", "mark": 2}]
    turn = {"role": "assistant", "content": parts}
    (read,) = parse_messages([turn], "openai_chat").messages
    assert text_of(read) == "a\nb"
    assert render_messages([read], "openai_chat").value == [turn]
    longer = with_attributes(AiMessage("a longer text"), read.attributes)
    (written,) = render_messages([longer], "openai_chat").value
    assert texts_in(written["content"]) == ["text", "a longer text"]


@given(values, values, messages)
def test_the_parts_of_a_difference_are_named(written, said, message):
    differs = difference(written, said, texts_of(message))
    assert all(isinstance(name, str) for name in names_in(differs))
    names_in(said)


def test_the_names_are_properties_and_types_of_items():
    written = {"role": "a", "parts": [{"type": "text", "text": "x"}], "gone": 1}
    start, text = {"type": "step-start"}, {"type": "text", "text": "x", "state": "done"}
    said = {"id": "1", "role": "a", "parts": [start, text]}
    assert names_in(difference(written, said, {})) == ["id", "step-start", "state", "gone"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            {"type": "call", "args": '{"city": "Paris"}'},
            {"type": "call", "args": {"city": "Paris"}},
        ),
        (
            {"type": "call", "args": {"city": "Paris"}},
            {"type": "tool_use", "input": {"city": "Paris"}},
        ),
        ({"type": "call"}, {"type": "call", "error": 'no JSON: {"city": "Paris"}'}),
    ],
)
def test_arguments_are_found_as_values_and_within_texts(written, said):
    texts = texts_of(AiMessage("x", [ToolExecutionRequest("1", "f", '{"city": "Paris"}')]))
    differs = difference(written, said, texts)
    assert "Paris" not in json.dumps(differs)
    assert applied(differs, written, texts) == said
    edit = '{"town": "Rome", "days": 3}'
    written = json.loads(json.dumps(written).replace(json.dumps('{"city": "Paris"}'), "0"))
    if "args" in written:
        written["args"] = edit if written["args"] == 0 else json.loads(edit)
    found = json.dumps(applied(differs, written, {"text": "x", "arguments.0": edit}))
    assert "Rome" in found
    assert "Paris" not in found


def test_two_equal_calls_are_edited_each():
    calls = [ToolExecutionRequest(id, "f", '{"city": "Paris"}') for id in "ab"]
    blocks = [{"type": "tool_use", "id": id, "input": {"city": "Paris"}} for id in "ab"]
    differs = difference([], blocks, texts_of(AiMessage(None, calls)))
    edit = [calls[0], replace(calls[1], arguments='{"city": "Rome"}')]
    _, second = applied(differs, [], texts_of(AiMessage(None, edit)))
    assert second["input"] == {"city": "Rome"}


def test_the_data_of_an_image_is_kept_once():
    data = "iVBORw0KGgoAAAANSUhEUg=="
    message = UserMessage([ImageContent(Image(None, data, "image/png"))])
    said = {"url": f"data:image/png;base64,{data}"}
    differs = difference({"data": data}, said, sources_of(message))
    assert data not in json.dumps(differs)
    assert applied(differs, {"data": data}, sources_of(message)) == said
