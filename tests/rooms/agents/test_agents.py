"""The server for coding agents, asked by the package's own client."""

from __future__ import annotations

import json
import re
import sys
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server import MCPServer
from mcp.types import CallToolResult

from chatmemory import (
    AiMessage,
    MessageWindow,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.access.scopes import Scope
from chatmemory.access.tokens import create_token, revoke_token
from chatmemory.models import ApiToken
from inspector.rooms.agents.server import mcp_server
from inspector.shell.agents import Agent
from inspector.shell.rooms import tools

from ...conversations import CALL, create_and_add, keep, users

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "inspector/rooms/agents/README.md").read_text("utf-8")
SITE = "http://127.0.0.1:8000"
ANSWERS_MOST = 30_000  # characters
EVERYTHING = Scope()

pytestmark = pytest.mark.usefixtures("demo_conversations_of_the_module", "db")


@cache
def server_for(scope: Scope) -> MCPServer[Any]:
    return mcp_server(Agent(SITE, scope))


def ask(
    *questions: tuple[str, dict[str, object]], scope: Scope = EVERYTHING
) -> list[CallToolResult]:
    async def talk() -> list[CallToolResult]:
        async with Client(server_for(scope)) as client:
            return [await client.call_tool(name, asked) for name, asked in questions]

    return async_to_sync(talk)()


def answer_json(name: str, scope: Scope = EVERYTHING, **asked: object) -> dict[str, object]:
    """The JSON of an answer. Its words have the same JSON."""
    (answer,) = ask((name, asked), scope=scope)
    (content,) = answer.content
    assert not answer.is_error, content.text
    found = answer.structured_content
    assert content.text == f"{found['answer']}\n{found['url']}"
    return found


def error_text(name: str, scope: Scope = EVERYTHING, **asked: object) -> str:
    (answer,) = ask((name, asked), scope=scope)
    assert answer.is_error
    assert answer.structured_content is None
    return answer.content[0].text


def test_why_did_it_ask_for_the_order_number_again(client):
    """The session of the room's README. Each answer has an address that shows it to people."""
    found = answer_json("find_conversations", words="order number", flag="user_repeated")
    (conversation,) = (each["id"] for each in found["conversations"])
    assert (
        "A-1182 had to be repeated by the user in #47; said in #25, left memory" in found["answer"]
    )

    again = answer_json("incidents", conversation=conversation)
    (incident,) = again["incidents"]
    (fact,) = incident["facts"]
    assert (fact["fact"], incident["asked"], fact["limit"]) == ("A-1182", 46, 902)
    assert (
        "a limit of 902 would have kept it. The assistant had asked for it in #46. How it left: "
        "when #43 arrived: 55 tokens over the limit."
    ) in again["answer"]

    why = answer_json("why_did_it_leave", conversation=conversation, message=fact["said"])
    assert why["answer"].startswith(
        "Why did #25 leave? There was no room. When #43 arrived, memory needed 855 tokens, "
        "more than the limit of 800"
    )
    over = {"label": "Now 55 tokens over the limit", "amount": 855, "kind": "over"}
    assert over in why["receipt"]

    before = {"conversation": conversation, "phrase": "A-1182", "step": incident["asked"]}
    remembered = answer_json("does_it_remember", **before)
    assert "At step 46: no, forgotten since step 43" in remembered["answer"]
    assert (remembered["in_memory"], remembered["state"]) == (False, "not_in_memory")

    for line in (again["answer"].splitlines()[1], why["answer"].splitlines()[0]):
        assert line in " ".join(PAGE.split())
    client.force_login(User.objects.create_superuser("ada"))
    for answer in (found, again, why, remembered):
        shown = client.get(answer["url"].removeprefix(SITE), headers={"host": "localhost"})
        assert "A-1182" in shown.content.decode()


def test_the_window_and_the_history_at_a_step():
    window = answer_json("window", conversation="order-7741", step=46)
    assert window["answer"].startswith("At step 46 memory holds 19 messages, 742 of 800 tokens.")
    assert (window["limit"], window["messages"][0]["type"]) == (800, "SYSTEM")
    around = answer_json("history", conversation="order-7741", around=25)
    (told,) = (row for row in around["messages"] if row["seq"] == 25)
    assert told["stays"][0]["left_step"] == 43
    assert around["url"] == f"{SITE}/c/order-7741/?msg=25"
    still = answer_json("why_did_it_leave", conversation="order-7741", message=58)
    assert "Why is #58 still in memory?" in still["answer"]


def test_facts_that_a_limit_would_have_held():
    found = answer_json("recall", limits="token_window:800,everything", prefix="order-7741")
    assert [(row["policy"], row["held"]) for row in found["results"]] == [
        ("token_window:800", 4),
        ("everything", 6),
    ]


def test_terms_that_a_summary_lost():
    said = [UserMessage("Fix ENT-1182 in cmd/hooks2.go."), AiMessage("Reading.")]
    create_and_add("agent", MessageWindow(20), said)
    services.compact("agent", "The user wants a fix of ENT-1182.", covering=[1, 2], trigger="auto")
    services.add("agent", [AiMessage("I looked at cmd/hooks2.go for ENT-1182.")])
    found = answer_json("what_did_summaries_lose", conversation="agent")
    (summary,) = found["summaries"]
    lost = {"said": 1, "used": 4, "came": None, "back": "no recorded mention"}
    lost |= {"is_told": True, "is_rare": True}
    assert summary["lost"] == [{"term": "cmd/hooks2.go", **lost}]
    assert (summary["step"], summary["all"]["needed"], summary["all"]["held"]) == (3, 2, 1)
    assert (
        "lost: cmd/hooks2.go, said in #1, used again in #4: no recorded mention" in found["answer"]
    )


def test_what_a_provider_would_refuse_next():
    create_and_add("torn", MessageWindow(20), [UserMessage("Find it."), CALL, UserMessage("Well?")])
    changed = answer_json("doctor", Scope("torn"), provider="openai")["answer"]
    assert "1 conversation not examined yet. The command `python manage.py keep --once`" in changed
    assert "No conversation has been examined yet." in changed
    assert "would be rejected" not in changed
    keep("torn")
    found = answer_json("doctor", provider="openai")
    assert found["conversations"][0]["url"] == f"{SITE}/c/torn/"
    assert "torn: A tool call without its result. Since step 3" in found["answer"]
    assert answer_json("doctor", Scope("ferry-"), provider="openai")["conversations"] == []
    assert "unknown provider 'none'" in error_text("doctor", provider="none")


TOOLS = {tool.__name__: tool for tool in tools()}
QUESTIONS: dict[str, dict[str, object]] = {
    "find_conversations": {"words": "item"},
    "window": {"conversation": "long"},
    "history": {"conversation": "long", "around": 100},
    "why_did_it_leave": {"conversation": "long", "message": 1},
    "does_it_remember": {"conversation": "long", "phrase": "item"},
    "incidents": {"conversation": "long"},
    "what_did_summaries_lose": {"conversation": "long"},
    "doctor": {"provider": "anthropic"},
    "recall": {"prefix": "long"},
    "calls": {"conversation": "long"},
}


def test_no_tool_writes():
    """Not even the first question about a conversation whose incidents are not kept yet."""
    create_and_add("long", TokenWindow(60), users(*(f"item {n} is N-{n:04}" for n in range(9))))
    services.compact("long", "Some items.", keep_last=1)
    for keeper in services.keepers():
        keeper.model.objects.all().delete()
    with CaptureQueriesContext(connection) as asked:
        for name, given in QUESTIONS.items():
            answer_json(name, **given)
    written = [row["sql"] for row in asked if re.match("INSERT|UPDATE|DELETE", row["sql"])]
    assert asked.captured_queries
    assert not written


def test_answers_are_bounded():
    texts = [f"item {n} is N-{n:04} {'and so on ' * 500}" for n in range(150)]
    create_and_add("long", TokenWindow(50_000), users(*texts))
    for name, asked in QUESTIONS.items():
        answer = answer_json(name, **asked)
        assert len(json.dumps(answer)) < ANSWERS_MOST, name
    tools = async_to_sync(server_for(EVERYTHING).list_tools)()
    assert {tool.name for tool in tools} == QUESTIONS.keys()
    assert re.findall(r"(?m)^\| `(\w+)` \|", PAGE) == list(QUESTIONS)
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools)


def test_answers_and_errors_quote_the_beginning_of_anything():
    long = "x" * 10**5
    call = AiMessage(None, [ToolExecutionRequest(long, long, "{}")])
    result = ToolExecutionResultMessage(long, long, long)
    create_and_add("long", MessageWindow(2), [call, result, UserMessage(long)])
    for name in ("history", "window", "incidents"):
        assert len(json.dumps(answer_json(name, conversation="long"))) < 10_000, name
    why = answer_json("why_did_it_leave", conversation="long", message=1)
    assert len(json.dumps(why)) < 10_000
    assert len(error_text("window", conversation=long)) < 1_000
    assert len(error_text("does_it_remember", conversation="long", phrase=long)) < 1_000
    assert len(error_text("doctor", rule=long)) < 1_000


@pytest.mark.parametrize(
    ("name", "most"),
    [("window", 4), ("history", 5), ("why_did_it_leave", 20), ("does_it_remember", 20)],
)
def test_an_answer_takes_few_queries(name, most, django_assert_max_num_queries):
    asked = QUESTIONS[name] | {"conversation": "order-7741"}
    with django_assert_max_num_queries(most):
        TOOLS[name](Agent(SITE, EVERYTHING), **asked)


@pytest.mark.parametrize("name", [name for name in QUESTIONS if "conversation" in QUESTIONS[name]])
def test_an_id_that_no_conversation_has_is_refused(name):
    asked = QUESTIONS[name] | {"conversation": "nobody-has-it"}
    assert "no conversation has the id 'nobody-has-it'" in error_text(name, **asked)


OF_ALL = ("find_conversations", "doctor")  # they take no id


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name not in OF_ALL])
@pytest.mark.parametrize("by_token", [False, True])
def test_other_conversations_do_not_exist(name, by_token):
    """The refusal is the same as for an id that no conversation has."""
    scope = Scope("ferry-")
    if by_token:
        scope = Scope(token=create_token("agent", role="viewer", prefix="ferry-"))
    given = dict(QUESTIONS[name])
    key = "conversation" if "conversation" in given else "prefix"
    told = {
        memory_id: error_text(name, scope, **given | {key: memory_id}).replace(memory_id, "…")
        for memory_id in ("order-7741", "nobody-has-it")
    }
    assert len(set(told.values())) == 1
    assert "no conversation has" in told["order-7741"]
    seen = answer_json("find_conversations", scope)
    assert [each["id"] for each in seen["conversations"]] == ["ferry-5120"]
    if key == "conversation" and name != "why_did_it_leave":
        assert answer_json(name, scope, **given | {key: "ferry-5120"})["url"]


def test_a_token_that_is_revoked_meanwhile_sees_nothing():
    scope = Scope(token=create_token("agent"))
    assert answer_json("window", scope, conversation="order-7741")
    revoke_token(ApiToken.objects.get().pk)
    assert "was revoked: create a new token" in error_text(
        "window", scope, conversation="order-7741"
    )


@pytest.mark.parametrize(
    ("prefix", "token", "told"),
    [
        ("", "cm_wrong", "token is unknown"),
        ("order-", None, "begin with 'ferry-'"),
        ("\udcff", None, "lone surrogates"),
    ],
)
def test_a_scope_in_which_nothing_can_exist_is_refused_at_the_start(
    monkeypatch, prefix, token, told
):
    token = token or create_token("agent", prefix="ferry-")
    monkeypatch.setenv("CHATMEMORY_TOKEN", token)
    with pytest.raises(CommandError, match=told) as error:
        call_command("mcp", prefix=prefix)
    assert error.value.returncode == 2


@pytest.mark.parametrize(
    ("name", "asked", "told"),
    [
        ("window", {"conversation": "order-7741", "step": 99}, "has no step 99, only steps 0 to"),
        ("history", {"conversation": "\0"}, "cannot contain NUL"),
        ("find_conversations", {"words": "\0"}, "cannot contain NUL"),
        ("does_it_remember", {"conversation": "order-7741", "phrase": " "}, "the phrase is empty"),
        ("recall", {"limits": "many"}, "many"),
        (
            "recall",
            {"policies": "everything"},
            "the tool recall has no argument 'policies': use only limits, prefix",
        ),
    ],
)
def test_an_invalid_question_is_explained(name, asked, told):
    assert told in error_text(name, **asked)


def test_it_answers_over_stdio(served, tmp_path):
    """As an agent starts it, with the entry point of the command."""
    served.create("acme-7")
    served.say("acme-7", "My order is A-1182.")
    start = "import sys; sys.argv[0] = 'chatmemory'; from inspector.command import main; main()"

    async def talk(options: list[str], *asked: tuple[str, dict[str, Any]]) -> list[CallToolResult]:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-c", start, "mcp", *options, "--site", served.url],
            env=served.environment,
            cwd=ROOT,
        )
        async with AsyncExitStack() as stack:
            errors = stack.enter_context((tmp_path / "errors").open("w"))
            client = await stack.enter_async_context(Client(stdio_client(parameters, errors)))
            return [await client.call_tool(*each) for each in asked]

    asked = [("window", {"conversation": each}) for each in ("acme-7", "printed")]
    found, other = async_to_sync(talk)(["--prefix", "acme-"], *asked)
    assert re.search(r"#1 User: My order is A-1182\.", found.content[0].text)
    assert found.structured_content["url"].startswith(f"{served.url}/c/")
    assert other.is_error
    served.create("acme-77")
    served.say("acme-77", "Another order.")
    searched = ("search_history", {"query": "order"})
    (of_model,) = async_to_sync(talk)(["--conversation", "acme-7"], searched)
    assert [hit["quote"] for hit in of_model.structured_content["hits"]] == ["My order is A-1182."]
