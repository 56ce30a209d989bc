"""The rules of providers about the JSON of their own formats, and about single models."""

from __future__ import annotations

from chatmemory.lint import rendered, since
from chatmemory.lint.catalog.examples import (
    ASKED,
    BE_BRIEF,
    DUE,
    HELLO,
    HI,
    PAIR,
    PICTURES_PAGE,
    call,
    call_item,
    call_turn,
    picture,
    result,
    result_turn,
)
from chatmemory.lint.limits import Order
from chatmemory.lint.rules import RECORDED, Law, Rule
from chatmemory.lint.turns import ANTHROPIC, BEDROCK, DEEPSEEK, GEMINI, MISTRAL, OPENAI, RESPONSES
from chatmemory.messages.message import AiMessage, ToolExecutionResultMessage, UserMessage

_GITHUB = "https://github.com/"
_SIGNATURES = "https://ai.google.dev/gemini-api/docs/thought-signatures"

# Models by name
_CLAUDE_4_6 = r"(?<![a-z])[a-z]++-(4[-.][6-9]|[5-9])\b"
_CLAUDE_BEFORE = r"claude-(([a-z]+-)?[123]\b|instant|[a-z]+-4(-[0-5]\b|\.[0-5]\b|-2025|$))"
_GEMINI_3, _GEMINI_BEFORE = r"gemini-([3-9]|\d\d)", r"gemini-[12]\b"
_O1_MINI, _OTHERS_OF_OPENAI = r"\bo1-(mini|preview)\b", r"gpt-|\bo[1-9]\b"

# Orders of roles
_OF_MISTRAL = Order(
    {
        "system": "user assistant system",
        "user": "assistant system user",
        "assistant": "assistant user tool",
        "tool": "assistant tool",
    },
    last="user tool system",
)
OF_BEDROCK = Order({"user": "assistant", "assistant": "user"}, results="user")

_NO_PREFILL = (
    "This model does not support assistant message prefill. The conversation must end with a user "
    "message."
)

OWN = [
    Rule(
        rendered.blank_text,
        "A blank text part beside other content",
        {
            ANTHROPIC: Law(
                "refused",
                "messages: text content blocks must be non-empty",
                f"{_GITHUB}anthropics/claude-code/issues/59812",
                date="2026-05",
                conflict="a blank text beside another text is accepted: "
                f"{_GITHUB}LibreChat-AI/agents/pull/124",
            ),
        },
        bad=[ASKED, call_turn("1", {"type": "text", "text": ""}), result_turn("1")],
        good=[ASKED, call_turn("1", {"type": "text", "text": "Let me look."}), result_turn("1")],
        began="a message with a blank text part was added",
        since=since.when_it_came,
        prevention="Remove blank text parts before you add an answer.",
    ),
    Rule(
        rendered.blanks_at_the_end,
        "A last message from the assistant that ends with a space",
        {
            ANTHROPIC: Law(
                "refused",
                "messages: final assistant content cannot end with trailing whitespace",
                f"{_GITHUB}tailcallhq/forgecode/issues/1872",
                date="2025-11",
            ),
        },
        bad=[DUE, AiMessage("It is due on ")],
        good=[DUE, AiMessage("It is due on "), HELLO],
        began="an assistant message that ends with a space became the last message",
        since=since.unknown,
        is_listed=False,
    ),
    Rule(
        "answer_at_the_end",
        "A last message from the assistant",
        {
            ANTHROPIC: Law(
                "conditional",
                _NO_PREFILL,
                f"{_GITHUB}anomalyco/opencode/issues/13768",
                rendered.answer_at_the_end,
                "only Opus 4.6, Sonnet 4.6 and later models reject such a prefill",
                _CLAUDE_4_6,
                _CLAUDE_BEFORE,
                date="2026-02",
            ),
            MISTRAL: Law(
                "refused",
                "Expected last role User or Tool (or Assistant with prefix True) for serving but "
                "got assistant",
                f"{_GITHUB}microsoft/autogen/issues/5044",
                _OF_MISTRAL.at_last,
                date="2025-01",
            ),
            BEDROCK: Law(
                "conditional",
                _NO_PREFILL,
                f"{_GITHUB}NousResearch/hermes-agent/pull/101401",
                rendered.answer_at_the_end,
                "only Claude 4.6 and later, and Llama, reject such a prefill",
                rf"{_CLAUDE_4_6}|llama",
                _CLAUDE_BEFORE,
                date="2026-09",
            ),
        },
        bad=[HELLO, HI],
        good=[HELLO, HI, DUE],
        began="an assistant message became the last message",
        since=since.unknown,
        is_listed=False,
    ),
    Rule(
        rendered.empty_error,
        "A tool error without content",
        {
            ANTHROPIC: Law(
                "refused",
                "messages.{at}.content.0.tool_result: content cannot be empty if `is_error` is "
                "true",
                "https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls",
                date="2026-11",
            ),
        },
        bad=[ASKED, call_turn("1"), result_turn("1", content="", is_error=True)],
        good=[ASKED, call_turn("1"), result_turn("1", content="no such order", is_error=True)],
        began="a tool error without content was added",
        since=since.when_it_came,
        prevention="Give each failed tool call a result text that describes the error.",
    ),
    Rule(
        rendered.many_marks,
        "More than four blocks with cache_control",
        {
            ANTHROPIC: Law(
                "refused",
                "A maximum of 4 blocks with cache_control may be provided. Found {length}.",
                f"{_GITHUB}tghamm/Anthropic.SDK/issues/50",
                date="2024-09",
            ),
        },
        bad=[
            {"role": "user", "content": [{**part, "cache_control": {"type": "ephemeral"}}]}
            for part in [{"type": "text", "text": "When is it due?"}] * 5
        ],
        good=[ASKED],
        began="memory got more than four blocks with cache_control",
        since=since.when_all_came,
        prevention="Set cache_control when the request is made, not on stored messages.",
    ),
    Rule(
        rendered.many_images,
        "More than 100 images",
        {
            ANTHROPIC: Law(
                "conditional",
                "Too much media: 0 document pages + {length} images > 100",
                f"{_GITHUB}anthropics/claude-code/issues/19822",
                condition="this maximum applies to models with a context window of 200,000 tokens",
                refusing=r"claude-([123]|instant|haiku-4|[a-z]+-4(-[0-5]\b|\.[0-5]\b|-2025|$))",
                date="2026-01",
                conflict=f"up to 600 with a window of 1M tokens: {PICTURES_PAGE}",
            ),
        },
        bad=[{"role": "user", "content": [picture("image/png")] * 101}],
        good=[{"role": "user", "content": [picture("image/png")] * 100}],
        began="memory got more than 100 images",
        since=since.when_all_came,
        prevention="Set a limit that holds fewer messages with images.",
    ),
    Rule(
        rendered.other_media_type,
        "An image whose bytes differ from its declared type",
        {
            ANTHROPIC: Law(
                "refused",
                "messages.{at}.content.0.image.source.base64: The image was specified using the "
                "{told} media type, but the image appears to be a {found} image",
                f"{_GITHUB}vybestack/llxprt-code/issues/2130",
                date="2026-06",
            ),
        },
        bad=[{"role": "user", "content": [picture("image/gif")]}],
        good=[{"role": "user", "content": [picture("image/png")]}],
        began="an image whose bytes differ from its declared type was added",
        since=since.when_it_came,
        prevention="Read the media type of images from their bytes.",
    ),
    Rule(
        rendered.unsigned_call,
        "A tool call without its thoughtSignature",
        {
            GEMINI: Law(
                "conditional",
                "Function call is missing a thought_signature in functionCall parts. This is "
                "required for tools to work correctly, and missing thought_signature may lead to "
                "degraded model performance. Additional data, function call `default_api:{name}`, "
                "position {at}.",
                _SIGNATURES,
                condition=(
                    "only Gemini 3 and later models need the signature of the first tool call "
                    "of each step"
                ),
                refusing=_GEMINI_3,
                taking=_GEMINI_BEFORE,
                date="2025-11",
            ),
        },
        bad=PAIR,
        good=[
            {"role": "user", "parts": [{"text": "When is it due?"}]},
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"name": "find", "args": {}}, "thoughtSignature": "c2ln"}
                ],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "find", "response": {"result": "a"}}}],
            },
        ],
        began="a tool call without its thoughtSignature was added",
        since=since.unknown,
        prevention="Keep Gemini's answers as it gives them. For calls of other providers, Google "
        "documents the signature skip_thought_signature_validator.",
    ),
    Rule(
        rendered.unsigned_earlier_call,
        "An earlier tool call without its thoughtSignature",
        {GEMINI: Law("mishandled", "", _SIGNATURES, date="2025-11")},
        bad=[*PAIR, HI, HELLO],
        good=[HELLO],
        began="a tool call without its thoughtSignature was added",
        since=since.unknown,
        is_listed=False,
    ),
    Rule(
        rendered.empty_part,
        "An empty message part",
        {
            GEMINI: Law(
                "refused",
                "Unable to submit request because it has an empty text parameter. Add a value to "
                "the parameter and try again.",
                f"{_GITHUB}Portkey-AI/gateway/issues/462",
                date="2024-07",
                conflict="reported for Vertex AI",
            ),
        },
        bad=[{"role": "user", "parts": [{"text": "When is it due?"}, {"text": ""}]}],
        good=[{"role": "user", "parts": [{"text": "When is it due?"}]}],
        began="a message with an empty part was added",
        since=since.when_it_came,
        prevention="Remove empty parts before you add an answer.",
    ),
    Rule(
        rendered.repeated_item,
        "Two items with the same ID",
        {
            RESPONSES: Law(
                "refused",
                "Duplicate item found with id {id}. Remove duplicate items from your input and "
                "try again.",
                f"{_GITHUB}vercel/ai/issues/7883",
                date="2025-08",
            ),
        },
        bad=[
            ASKED,
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"},
            {**call_item("1"), "id": "fc_1"},
            {"type": "function_call_output", "call_id": "1", "output": "found"},
            {**call_item("2"), "id": "fc_1"},
            {"type": "function_call_output", "call_id": "2", "output": "found"},
        ],
        good=[
            ASKED,
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"},
            {**call_item("1"), "id": "fc_1"},
            {"type": "function_call_output", "call_id": "1", "output": "found"},
        ],
        began="an item with the ID of an earlier item was added",
        since=since.when_all_came,
        prevention="Add each item of an answer once.",
    ),
    Rule(
        rendered.call_without_reasoning,
        "A tool call without its reasoning item",
        {
            RESPONSES: Law(
                "conditional",
                "Item '{id}' of type 'function_call' was provided without its required "
                "'reasoning' item",
                f"{_GITHUB}continuedev/continue/issues/10018",
                condition=(
                    "only if a reasoning item led to this tool call, and OpenAI has stored the call"
                ),
                taking=r"gpt-(3|4)|chatgpt",
                date="2026-01",
                conflict="gpt-5.4 accepted this where it had not reasoned (recorded)",
            ),
        },
        bad=[
            ASKED,
            {**call_item("1"), "id": "fc_1"},
            {"type": "function_call_output", "call_id": "1", "output": "found"},
        ],
        good=[
            ASKED,
            call_item("1"),
            {"type": "function_call_output", "call_id": "1", "output": "found"},
        ],
        began="a tool call was without its reasoning item",
        since=since.when_it_came,
        prevention=(
            "Store reasoning items with their tool calls, or remove the item IDs of the tool calls."
        ),
    ),
    Rule(
        rendered.stored_item,
        "An item that only OpenAI has stored",
        {
            RESPONSES: Law(
                "conditional",
                "Item with id '{id}' not found. Items are not persisted when `store` is set to "
                "false. Try again with `store` set to true, or remove this item from your input.",
                f"{_GITHUB}vercel/ai/issues/7543",
                condition="only where `store` is false: OpenAI then stores no items, so an ID "
                "names nothing",
                date="2025-07",
            ),
        },
        bad=[
            ASKED,
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {**call_item("1"), "id": "fc_1"},
            {"type": "function_call_output", "call_id": "1", "output": "found"},
        ],
        good=[
            ASKED,
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"},
            {**call_item("1"), "id": "fc_1"},
            {"type": "function_call_output", "call_id": "1", "output": "found"},
        ],
        began="an item that only OpenAI has stored was added",
        since=since.when_it_came,
        is_listed=False,
    ),
    Rule(
        rendered.call_without_thinking,
        "A tool call without its reasoning_content",
        {
            DEEPSEEK: Law(
                "conditional",
                "Missing `reasoning_content` field in the assistant message at message index {at}.",
                "https://api-docs.deepseek.com/guides/thinking_mode",
                condition="in thinking mode, requests must send the reasoning_content of tool "
                "calls back",
                refusing=r"reasoner",
                taking=r"deepseek-chat|coder",
                date="2025-12",
                conflict="the first deepseek-reasoner rejected reasoning_content",
            ),
        },
        bad=PAIR,
        good=[
            ASKED,
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "Look it up.",
                "tool_calls": [
                    {
                        "id": "1",
                        "type": "function",
                        "function": {"name": "find", "arguments": "{}"},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "1", "content": "found"},
        ],
        began="a tool call without its reasoning_content was added",
        since=since.when_it_came,
        prevention="Store DeepSeek's answers unchanged.",
    ),
    Rule(
        rendered.system_role,
        "The role system, which some models do not accept",
        {
            OPENAI: Law(
                "conditional",
                "Unsupported value: 'messages[{at}].role' does not support 'system' with this "
                "model.",
                f"{RECORDED}test_openai/test_openai_o1_mini_system_role%5Bsystem%5D.yaml",
                condition="only o1-mini and o1-preview reject the role system",
                refusing=_O1_MINI,
                taking=_OTHERS_OF_OPENAI,
                date="2025-01",
            ),
        },
        bad=[BE_BRIEF, HELLO],
        good=[HELLO],
        began="a message with the role system was added",
        since=since.when_it_came,
        is_listed=False,
    ),
    Rule(
        rendered.long_window,
        "More tokens than the context window of the model",
        {
            OPENAI: Law(
                "conditional",
                "This model's maximum context length is {most} tokens. However, your messages "
                "resulted in {length} tokens. Please reduce the length of the messages.",
                "https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json",
                condition="the context window depends on the model",
                refusing=rendered.KNOWN_CONTEXTS,
                sure=rendered.SMALLEST_CONTEXTS,
                date="2026-11",
            ),
        },
        bad=[UserMessage("due? " * 65_000)] * 2,
        good=[UserMessage("due? ")],
        began="memory grew beyond the context window",
        since=since.unknown,
        prevention="Set a token limit below the context window of the model.",
    ),
    Rule(
        "role_order",
        "Roles in an order that the provider does not accept",
        {
            MISTRAL: Law(
                "refused",
                "Unexpected role '{role}' after role '{before}'",
                f"{_GITHUB}datapizza-labs/datapizza-ai/issues/98",
                _OF_MISTRAL.faults,
                date="2025-12",
                conflict="mistral-common takes a user after a tool since 2026-04: "
                f"{_GITHUB}mistralai/mistral-common/pull/218",
            ),
            BEDROCK: Law(
                "refused",
                "A conversation must alternate between user and assistant roles. Make sure the "
                "conversation alternates between user and assistant roles and try again.",
                f"{_GITHUB}langchain-ai/langchain-aws/issues/130",
                OF_BEDROCK.faults,
                date="2024-08",
            ),
        },
        bad=[DUE, call("a1B2c3D4e"), result("a1B2c3D4e"), DUE],
        good=[DUE, call("a1B2c3D4e"), result("a1B2c3D4e"), HI, DUE],
        began="messages came in an order of roles that the provider does not accept",
        since=since.unknown,
        prevention=(
            "Join messages of the same role. Add an answer to tool results before the next user "
            "message."
        ),
    ),
    Rule(
        rendered.blank_content,
        "A blank message or tool result",
        {
            BEDROCK: Law(
                "refused",
                "The text field in the ContentBlock object at messages.{at}.content.0 is blank. "
                "Add text to the text field, and try again.",
                f"{_GITHUB}NousResearch/hermes-agent/issues/55092",
                date="2026-06",
            ),
        },
        bad=[*PAIR[:2], ToolExecutionResultMessage("1", "find", "")],
        good=PAIR,
        began="a blank message or tool result was added",
        since=since.when_it_came,
        prevention="If a tool returns nothing, store a result text that says this.",
    ),
]
