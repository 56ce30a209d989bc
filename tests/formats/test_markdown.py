from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    CustomMessage,
    ImageContent,
    SystemMessage,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import FORMATS, parse_messages, readable_formats, render_messages
from chatmemory.messages.contents import Image


def markdown_of(*messages) -> str:
    return render_messages(messages, "markdown").value


def test_a_transcript_is_readable():
    call = ToolExecutionRequest("call_1", "find_order", '{"order": "A-1182"}')
    said = [
        SystemMessage("Be brief."),
        UserMessage(
            [TextContent("Where is it?\nSee:"), ImageContent("https://e.org/a.png")], "Ada"
        ),
        AiMessage("I look.", [call], "An order."),
        ToolExecutionResultMessage("call_1", "find_order", "in Rome"),
        ToolExecutionResultMessage(None, None, "too late", True),
        AiMessage("In Rome."),
    ]
    assert (
        markdown_of(*said)
        == """\
## System

> Be brief.

## User `Ada`

> Where is it?
> See:

> [image https://e.org/a.png]

## Assistant

Thinking:

> An order.

Answer:

> I look.

Call `find_order` `call_1`

```json
{"order": "A-1182"}
```

## Result `find_order` `call_1`

```
in Rome
```

## Error

```
too late
```

## Assistant

> In Rome.

"""
    )


lines = st.sampled_from(
    ["## Assistant", "```", "````json", "`", "> ", "~~~", "a", "", "\r", "<!--"]
)
texts = st.lists(lines).map("\n".join)


@given(texts, texts, texts)
def test_no_text_can_leave_its_place(said, arguments, name):
    call = ToolExecutionRequest("1", name, arguments)
    result = ToolExecutionResultMessage("1", name, arguments)
    page = markdown_of(UserMessage(said, name), AiMessage(said, [call], said), result)
    fence = ""
    headings = []
    for line in re.split("\r\n|[\r\n]", page):
        if fence:
            fence = "" if line.strip() == fence else fence
        elif line.startswith("```"):
            fence = re.match("`+", line)[0]
        else:
            headings += re.findall(r"^## (\w+)", line)
            assert re.match(r"$|> ?|## (User|Assistant|Result)|(Thinking|Answer):|Call ", line)
    assert (headings, fence) == (["User", "Assistant", "Result"], "")


def test_what_it_cannot_tell_is_listed():
    image = ImageContent(Image(None, "QQ==", "image/png"))
    said = [
        UserMessage([image, None], attributes={"a": 1}),
        AiMessage(None, [None]),
        CustomMessage({"a": 1}),
    ]
    assert [loss.what for loss in render_messages(said, "markdown").losses] == [
        "attributes.a",
        "image content: only its name is written",
        "empty content",
        "an empty tool call",
        "a whole CUSTOM message",
    ]


def test_it_is_not_read():
    assert set(FORMATS) - set(readable_formats()) == {"markdown"}
    with pytest.raises(UnreadableTranscript, match="the format markdown can only be written"):
        parse_messages([], "markdown")
