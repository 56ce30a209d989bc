"""The rules of providers about messages: tool calls and results, roles and contents."""

# Long: a catalog of rules, which are read one by one and share nothing.
from __future__ import annotations

from chatmemory.lint import checks, rendered, since
from chatmemory.lint.catalog.examples import (
    BE_BRIEF,
    CHAT_PAGE,
    CONTENT_PAGE,
    CONVERSE_PAGE,
    DEEPSEEK_PAGE,
    DUE,
    FUNCTION_CALL_PAGE,
    GITHUB,
    HELLO,
    HI,
    MISTRAL_CHECKS,
    PAIR,
    PDF,
    RESPONSES_PAGE,
    call,
    developer_message,
    image_message,
    mishandled,
    reasoned,
    refused,
    result,
    sound_as_file,
)
from chatmemory.lint.rules import RECORDED, Law, Rule
from chatmemory.lint.turns import ANTHROPIC, BEDROCK, DEEPSEEK, GEMINI, MISTRAL, OPENAI, RESPONSES
from chatmemory.messages.contents import Video, VideoContent
from chatmemory.messages.message import AiMessage, ToolExecutionResultMessage, UserMessage

# The rules

_SAME_NUMBER = refused(
    "Not the same number of function calls and responses",
    "mistralai/client-ts/issues/106",
    date="2025-06",
)
_TOOL_USES = refused(
    "Expected toolResult blocks at messages.{at}.content for the following Ids: {ids}",
    "camel-ai/camel/issues/3954",
    date="2026-03",
)
_TOOL_RESULTS = refused(
    "The number of toolResult blocks at messages.{at}.content exceeds the number of toolUse "
    "blocks of previous turn.",
    "langgenius/dify-official-plugins/issues/765",
    date="2025-04",
)
_ANSWERED_BY = refused(
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. (insufficient tool messages following tool_calls message)",
    "langgenius/dify/issues/32222",
    date="2026-02",
)
_RESULT_TURN = refused(
    "Please ensure that function response turn comes immediately after a function call turn.",
    "lobehub/lobehub/issues/7298",
    date="2025-04",
)
_AS_MANY_RESULTS = refused(
    "Please ensure that the number of function response parts is equal to the number "
    "of function call parts of the function call turn.",
    "google-gemini/gemini-cli/issues/4217",
    date="2025-07",
)
_ONE_OF_AN_ID = refused(
    "Duplicate value for 'tool_call_id' of {id} in message[{at}]",
    "craft-ai-agents/craft-agents-oss/issues/630",
    date="2026-04",
)
_ONE_OUTPUT = refused(
    "Duplicate function_call_output for call_id '{id}'. Each function_call must have "
    "exactly one matching function_call_output",
    "https://github.com/NousResearch/hermes-agent/issues/102629",
    date="2026-09",
)

_SNAPPING = (
    "Set the policy option snap_to_user, and a limit that holds the longest turn. Memory then "
    "starts at a user message."
)

_RECOVERING = (
    "Set the policy option auto_recover_orphaned_tool_messages. Memory then leaves out such a tool "
    "call until its results have come."
)

SHAPE = [
    Rule(
        checks.nothing_to_send,
        "No message to send",
        {
            OPENAI: refused(
                "Invalid 'messages': empty array. Expected an array with minimum length 1, but "
                "got an empty array instead.",
                "CopilotKit/CopilotKit/issues/529",
                date="2024-08",
            ),
            RESPONSES: refused("Missing required parameter: 'input'.", RESPONSES_PAGE),
            ANTHROPIC: refused(
                "messages: at least one message is required",
                "devoxx/DevoxxGenieIDEAPlugin/issues/567",
                date="2025-03",
            ),
            GEMINI: refused(
                "* GenerateContentRequest.contents: contents is not specified",
                "langchain-ai/langchain-google/issues/1393",
                date="2025-11",
            ),
            MISTRAL: refused(
                "Conversation must have at least one message", MISTRAL_CHECKS, date="2026-06"
            ),
            BEDROCK: refused(
                "A conversation must start with a user message. Try again with a conversation that "
                "starts with a user message.",
                "langgenius/dify/issues/12340",
                date="2025-01",
            ),
            DEEPSEEK: refused("Empty input messages", DEEPSEEK_PAGE),
        },
        bad=[],
        good=[HELLO],
        began="memory had no message",
        since=since.unknown,
        is_listed=False,
    ),
    Rule(
        checks.orphan_result,
        "A tool result without its tool call",
        {
            OPENAI: refused(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
                "message with 'tool_calls'.",
                "miurla/morphic/issues/136",
                date="2024-05",
            ),
            RESPONSES: refused(
                "No tool call found for function call output with call_id {id}.",
                "continuedev/continue/issues/10092",
                date="2026-02",
            ),
            ANTHROPIC: refused(
                "messages.{at}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: "
                "{id}. Each `tool_result` block must have a corresponding `tool_use` block in the "
                "previous message.",
                "https://github.com/anthropics/claude-code/issues/18947",
                date="2026-01",
            ),
            GEMINI: _RESULT_TURN,
            MISTRAL: refused(
                "Unexpected role 'tool' after role '{before}'",
                "charmbracelet/crush/issues/279",
                date="2025-07",
            ),
            BEDROCK: _TOOL_RESULTS,
            DEEPSEEK: refused(
                "Messages with role 'tool' must be a response to a preceding message with "
                "'tool_calls'",
                "FoundationAgents/OpenManus/issues/23",
                date="2025-03",
            ),
        },
        bad=[DUE, result("1"), HI],
        good=PAIR,
        began="the tool call of a tool result was not in memory",
        since=since.when_its_call_left,
        repairs=("drop_result",),
    ),
    Rule(
        checks.dangling_call,
        "A tool call without its result",
        {
            OPENAI: refused(
                "An assistant message with 'tool_calls' must be followed by tool messages "
                "responding to each 'tool_call_id'. The following tool_call_ids did not have "
                "response messages: {ids}",
                "https://github.com/minoism/freecc/issues/2",
                date="2025-07",
            ),
            RESPONSES: refused(
                "No tool output found for function call {ids}.",
                "https://github.com/bytedance/trae-agent/issues/245",
                date="2025-08",
            ),
            ANTHROPIC: refused(
                "messages.{at}: `tool_use` ids were found without `tool_result` blocks "
                "immediately after: {ids}. Each `tool_use` block must have a corresponding "
                "`tool_result` block in the next message.",
                "https://github.com/anthropics/claude-code/issues/8210",
                date="2025-09",
            ),
            GEMINI: _AS_MANY_RESULTS,
            MISTRAL: _SAME_NUMBER,
            BEDROCK: _TOOL_USES,
            DEEPSEEK: _ANSWERED_BY,
        },
        bad=[DUE, call("1", "2"), result("1"), HELLO],
        good=[DUE, call("1", "2"), result("2"), result("1"), HELLO],
        began="another message followed a tool call before its result",
        since=since.when_it_was_passed,
        repairs=("add_placeholder",),
        prevention=_RECOVERING,
        by_policy=True,
    ),
    Rule(
        checks.results_apart,
        "A tool result that does not directly follow its tool call",
        {
            OPENAI: refused(
                "An assistant message with 'tool_calls' must be followed by tool messages "
                "responding to each 'tool_call_id'. The following tool_call_ids did not have "
                "response messages: {id}",
                "https://github.com/minoism/freecc/issues/2",
                date="2025-07",
            ),
            RESPONSES: refused(
                "No tool call found for function call output with call_id {id}.",
                "https://github.com/leookun/cursor-byok/issues/307",
                date="2026-08",
            ),
            ANTHROPIC: refused(
                "messages.{call}: `tool_use` ids were found without `tool_result` blocks "
                "immediately after: {id}. Each `tool_use` block must have a corresponding "
                "`tool_result` block in the next message.",
                "https://github.com/anthropics/claude-code/issues/8210",
                date="2025-09",
            ),
            GEMINI: _RESULT_TURN,
            MISTRAL: _SAME_NUMBER,
            BEDROCK: _TOOL_USES,
            DEEPSEEK: _ANSWERED_BY,
        },
        bad=[DUE, result("1"), call("1"), HELLO],
        good=[*PAIR, HELLO],
        began="a tool result did not directly follow its tool call",
        since=since.when_both_came,
        repairs=("move_result",),
    ),
    Rule(
        checks.duplicate_result,
        "Two results for one tool call",
        {
            OPENAI: refused(
                "Invalid parameter: Duplicate value for 'tool_call_id' of '{id}', in "
                "messages[{other}] and messages[{at}].",
                "fatwang2/search2ai/issues/30",
                date="2024-06",
            ),
            RESPONSES: _ONE_OUTPUT,
            ANTHROPIC: refused(
                "messages.{at}.content.1: each tool_use must have a single result. Found multiple "
                "`tool_result` blocks with id: {id}",
                "sipeed/picoclaw/pull/1793",
                date="2026-03",
            ),
            GEMINI: _AS_MANY_RESULTS,
            MISTRAL: _SAME_NUMBER,
            BEDROCK: _TOOL_RESULTS,
            DEEPSEEK: _ONE_OF_AN_ID,
        },
        bad=[*PAIR, result("1")],
        good=PAIR,
        began="a second result for the same tool call was added",
        since=since.when_both_came,
        repairs=("drop_duplicate",),
    ),
    Rule(
        checks.duplicate_call_id,
        "Two tool calls with the same ID in one message",
        {
            OPENAI: refused(
                "Invalid parameter: Duplicate value for 'tool_call_id' of '{id}'.",
                "neuron-core/neuron-ai/issues/46",
                date="2025-04",
            ),
            RESPONSES: _ONE_OUTPUT,
            ANTHROPIC: refused(
                "messages.{at}.content.1: `tool_use` ids must be unique",
                "NVIDIA-NeMo/Switchyard/issues/502",
                date="2026-09",
            ),
            GEMINI: mishandled("TanStack/ai/pull/199", date="2026-01"),
            MISTRAL: mishandled(MISTRAL_CHECKS, date="2026-06"),
            BEDROCK: refused(
                "The toolUse blocks at messages.{at}.content contain duplicate Ids: {id}",
                "bvcyber/Cyber-AutoAgent-ng/issues/72",
                date="2026-01",
            ),
            DEEPSEEK: _ONE_OF_AN_ID,
        },
        bad=[DUE, call("1", "1"), result("1"), result("1")],
        good=[DUE, call("1", "2"), result("1"), result("2")],
        began="a message with two tool calls of the same ID was added",
        since=since.when_it_came,
    ),
    Rule(
        checks.reused_call_id,
        "Tool calls with the same ID in two messages",
        {
            RESPONSES: _ONE_OUTPUT,
            # Accepted where it was recorded, twice, and refused as users reported
            ANTHROPIC: mishandled(
                f"{RECORDED}test_tool_search/test_cross_provider_capability_replay"
                "%5Bgoogle-gemini-3-flash-preview-anthropic-claude-sonnet-4-5%5D.yaml",
                date="2026-06",
                conflict=f"reported as rejected: {GITHUB}anthropics/claude-code/issues/28515",
            ),
            GEMINI: mishandled("brainlid/langchain/pull/620", date="2026-08"),
            BEDROCK: mishandled(CONVERSE_PAGE),
            DEEPSEEK: _ONE_OF_AN_ID,
        },
        bad=[*PAIR, call("1"), result("1")],
        good=[*PAIR, call("2"), result("2")],
        began="a tool call with the ID of an earlier tool call was added",
        since=since.when_all_came,
    ),
    Rule(
        checks.missing_call_id,
        "A tool call or tool result without an ID",
        # Not refused: the code that sends the messages must invent ids, as our formats do.
        {
            OPENAI: mishandled(
                "MadcowD/ell/issues/325",
                "Missing parameter 'tool_call_id': messages with role 'tool' must have a "
                "'tool_call_id'.",
                date="2024-10",
            ),
            RESPONSES: mishandled(
                "BigPizzaV3/CodexPlusPlus/issues/315",
                "Invalid 'input[{at}].call_id': empty string. Expected a string with minimum "
                "length 1, but got an empty string instead.",
                date="2026-05",
            ),
            ANTHROPIC: mishandled(
                "LibreChat-AI/agents/pull/153",
                "messages.{at}.content.0.tool_use.id: String should match pattern "
                "'^[a-zA-Z0-9_-]+$'",
                date="2026-05",
            ),
            MISTRAL: mishandled(MISTRAL_CHECKS, "Tool call id has to be defined.", date="2026-06"),
            BEDROCK: mishandled("run-llama/llama_index/pull/22775", date="2026-08"),
            DEEPSEEK: mishandled(
                "dnakov/anon-kode/issues/87",
                "Failed to deserialize the JSON body into the target type: messages[{at}]: missing "
                "field `tool_call_id`",
                date="2025-04",
            ),
        },
        bad=[DUE, call(None), result(None)],
        good=PAIR,
        began="a tool call or tool result without an ID was added",
        since=since.when_it_came,
    ),
    Rule(
        checks.bad_arguments,
        "Arguments of a tool call that are not a JSON object",
        {
            OPENAI: mishandled(
                CHAT_PAGE,
                conflict="other hosts of this API reject it (2026-06): "
                f"{GITHUB}agno-agi/agno/issues/8343",
            ),
            RESPONSES: mishandled(
                RESPONSES_PAGE,
                conflict="vLLM rejects text that is no JSON (2026-09): "
                f"{GITHUB}local-inference-lab/vllm/issues/684",
            ),
            ANTHROPIC: refused(
                "messages.{at}.content.0.tool_use.input: Input should be a valid dictionary",
                "https://github.com/anthropics/claude-code/issues/6696",
                date="2025-08",
            ),
            GEMINI: refused(
                "Invalid value at 'contents[{at}].parts[0].function_call.args' "
                "(type.googleapis.com/google.protobuf.Struct)",
                FUNCTION_CALL_PAGE,
                date="2024-06",
            ),
            MISTRAL: mishandled(MISTRAL_CHECKS, date="2026-06"),
            BEDROCK: refused(
                "The format of the value at messages.{at}.content.0.toolUse.input is invalid. "
                "Provide a json object for the field and try again.",
                "vercel/ai/pull/19023",
                date="2026-08",
            ),
            DEEPSEEK: mishandled(
                DEEPSEEK_PAGE,
                conflict="vLLM is to reject it for models of DeepSeek (2026-07): "
                f"{GITHUB}vllm-project/vllm/pull/48006",
            ),
        },
        bad=[DUE, call("1", arguments="[1]"), result("1")],
        good=PAIR,
        began="a tool call whose arguments are not a JSON object was added",
        since=since.when_it_came,
    ),
    Rule(
        checks.call_after_model,
        "A tool call that does not follow a user message or a tool result",
        {
            GEMINI: refused(
                "Please ensure that function call turn comes immediately after a user turn or "
                "after a function response turn.",
                "google-gemini/gemini-cli/issues/11814",
                date="2025-10",
            )
        },
        bad=[call("1"), result("1")],
        good=PAIR,
        began="a tool call followed neither a user message nor a tool result",
        since=since.when_it_followed_the_model,
        repairs=("begin_with_user",),
        prevention=_SNAPPING,
        by_policy=True,
    ),
    Rule(
        checks.empty_content,
        "A message without content",
        {
            ANTHROPIC: refused(
                "messages.{at}: all messages must have non-empty content except for the optional "
                "final assistant message",
                "https://github.com/microsoft/autogen/issues/6083",
                date="2025-03",
            ),
            GEMINI: refused(
                "* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.",
                "langchain-ai/langchain-google/issues/691",
                date="2025-01",
            ),
        },
        bad=[HELLO, AiMessage(""), DUE],
        good=[HELLO, HI, DUE],
        began="a message without content was added",
        since=since.when_it_came,
    ),
    Rule(
        checks.null_content,
        "An AI message with neither a text nor a tool call",
        {
            OPENAI: refused(
                "Invalid value for 'content': expected a string, got null.",
                "https://github.com/run-llama/llama_index/issues/17555",
                date="2025-01",
            ),
            RESPONSES: mishandled(RESPONSES_PAGE),
            MISTRAL: refused(
                "Assistant message must have either content or tool_calls, but not none.",
                "solbrowse/extension/issues/16",
                date="2025-06",
            ),
            DEEPSEEK: refused(
                "Invalid assistant message: content or tool_calls must be set",
                "carlrobertoh/ProxyAI/issues/830",
                date="2025-01",
            ),
        },
        bad=[HELLO, AiMessage(None), DUE],
        good=[HELLO, AiMessage(""), DUE],
        began="a message with neither a text nor a tool call was added",
        since=since.when_it_came,
    ),
    Rule(
        checks.unsupported_image,
        "An image in a format that is not accepted",
        {
            OPENAI: refused(
                "You uploaded an unsupported image. Please make sure your image has of one the "
                "following formats: ['png', 'jpeg', 'gif', 'webp'].",
                "https://github.com/STranslate/STranslate/issues/277",
                date="2024-12",
            ),
            RESPONSES: refused(
                "You uploaded an unsupported image. Please make sure your image has of one the "
                "following formats: ['png', 'jpeg', 'gif', 'webp'].",
                "yuji-hatakeyama/opencode-gpt-imagegen/pull/82",
                date="2026-09",
            ),
            ANTHROPIC: refused(
                "messages.{at}.content.0.image.source.base64.media_type: Input should be "
                "'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
                "anthropics/claude-code/issues/8184",
                date="2025-09",
            ),
            GEMINI: refused(
                "Unsupported MIME type: {kind}",
                "brianpetro/obsidian-smart-connections/issues/1238",
                date="2025-10",
            ),
            BEDROCK: refused(
                "Value at 'messages.{at}.member.content.1.member.image.format' failed to satisfy "
                "constraint: Member must satisfy enum value set: [jpeg, png, gif, webp]",
                "NousResearch/hermes-agent/issues/55429",
                date="2026-09",
            ),
        },
        bad=[image_message("a.tiff")],
        good=[image_message("a.png")],
        began="an image in a format that is not accepted was added",
        since=since.when_it_came,
    ),
    Rule(
        rendered.unsupported_file,
        "A file in a format that is not accepted",
        {
            RESPONSES: refused(
                "The file type you uploaded is not supported. Please try again with a pdf",
                f"{RECORDED}test_multimodal_tool_returns/test_multimodal_tool_return_matrix"
                "%5Bdirect-url-audio-openai_responses%5D.yaml",
                date="2026-01",
            )
        },
        bad=[DUE, call("1"), sound_as_file()],
        good=[DUE, call("1"), ToolExecutionResultMessage("1", "find", [PDF])],
        began="a file in a format that is not accepted was added",
        since=since.when_it_came,
    ),
    Rule(
        checks.media_left_out,
        "Media that cannot be sent to the provider",
        {
            OPENAI: mishandled("openai/openai-agents-python/pull/2614", date="2026-03"),
            RESPONSES: mishandled(RESPONSES_PAGE),
            ANTHROPIC: mishandled("anthropics/anthropic-sdk-python/issues/1198", date="2026-02"),
        },
        bad=[UserMessage([VideoContent(Video("https://example.org/a.mp4"))])],
        good=[image_message("a.png")],
        began="media that cannot be sent to the provider were added",
        since=since.when_it_came,
    ),
    Rule(
        rendered.lone_reasoning,
        "Reasoning item without its following item",
        {
            RESPONSES: refused(
                "Item '{id}' of type 'reasoning' was provided without its required following item.",
                f"{RECORDED}test_openai_responses/"
                "test_openai_responses_thinking_with_modified_history.yaml",
                date="2026-01",
            )
        },
        bad=[DUE, reasoned("assistant#0"), HELLO],
        good=[DUE, reasoned({"at": "assistant#0", "in": {"id": {"=": "msg_1"}}}), HELLO],
        began="a reasoning item was without the item that must follow it",
        since=since.when_what_follows_came,
    ),
    Rule(
        rendered.developer_role,
        "The role developer, which some models do not accept",
        {
            OPENAI: Law(
                "conditional",
                "Unsupported value: 'messages[{at}].role' does not support 'developer' with this "
                "model.",
                f"{RECORDED}test_openai/test_openai_o1_mini_system_role%5Bdeveloper%5D.yaml",
                condition="o1-mini and models before o1 reject the role developer",
                refusing=r"\bo1-(mini|preview)\b",
                taking=r"gpt-|\bo[1-9]\b",
                date="2025-01",
            )
        },
        bad=[developer_message(), HELLO],
        good=[BE_BRIEF, HELLO],
        began="a message with the role developer was added",
        since=since.when_it_came,
    ),
    Rule(
        checks.first_not_user,
        "A first message that is not from the user",
        {
            ANTHROPIC: mishandled(
                f"{RECORDED}test_anthropic/test_anthropic_model_empty_message_on_history.yaml",
                date="2026-03",
            ),
            GEMINI: mishandled(
                CONTENT_PAGE,
                conflict="reported as rejected (2026-06): "
                f"{GITHUB}NousResearch/hermes-agent/issues/55427",
            ),
            BEDROCK: refused(
                "A conversation must start with a user message. Try again with a conversation that "
                "starts with a user message.",
                "langgenius/dify/issues/12340",
                date="2025-01",
            ),
        },
        bad=[HI, DUE],
        good=[HELLO, HI, DUE],
        began="the first message was not from the user",
        since=since.when_it_became_first,
        repairs=("begin_with_user",),
        prevention=_SNAPPING,
        by_policy=True,
    ),
    Rule(
        checks.equal_roles,
        "Two messages of the same role in a row",
        {
            ANTHROPIC: mishandled(
                f"{RECORDED}test_anthropic_mid_conversation_system/"
                "test_mid_conversation_system_prompt_before_empty_response.yaml",
                date="2026-07",
            ),
            GEMINI: mishandled(
                f"{RECORDED}test_multimodal_tool_returns/"
                "test_mixed_content_ordering%5Bgoogle_2_5%5D.yaml",
                date="2026-03",
                conflict="reported as rejected by Vertex AI in 2024, and since: "
                f"{GITHUB}microsoft/autogen/issues/2900, "
                f"{GITHUB}NousResearch/hermes-agent/pull/55126",
            ),
            DEEPSEEK: Law(
                "conditional",
                "deepseek-reasoner does not support successive user or assistant messages",
                f"{GITHUB}deepseek-ai/DeepSeek-R1/issues/21",
                condition="only deepseek-reasoner of early 2025 required alternating roles",
                date="2025-01",
            ),
        },
        bad=[HELLO, DUE],
        good=[HELLO, HI, DUE],
        began="two messages of the same role followed each other",
        since=since.unknown,
        is_listed=False,
    ),
    Rule(
        checks.system_in_middle,
        "A system message that is not at the beginning",
        {
            ANTHROPIC: mishandled(
                f"{RECORDED}test_anthropic_mid_conversation_system/"
                "test_mid_conversation_system_prompt_without_user_turn.yaml",
                date="2026-07",
            ),
            GEMINI: mishandled("pydantic/pydantic-ai/pull/5509", date="2026-05"),
            BEDROCK: mishandled("BerriAI/litellm/issues/41043", date="2026-09"),
        },
        bad=[HELLO, BE_BRIEF, HI, DUE],
        good=[BE_BRIEF, HELLO, HI, DUE],
        began="a system message was not at the beginning",
        since=since.when_it_was_behind_others,
        repairs=("system_first",),
    ),
    Rule(
        checks.several_systems,
        "More than one system message",
        {
            ANTHROPIC: mishandled("autogenhub/autogen/pull/5", date="2024-08"),
            GEMINI: mishandled("dottxt-ai/outlines/pull/1967", date="2026-08"),
            BEDROCK: mishandled("FoundationAgents/OpenManus/pull/1413", date="2026-09"),
        },
        bad=[BE_BRIEF, BE_BRIEF, HELLO],
        good=[BE_BRIEF, HELLO],
        began="there was more than one system message",
        since=since.when_two_came,
        repairs=("drop_duplicate",),
    ),
    Rule(
        checks.shorter_than_a_turn,
        "No user message in memory",
        {},
        bad=[call("1"), result("1")],
        good=[*PAIR],
        began="no user message was left in memory",
        prevention="Set a limit that holds the largest turn.",
        since=since.when_no_user_was_left,
    ),
]
