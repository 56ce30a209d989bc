"""The rules, as data: who minds what, in which words, from which source, with two examples."""

from __future__ import annotations

from typing import Any

from chatmemory.core.contents import ImageContent, PdfFile, PdfFileContent, Video, VideoContent
from chatmemory.core.lint import rules, since
from chatmemory.core.lint.rules import RECORDED, Law, Rule
from chatmemory.core.lint.turns import ANTHROPIC, GEMINI, OPENAI, RESPONSES
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)

_CHAT = "https://platform.openai.com/docs/api-reference/chat/create"
_RESPONSES = "https://platform.openai.com/docs/api-reference/responses/create"
_VISION = "https://platform.openai.com/docs/guides/images-vision"
_MESSAGES = "https://platform.claude.com/docs/en/api/messages"
_TOOLS = "https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls"
_PICTURES = "https://platform.claude.com/docs/en/build-with-claude/vision"
_CONTENT = "https://ai.google.dev/api/generate-content"
_FUNCTIONS = "https://ai.google.dev/gemini-api/docs/function-calling"
_MEDIA = "https://ai.google.dev/gemini-api/docs/image-understanding"


def _refused(error: str, source: str) -> Law:
    return Law("refused", error, source)


def _mishandled(source: str, error: str = "") -> Law:
    return Law("mishandled", error, source)


# Messages of the examples


def _call(*ids: str | None, arguments: str = "{}") -> AiMessage:
    return AiMessage(None, [ToolExecutionRequest(id, "find", arguments) for id in ids])


def _result(id: str | None) -> ToolExecutionResultMessage:
    return ToolExecutionResultMessage(id, "find", "found")


def _said_by_developer() -> SystemMessage:
    said = {"at": "system#0", "=": {"content": {"$": ["text", 0, 9, 9]}, "role": "developer"}}
    return SystemMessage("Be brief.", {"openai_chat": {"differs": {"items": [said]}}})


def _reasoned(answer: Any) -> AiMessage:
    """Return an answer with a reasoning item before its own one."""
    reasoning = {"=": {"id": "rs_1", "summary": [], "type": "reasoning"}}
    inner = {"items": {"items": [reasoning, answer]}}
    differs = {"items": [{"at": "items#0", "in": inner}]}
    return AiMessage("It is due.", attributes={"openai_responses": {"differs": differs}})


def _sound_as_file() -> ToolExecutionResultMessage:
    url = "https://example.org/a.mp3"
    parts = {"=": [{"file_url": url, "type": "input_file"}], "was": 945589691}
    said = {"at": "function_call_output#0", "in": {"output": parts}}
    own = {"openai_responses": {"differs": {"items": [said]}}}
    return ToolExecutionResultMessage("1", "find", f"[file {url}]", attributes=own)


def _shown(name: str) -> UserMessage:
    return UserMessage([ImageContent(f"https://example.org/{name}")])


_BE_BRIEF = SystemMessage("Be brief.")
_HELLO = UserMessage("Hello")
_DUE = UserMessage("When is it due?")
_HI = AiMessage("Hi")
_PDF = PdfFileContent(PdfFile("https://example.org/a.pdf"))
_PAIR: list[ChatMessage] = [_DUE, _call("1"), _result("1")]

# The rules

_RESULT_TURN = _refused(
    "Please ensure that function response turn comes immediately after a function call turn.",
    _FUNCTIONS,
)
_AS_MANY_RESULTS = _refused(
    "Please ensure that the number of function response parts is equal to the number "
    "of function call parts of the function call turn.",
    _FUNCTIONS,
)
_ONE_OUTPUT = _refused(
    "Duplicate function_call_output for call_id '{id}'. Each function_call must have "
    "exactly one matching function_call_output",
    "https://github.com/NousResearch/hermes-agent/issues/102629",
)

_ALL = [
    Rule(
        rules.nothing_to_send,
        "There is nothing to send",
        {
            OPENAI: _refused(
                "Invalid 'messages': empty array. Expected an array with minimum length 1, but "
                "got an empty array instead.",
                _CHAT,
            ),
            RESPONSES: _refused("Missing required parameter: 'input'.", _RESPONSES),
            ANTHROPIC: _refused("messages: at least one message is required", _MESSAGES),
            GEMINI: _refused(
                "* GenerateContentRequest.contents: contents is not specified", _CONTENT
            ),
        },
        bad=[],
        good=[_HELLO],
        began="nothing was in memory",
        since=since.unknown,
        is_listed=False,
    ),
    Rule(
        rules.orphan_result,
        "A tool result without its call",
        {
            OPENAI: _refused(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
                "message with 'tool_calls'.",
                "https://github.com/BerriAI/litellm/issues/4931",
            ),
            RESPONSES: _refused(
                "No tool call found for function call output with call_id {id}.",
                "https://github.com/vercel/ai/issues/8216",
            ),
            ANTHROPIC: _refused(
                "messages.{at}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: "
                "{id}. Each `tool_result` block must have a corresponding `tool_use` block in the "
                "previous message.",
                "https://github.com/anthropics/claude-code/issues/18947",
            ),
            GEMINI: _RESULT_TURN,
        },
        bad=[_DUE, _result("1"), _HI],
        good=_PAIR,
        began="the call of a tool result was not in memory",
        since=since.when_its_call_left,
        repairs=("drop_result",),
    ),
    Rule(
        rules.dangling_call,
        "A tool call without its result",
        {
            OPENAI: _refused(
                "An assistant message with 'tool_calls' must be followed by tool messages "
                "responding to each 'tool_call_id'. The following tool_call_ids did not have "
                "response messages: {ids}",
                "https://github.com/minoism/freecc/issues/2",
            ),
            RESPONSES: _refused(
                "No tool output found for function call {ids}.",
                "https://github.com/bytedance/trae-agent/issues/245",
            ),
            ANTHROPIC: _refused(
                "messages.{at}: `tool_use` ids were found without `tool_result` blocks "
                "immediately after: {ids}. Each `tool_use` block must have a corresponding "
                "`tool_result` block in the next message.",
                "https://github.com/anthropics/claude-code/issues/8210",
            ),
            GEMINI: _AS_MANY_RESULTS,
        },
        bad=[_DUE, _call("1", "2"), _result("1"), _HELLO],
        good=[_DUE, _call("1", "2"), _result("2"), _result("1"), _HELLO],
        began="another message followed a tool call before its result",
        since=since.when_it_was_passed,
        repairs=("add_placeholder",),
    ),
    Rule(
        rules.results_apart,
        "A tool result that is not directly behind its call",
        {
            OPENAI: _refused(
                "An assistant message with 'tool_calls' must be followed by tool messages "
                "responding to each 'tool_call_id'. The following tool_call_ids did not have "
                "response messages: {id}",
                "https://github.com/minoism/freecc/issues/2",
            ),
            RESPONSES: _refused(
                "No tool call found for function call output with call_id {id}.",
                "https://github.com/leookun/cursor-byok/issues/307",
            ),
            ANTHROPIC: _refused(
                "messages.{call}: `tool_use` ids were found without `tool_result` blocks "
                "immediately after: {id}. Each `tool_use` block must have a corresponding "
                "`tool_result` block in the next message.",
                "https://github.com/anthropics/claude-code/issues/8210",
            ),
            GEMINI: _RESULT_TURN,
        },
        bad=[_DUE, _result("1"), _call("1"), _HELLO],
        good=[*_PAIR, _HELLO],
        began="a tool result was not directly behind its call",
        since=since.when_both_came,
        repairs=("move_result",),
    ),
    Rule(
        rules.duplicate_result,
        "Two results of one tool call",
        {
            OPENAI: _refused(
                "Invalid parameter: Duplicate value for 'tool_call_id' of '{id}', in "
                "messages[{other}] and messages[{at}].",
                "https://github.com/agno-agi/agno/issues/5116",
            ),
            RESPONSES: _ONE_OUTPUT,
            ANTHROPIC: _refused(
                "messages.{at}.content.1: each tool_use must have a single result. Found multiple "
                "`tool_result` blocks with id: {id}",
                _TOOLS,
            ),
            GEMINI: _AS_MANY_RESULTS,
        },
        bad=[*_PAIR, _result("1")],
        good=_PAIR,
        began="a second result of one tool call came",
        since=since.when_both_came,
        repairs=("drop_duplicate",),
    ),
    Rule(
        rules.duplicate_call_id,
        "Two tool calls of one message with the same id",
        {
            OPENAI: _refused(
                "Invalid parameter: Duplicate value for 'tool_call_id' of '{id}'.",
                "https://github.com/openclaw/openclaw/pull/47136",
            ),
            RESPONSES: _ONE_OUTPUT,
            ANTHROPIC: _refused(
                "messages.{at}.content.1: `tool_use` ids must be unique",
                "https://github.com/anthropics/claude-code/issues/28515",
            ),
            GEMINI: _mishandled(_FUNCTIONS),
        },
        bad=[_DUE, _call("1", "1"), _result("1"), _result("1")],
        good=[_DUE, _call("1", "2"), _result("1"), _result("2")],
        began="tool calls of one message came with the same id",
        since=since.when_it_came,
    ),
    Rule(
        rules.reused_call_id,
        "Tool calls of two messages with the same id",
        {
            RESPONSES: _ONE_OUTPUT,
            ANTHROPIC: _refused(
                "messages.{at}.content.0: `tool_use` ids must be unique",
                "https://github.com/anthropics/claude-code/issues/28515",
            ),
            GEMINI: _mishandled(_FUNCTIONS),
        },
        bad=[*_PAIR, _call("1"), _result("1")],
        good=[*_PAIR, _call("2"), _result("2")],
        began="a tool call came with the id of an earlier one",
        since=since.when_all_came,
    ),
    Rule(
        rules.missing_call_id,
        "A tool call or a result without an id",
        # Not refused: whatever sends the messages must make ids up, as our formats do.
        {
            OPENAI: _mishandled(
                "https://github.com/langchain-ai/langchain/issues/22600",
                "Missing parameter 'tool_call_id': messages with role 'tool' must have a "
                "'tool_call_id'.",
            ),
            RESPONSES: _mishandled(
                _RESPONSES, "Missing required parameter: 'input[{at}].call_id'."
            ),
            ANTHROPIC: _mishandled(
                "https://github.com/anomalyco/opencode/issues/1279",
                "messages.{at}.content.0.tool_use.id: String should match pattern "
                "'^[a-zA-Z0-9_-]+$'",
            ),
        },
        bad=[_DUE, _call(None), _result(None)],
        good=_PAIR,
        began="a tool call or a result came without an id",
        since=since.when_it_came,
    ),
    Rule(
        rules.bad_arguments,
        "Arguments of a tool call that are not a JSON object",
        {
            OPENAI: _mishandled(_CHAT),
            RESPONSES: _mishandled(_RESPONSES),
            ANTHROPIC: _refused(
                "messages.{at}.content.0.tool_use.input: Input should be a valid dictionary",
                "https://github.com/anthropics/claude-code/issues/6696",
            ),
            GEMINI: _refused(
                "Invalid value at 'contents[{at}].parts[0].function_call.args' "
                "(type.googleapis.com/google.protobuf.Struct)",
                _CONTENT,
            ),
        },
        bad=[_DUE, _call("1", arguments="[1]"), _result("1")],
        good=_PAIR,
        began="a tool call came whose arguments are not a JSON object",
        since=since.when_it_came,
    ),
    Rule(
        rules.call_after_model,
        "A tool call that does not follow a user or a tool result",
        {
            GEMINI: _refused(
                "Please ensure that function call turn comes immediately after a user turn or "
                "after a function response turn.",
                _FUNCTIONS,
            )
        },
        bad=[_call("1"), _result("1")],
        good=_PAIR,
        began="a tool call followed neither a user nor a tool result",
        since=since.when_it_followed_the_model,
    ),
    Rule(
        rules.empty_content,
        "A message without content",
        {
            ANTHROPIC: _refused(
                "messages.{at}: all messages must have non-empty content except for the optional "
                "final assistant message",
                "https://github.com/microsoft/autogen/issues/6083",
            ),
            GEMINI: _refused(
                "* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.",
                _CONTENT,
            ),
        },
        bad=[_HELLO, AiMessage(""), _DUE],
        good=[_HELLO, _HI, _DUE],
        began="a message without content came",
        since=since.when_it_came,
    ),
    Rule(
        rules.null_content,
        "An AI message with neither a text nor a tool call",
        {
            OPENAI: _refused(
                "Invalid value for 'content': expected a string, got null.",
                "https://github.com/run-llama/llama_index/issues/17555",
            ),
            RESPONSES: _mishandled(_RESPONSES),
        },
        bad=[_HELLO, AiMessage(None), _DUE],
        good=[_HELLO, AiMessage(""), _DUE],
        began="a message came with neither a text nor a tool call",
        since=since.when_it_came,
    ),
    Rule(
        rules.unsupported_image,
        "An image of a kind that is not taken",
        {
            OPENAI: _refused(
                "You uploaded an unsupported image. Please make sure your image has of one the "
                "following formats: ['png', 'jpeg', 'gif', 'webp'].",
                "https://github.com/STranslate/STranslate/issues/277",
            ),
            RESPONSES: _refused(
                "You uploaded an unsupported image. Please make sure your image has of one the "
                "following formats: ['png', 'jpeg', 'gif', 'webp'].",
                _VISION,
            ),
            ANTHROPIC: _refused(
                "messages.{at}.content.0.image.source.base64.media_type: Input should be "
                "'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
                _PICTURES,
            ),
            GEMINI: _refused("Unsupported MIME type: {kind}", _MEDIA),
        },
        bad=[_shown("a.tiff")],
        good=[_shown("a.png")],
        began="an image came of a kind that is not taken",
        since=since.when_it_came,
    ),
    Rule(
        rules.unsupported_file,
        "A file of a kind that is not taken",
        {
            RESPONSES: _refused(
                "The file type you uploaded is not supported. Please try again with a pdf",
                f"{RECORDED}test_multimodal_tool_returns/test_multimodal_tool_return_matrix"
                "%5Bdirect-url-audio-openai_responses%5D.yaml",
            )
        },
        bad=[_DUE, _call("1"), _sound_as_file()],
        good=[_DUE, _call("1"), ToolExecutionResultMessage("1", "find", [_PDF])],
        began="a file came of a kind that is not taken",
        since=since.when_it_came,
    ),
    Rule(
        rules.media_left_out,
        "An image, a sound, a video or a file that is not sent",
        {
            OPENAI: _mishandled(_CHAT),
            RESPONSES: _mishandled(_RESPONSES),
            ANTHROPIC: _mishandled(_MESSAGES),
        },
        bad=[UserMessage([VideoContent(Video("https://example.org/a.mp4"))])],
        good=[_shown("a.png")],
        began="media came that are not sent",
        since=since.when_it_came,
    ),
    Rule(
        rules.lone_reasoning,
        "Reasoning without the item that it led to",
        {
            RESPONSES: _refused(
                "Item '{id}' of type 'reasoning' was provided without its required following item.",
                f"{RECORDED}test_openai_responses/"
                "test_openai_responses_thinking_with_modified_history.yaml",
            )
        },
        bad=[_DUE, _reasoned("assistant#0"), _HELLO],
        good=[_DUE, _reasoned({"at": "assistant#0", "in": {"id": {"=": "msg_1"}}}), _HELLO],
        began="reasoning was without the item that it led to",
        since=since.when_what_follows_came,
    ),
    Rule(
        rules.developer_role,
        "The role developer, which some models do not have",
        {
            OPENAI: _mishandled(
                f"{RECORDED}test_openai/test_openai_o1_mini_system_role%5Bdeveloper%5D.yaml",
                "Unsupported value: 'messages[{at}].role' does not support 'developer' with this "
                "model.",
            )
        },
        bad=[_said_by_developer(), _HELLO],
        good=[_BE_BRIEF, _HELLO],
        began="a message of the role developer came",
        since=since.when_it_came,
    ),
    Rule(
        rules.first_not_user,
        "A first message that is not the user's",
        {
            ANTHROPIC: _mishandled(
                f"{RECORDED}test_anthropic/test_anthropic_model_empty_message_on_history.yaml"
            ),
            GEMINI: _mishandled(_CONTENT),
        },
        bad=[_HI, _DUE],
        good=[_HELLO, _HI, _DUE],
        began="the first message was not the user's",
        since=since.when_it_became_first,
    ),
    Rule(
        rules.equal_roles,
        "Two messages in a row of one role",
        {
            ANTHROPIC: _mishandled(
                f"{RECORDED}test_anthropic_mid_conversation_system/"
                "test_mid_conversation_system_prompt_before_empty_response.yaml"
            ),
            GEMINI: _mishandled(_CONTENT),
        },
        bad=[_HELLO, _DUE],
        good=[_HELLO, _HI, _DUE],
        began="two messages of one role followed each other",
        since=since.unknown,
        is_listed=False,
    ),
    Rule(
        rules.system_in_middle,
        "A system message that is not at the beginning",
        {
            ANTHROPIC: _mishandled(
                f"{RECORDED}test_anthropic_mid_conversation_system/"
                "test_mid_conversation_system_prompt_without_user_turn.yaml"
            ),
            GEMINI: _mishandled(_CONTENT),
        },
        bad=[_HELLO, _BE_BRIEF, _HI, _DUE],
        good=[_BE_BRIEF, _HELLO, _HI, _DUE],
        began="a system message was not at the beginning",
        since=since.when_it_was_behind_others,
        repairs=("system_first",),
    ),
    Rule(
        rules.several_systems,
        "More than one system message",
        {ANTHROPIC: _mishandled(_MESSAGES), GEMINI: _mishandled(_CONTENT)},
        bad=[_BE_BRIEF, _BE_BRIEF, _HELLO],
        good=[_BE_BRIEF, _HELLO],
        began="there was more than one system message",
        since=since.when_two_came,
        repairs=("drop_duplicate",),
    ),
    Rule(
        rules.shorter_than_a_turn,
        "A window shorter than one turn",
        {},
        bad=[_call("1"), _result("1")],
        good=[*_PAIR],
        began="no message of the user was left in memory",
        since=since.when_no_user_was_left,
    ),
]
RULES = {rule.id: rule for rule in _ALL}
