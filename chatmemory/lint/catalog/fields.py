"""The rules of providers about single fields: their accepted forms and lengths."""

from __future__ import annotations

from chatmemory.lint import since
from chatmemory.lint.catalog.examples import ASKED, DUE, call_item
from chatmemory.lint.limits import Limit, limited
from chatmemory.lint.rules import Law, Rule, Severity
from chatmemory.lint.turns import ANTHROPIC, BEDROCK, MISTRAL, OPENAI, RESPONSES
from chatmemory.messages.message import AiMessage, ToolExecutionRequest, ToolExecutionResultMessage

_GITHUB = "https://github.com/"
_WORD, _NO_WORD = "[a-zA-Z0-9_-]+", "has other characters than letters, digits, _ and -"
_NAME = "The name of a tool call"
_ID = "The ID of a tool call"
_TOO_LONG = (
    "Invalid '{list}[{at}].{path}': string too long. Expected a string with maximum length "
    "{most}, but got a string with length {length} instead."
)
_NO_MATCH = (
    "Invalid '{list}[{at}].{path}': string does not match pattern. Expected a string that matches "
    "the pattern '^[a-zA-Z0-9_-]+$'."
)


def _law(
    error: str,
    source: str,
    date: str,
    *limits: Limit,
    severity: Severity = "refused",
    condition: str = "",
    conflict: str = "",
) -> Law:
    """Return a rule of a provider about some fields. `source` is a thread on GitHub or an
    address.
    """
    source = source if source.startswith("https://") else _GITHUB + source
    return Law(
        severity,
        error.replace("{list}", "input" if "input" in error else "messages"),
        source,
        limited(*limits),
        condition=condition,
        date=date,
        conflict=conflict,
    )


def _ids(most: int | None = None, pattern: str = "", but: str = "") -> Limit:
    return Limit("tool_calls[].id", _ID, pattern, but, most=most)


def _names(most: int | None = None) -> Limit:
    return Limit("tool_calls[].function.name", _NAME, _WORD, _NO_WORD, least=1, most=most)


def _call_and_result(name: str, id: str) -> list[AiMessage | ToolExecutionResultMessage]:
    call = AiMessage(None, [ToolExecutionRequest(id, name, "{}")])
    return [call, ToolExecutionResultMessage(id, name, "found")]


_BAD_ID = "functions.find:" + "0" * 60
_BEGINNINGS = {"function_call": "fc", "custom_tool_call": "ctc", "message": "msg"}
_ITEM_LENGTH = _TOO_LONG.replace("{list}[{at}].{path}", "input[{at}].{path}")

FIELDS = [
    Rule(
        "call_id_form",
        "Invalid tool call ID",
        {
            OPENAI: _law(
                _TOO_LONG,
                "microsoft/autogen/issues/6377",
                "2025-04",
                _ids(most=40),
                severity="conditional",
                condition="the maximum is 40 or 64 characters, depending on the model",
                conflict="since 2026 up to 64 characters are accepted by some models: "
                f"{_GITHUB}vercel/ai/pull/17233, {_GITHUB}decolua/9router/pull/3167",
            ),
            RESPONSES: _law(
                _ITEM_LENGTH,
                "decolua/9router/issues/393",
                "2026-03",
                Limit("call_id", _ID, most=64),
            ),
            ANTHROPIC: _law(
                "messages.{at}.content.{n}.tool_use.id: String should match pattern "
                "'^[a-zA-Z0-9_-]+$'",
                "maximhq/bifrost/issues/5097",
                "2026-07",
                Limit("content[tool_use].id", _ID, _WORD, _NO_WORD, least=1),
                Limit("content[tool_result].tool_use_id", _ID, _WORD, _NO_WORD, least=1),
                Limit(
                    "content[server_tool_use].id",
                    "The ID of a call of Anthropic's own tool",
                    "srvtoolu_[a-zA-Z0-9_]+",
                    "does not begin with srvtoolu_",
                ),
            ),
            MISTRAL: _law(
                "Tool call id was {value} but must be a-z, A-Z, 0-9, with a length of 9.",
                "karthink/gptel/issues/1203",
                "2026-01",
                _ids(pattern="[a-zA-Z0-9]{9}", but="is not exactly nine letters and digits"),
            ),
            BEDROCK: _law(
                "Value at 'messages.{at}.member.content.1.member.toolUse.toolUseId' failed to "
                "satisfy constraint: Member must have length less than or equal to 64",
                "RooCodeInc/Roo-Code/pull/10902",
                "2026-01",
                _ids(64, "[a-zA-Z0-9_.:-]+", "has other characters than letters, digits, _.:-"),
                conflict="the API reference allows letters, digits, _ and - only: "
                "https://docs.aws.amazon.com/bedrock/latest/APIReference/"
                "API_runtime_ToolUseBlock.html",
            ),
        },
        bad=[DUE, *_call_and_result("find", _BAD_ID)],
        good=[DUE, *_call_and_result("find", "a1B2c3D4e")],
        began="a tool call with an invalid ID was added",
        since=since.when_it_came,
        prevention=(
            "Before you add messages, replace tool call IDs by IDs that the provider accepts."
        ),
    ),
    Rule(
        "tool_name",
        "Invalid tool name",
        {
            OPENAI: _law(_NO_MATCH, "mcp-use/mcp-use/issues/90", "2025-05", _names(64)),
            RESPONSES: _law(
                _NO_MATCH.replace("{list}", "input"),
                "https://platform.openai.com/docs/api-reference/responses/create",
                "2026-11",
                Limit("name", _NAME, _WORD, _NO_WORD, 1, 128, kind="function_call"),
            ),
            ANTHROPIC: _law(
                "messages.{at}.content.{n}.tool_use.name: String should match pattern "
                "'^[a-zA-Z0-9_-]{1,200}$'",
                "https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use",
                "2026-11",
                Limit("content[tool_use].name", _NAME, _WORD, _NO_WORD, 1, 200),
                conflict="in 2025 at most 64 characters were reported, since 2026 200",
            ),
            MISTRAL: _law(
                "Function name was {value} but must be a-z, A-Z, 0-9, or contain underscores and "
                "dashes, with a maximum length of 64.",
                "mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/"
                "validator.py",
                "2026-06",
                _names(64),
            ),
            BEDROCK: _law(
                "Value at 'messages.{at}.member.content.1.member.toolUse.name' failed to satisfy "
                "constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
                "openclaw/openclaw/issues/12892",
                "2026-02",
                _names(64),
            ),
        },
        bad=[DUE, *_call_and_result("weather.get", "a1B2c3D4e")],
        good=[DUE, *_call_and_result("weather_get", "a1B2c3D4e")],
        began="a tool call with an invalid tool name was added",
        since=since.when_it_came,
        prevention="Use only letters, digits, _ and - in tool names.",
    ),
    Rule(
        "user_name",
        "Invalid participant name",
        {
            OPENAI: _law(
                "Invalid 'messages[{at}].name': string does not match pattern. Expected a string "
                "that matches the pattern '^[^\\s<|\\\\/>]+$'.",
                "microsoft/autogen/issues/3582",
                "2024-09",
                Limit(
                    "name",
                    "The participant name",
                    r"[^\s<|\\/>]+",
                    "has a space or one of < | \\ / >",
                    most=64,
                    roles=("user", "assistant", "system", "developer"),
                ),
            ),
        },
        bad=[{"role": "user", "name": "Ada Lovelace", "content": "When is it due?"}],
        good=[{"role": "user", "name": "Ada_Lovelace", "content": "When is it due?"}],
        began="a message with an invalid participant name was added",
        since=since.when_it_came,
        prevention="Use participant names without spaces.",
    ),
    Rule(
        "empty_calls",
        "An empty list of tool calls",
        {
            OPENAI: _law(
                "Invalid 'messages[{at}].tool_calls': empty array. Expected an array with minimum "
                "length 1, but got an empty array instead.",
                "openai/openai-node/pull/1341",
                "2025-02",
                Limit("tool_calls", "The list of tool calls", least=1),
            ),
        },
        bad=[ASKED, {"role": "assistant", "content": "On Friday.", "tool_calls": []}, ASKED],
        good=[ASKED, {"role": "assistant", "content": "On Friday."}, ASKED],
        began="a message with an empty list of tool calls was added",
        since=since.when_it_came,
        prevention="Omit the field tool_calls if a message has no tool call.",
    ),
    Rule(
        "item_id",
        "Invalid item ID",
        {
            RESPONSES: _law(
                "Invalid 'input[{at}].id': '{value}'. Expected an ID that begins with '{pattern}'.",
                "Wei-Shaw/sub2api/issues/1505",
                "2026-04",
                *(
                    Limit("id", f"The ID of the {type}", f"{first}.*", but, most=64, kind=type)
                    for type, first in _BEGINNINGS.items()
                    for but in [f"does not begin with {first}"]
                ),
                # Other hosts of this API have ids of their own, and put reasoning into `content`
                Limit(
                    "id",
                    "The ID of the reasoning item",
                    "rs.*",
                    "does not begin with rs",
                    most=64,
                    kind="reasoning",
                    without="content",
                ),
            ),
        },
        bad=[
            ASKED,
            {**call_item("call_1"), "id": "call_1"},
            {"type": "function_call_output", "call_id": "call_1", "output": "found"},
        ],
        good=[
            ASKED,
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"},
            {**call_item("call_1"), "id": "fc_1"},
            {"type": "function_call_output", "call_id": "call_1", "output": "found"},
        ],
        began="an item with an invalid ID was added",
        since=since.when_it_came,
        prevention="Remove the IDs of items that OpenAI did not create.",
    ),
    Rule(
        "unsigned_thinking",
        "Thinking without its signature",
        {
            ANTHROPIC: _law(
                "messages.{at}.content.{n}.thinking.signature: Field required",
                "JohnnyZ93/oai-compatible-copilot/issues/217",
                "2026-04",
                Limit(
                    "content[thinking].signature",
                    "The signature of the thinking",
                    least=1,
                    is_needed=True,
                ),
            ),
        },
        bad=[
            ASKED,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm"},
                    {"type": "text", "text": "On Friday."},
                ],
            },
            ASKED,
        ],
        good=[
            ASKED,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm", "signature": "c2ln"},
                    {"type": "text", "text": "On Friday."},
                ],
            },
            ASKED,
        ],
        began="thinking without its signature was added",
        since=since.when_it_came,
        prevention="Store thinking with its signature, or remove the thinking.",
    ),
]
