"""Answers of OpenAI's library by `create`, `parse` and `stream`: the next request sends what the
library itself would send.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

from chatmemory import MessageWindowChatMemory, UnreadableTranscript, UserMessage

openai = pytest.importorskip("openai")
httpx = pytest.importorskip("httpx")
pydantic = pytest.importorskip("pydantic")


class Weather(pydantic.BaseModel):
    """Both the tool's arguments and the format of the answer."""

    city: str


class Api:
    """A fake of OpenAI's API for the library: it answers, and remembers the requests."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.sent = list(answers), []
        transport = httpx.MockTransport(self.answer)
        self.client = openai.OpenAI(
            api_key="none", base_url="http://openai", http_client=httpx.Client(transport=transport)
        )

    def answer(self, request: Any) -> Any:
        self.sent.append(json.loads(request.content))
        answer = self.answers.pop(0)
        if isinstance(answer, dict):
            return httpx.Response(200, json=answer)
        events = [f"event: {each.get('type', '')}\ndata: {json.dumps(each)}\n\n" for each in answer]
        head = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=head, text="".join(events) + "data: [DONE]\n\n")


ARGUMENTS = '{"city": "Rome"}'

# The Responses API

CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "Weather",
    "arguments": ARGUMENTS,
    "status": "completed",
}
TEXT = {"type": "output_text", "text": ARGUMENTS, "annotations": []}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [TEXT],
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-5",
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [SAID, CALL],
}
_BEGUN = [
    {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {**SAID, "content": []}},
    {
        "type": "response.content_part.added",
        "output_index": 0,
        "content_index": 0,
        "item_id": "msg_1",
        "part": {**TEXT, "text": ""},
    },
    {
        "type": "response.output_text.delta",
        "output_index": 0,
        "content_index": 0,
        "item_id": "msg_1",
        "delta": ARGUMENTS,
        "logprobs": [],
    },
    {"type": "response.completed", "response": RESPONSE},
]
EVENTS = [{**each, "sequence_number": number} for number, each in enumerate(_BEGUN)]
OF_RESPONSES = {"model": "gpt-5", "input": "Weather?"}


def response_of(api: Api, way: str) -> Any:
    if way == "create":
        return api.client.responses.create(**OF_RESPONSES)
    options = {"text_format": Weather, "tools": [openai.pydantic_function_tool(Weather)]}
    options["tools"] = [{"type": "function", "strict": True, **options["tools"][0]["function"]}]
    if way == "parse":
        return api.client.responses.parse(**OF_RESPONSES, **options)
    with api.client.responses.stream(**OF_RESPONSES, **options) as stream:
        return stream.get_final_response()


@pytest.mark.parametrize("dumped", [False, True])
@pytest.mark.parametrize("way", ["create", "parse", "stream"])
def test_the_items_of_a_response_are_sent_as_the_library_sends_them(way, dumped):
    api = Api(EVENTS if way == "stream" else RESPONSE, RESPONSE, RESPONSE)
    response = response_of(api, way)
    assert way == "create" or response.output[1].parsed_arguments == {"city": "Rome"}
    asked, answered = {"role": "user", "content": "Weather?"}, output("call_1")
    api.client.responses.create(model="gpt-5", input=[asked, *response.output, answered])
    memory = MessageWindowChatMemory("responses")
    memory.add(UserMessage("Weather?"))
    given = response.model_dump(mode="json", exclude_unset=True, warnings=False)
    assert memory.add_from(given if dumped else response, "openai_responses") == ()
    memory.add_from(answered, "openai_responses")
    api.client.responses.create(model="gpt-5", **memory.render("openai_responses"))
    assert api.sent[2] == api.sent[1]
    assert api.sent[1]["input"][1:3] == [SAID, CALL]


def output(id: str) -> dict[str, str]:
    return {"type": "function_call_output", "call_id": id, "output": "sunny"}


@pytest.mark.parametrize("way", ["create", "stream", "manager"])
def test_a_stream_is_refused_with_what_to_add_instead(way):
    api = Api(CHUNKS)
    memory = MessageWindowChatMemory("streams")
    chat = api.client.chat.completions
    manager = chat.stream(**OF_CHAT) if way != "create" else chat.create(**OF_CHAT, stream=True)
    with manager as stream:
        given = manager if way == "manager" else stream
        with pytest.raises(UnreadableTranscript, match=r"is a stream: .*get_final_completion\(\)"):
            memory.add_from(given, "openai_chat")
        list(stream)
        if way != "create":
            assert memory.add_from(stream.get_final_completion(), "openai_chat") == ()


def test_an_answer_that_was_not_awaited_is_refused():
    async def answer() -> dict[str, Any]:
        return COMPLETION

    waiting = answer()
    with pytest.raises(UnreadableTranscript, match="this coroutine is not received yet: await it"):
        MessageWindowChatMemory("waiting").add_from(waiting, "openai_chat")
    waiting.close()


# Chat completions

FUNCTION = {"name": "Weather", "arguments": ARGUMENTS}
CALLING = {"id": "call_1", "type": "function", "function": FUNCTION}
MESSAGE = {"role": "assistant", "content": ARGUMENTS, "tool_calls": [CALLING]}
COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5",
    "choices": [{"index": 0, "finish_reason": "tool_calls", "message": MESSAGE}],
}
CHUNKS = [
    {
        **COMPLETION,
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
    }
    for delta, reason in (
        ({"role": "assistant", "content": ARGUMENTS}, None),
        ({"tool_calls": [{"index": 0, **CALLING}]}, None),
        ({}, "tool_calls"),
    )
]
OF_CHAT: dict[str, Any] = {
    "model": "gpt-5",
    "messages": [{"role": "user", "content": "Weather?"}],
}


def completion_of(api: Api, way: str) -> Any:
    chat = api.client.chat.completions
    if way == "create":
        return chat.create(**OF_CHAT)
    options = {"response_format": Weather, "tools": [openai.pydantic_function_tool(Weather)]}
    if way == "parse":
        return chat.parse(**OF_CHAT, **options)
    with chat.stream(**OF_CHAT, **options) as stream:
        return stream.get_final_completion()


@pytest.mark.parametrize("dumped", [False, True])
@pytest.mark.parametrize("way", ["create", "parse", "stream"])
def test_the_message_of_a_completion_is_sent_without_what_the_helpers_add(way, dumped):
    api = Api(CHUNKS if way == "stream" else COMPLETION, COMPLETION, COMPLETION)
    completion = completion_of(api, way)
    message = completion.choices[0].message
    if way != "create":
        function = message.tool_calls[0].function
        assert message.parsed == function.parsed_arguments == Weather(city="Rome")
    asked = OF_CHAT["messages"]
    answered = {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}
    with warnings.catch_warnings(action="ignore"):  # the library's own
        api.client.chat.completions.create(model="gpt-5", messages=[*asked, message, answered])
    memory = MessageWindowChatMemory("completions")
    memory.add(UserMessage("Weather?"))
    given = completion.model_dump(mode="json", exclude_unset=True, warnings=False)
    assert memory.add_from(given if dumped else completion, "openai_chat") == ()
    memory.add_from(answered, "openai_chat")
    api.client.chat.completions.create(model="gpt-5", messages=memory.render("openai_chat"))
    assert api.sent[2] == without_additions(api.sent[1], "dict" if dumped else "object")


def without_additions(sent: dict[str, Any], given: str) -> dict[str, Any]:
    """What the library sends, without what no reference of the API has. Recorded requests have an
    `index`, which comes back.
    """
    for message in sent["messages"]:
        message.pop("parsed", None)
        for call in message.get("tool_calls", ()):
            if given == "object":
                call.pop("index", None)
            call["function"].pop("parsed_arguments", None)
    return sent


def test_an_object_of_another_format_is_refused_with_the_format_that_fits():
    memory = MessageWindowChatMemory("other")
    completion = completion_of(Api(COMPLETION), "create")
    response = response_of(Api(RESPONSE), "create")
    for values, format, fitting in (
        (response, "openai_chat", "openai_responses"),
        (completion, "anthropic", "openai_chat"),
        (completion, "openai_responses", "openai_chat"),
    ):
        what = f"this {type(values).__name__} has no messages in the format '{format}'"
        with pytest.raises(UnreadableTranscript, match=f"{what}: name the format '{fitting}'"):
            memory.add_from(values, format)
    assert memory.messages() == []


def test_a_choice_is_added_and_an_empty_list_is_refused():
    memory = MessageWindowChatMemory("choice")
    memory.add_from(completion_of(Api(COMPLETION), "create").choices[0], "openai_chat")
    assert [each.type for each in memory.messages()] == ["AI"]
    with pytest.raises(UnreadableTranscript, match="the list of messages is empty"):
        memory.add_from([], "openai_chat")
