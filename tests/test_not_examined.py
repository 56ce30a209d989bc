"""An answer that has not been computed is "not examined yet" on every surface, never 0 or "none".

Every page, every answer of the API, every tool of agents and every command is read before a
conversation with problems is examined, and after it: no sentence and no value that says that
nothing was found is taken back then.
"""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from chatmemory import AiMessage, MessageWindow, UserMessage
from chatmemory.keeper import QUICK_MESSAGES
from inspector.urls import urlpatterns

from .conversations import CALL, create_and_add, keep, numbered
from .rooms.agents.test_agents import TOOLS, answer_json

pytestmark = pytest.mark.django_db

FACT = "ENT-48213"
SAID = [
    UserMessage(f"My order is {FACT}."),
    *numbered(QUICK_MESSAGES),
    UserMessage("Find it."),
    CALL,
    UserMessage(f"Well, {FACT}?"),
    AiMessage(f"{FACT} it is."),
]
VALUES = {
    "step": 5,
    "memory_id": "m",
    "seq": 1,
    "slug": "x",
    "token": "x",
    "key": 1,
    "n": 1,
    "number": 1,
    "place": 1,
}
# What opens the folded sections of a conversation, of its last step, its incident and a message
UNFOLDED = ("open=sums+compare+providers", "incident=1", "msg=1&open=kept+raw+providers")
# What the tools of agents are asked that want more or less than a conversation
ASKED: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("doctor", "find_conversations", "recall")},
    "why_did_it_leave": {"conversation": "m", "message": 1},
    "search_history": {"conversation": "m", "query": FACT},
    "does_it_remember": {"conversation": "m", "phrase": FACT},
}
COMMANDS = ("doctor", "incidents", "compactions", "list_memories", "show_memory m", "calls")
NOTHING = re.compile(r"(?<![\w.,:#-])(0|no|none|nothing|never|not seen)\b(?![.,]\d)", re.IGNORECASE)
# What says how far the examination has come, or is of no conversation
NOT_COUNTED = re.compile(
    r"not read yet|not examined|been examined|0 of [01]\b|known_until|is_current|^python_"
    r"|No providers"
)


def pages() -> Iterator[str]:
    for each in urlpatterns:
        if isinstance(each, URLPattern) and each.name not in ("live", "live-overview", "tokens"):
            known = {name: VALUES[name] for name in each.pattern.converters}
            yield reverse(f"inspector:{each.name}", kwargs=known)
    yield from (f"/c/m/?{query}" for query in UNFOLDED)


def addresses(patterns: Any, before: str = "/") -> Iterator[str]:
    for each in patterns:
        path = re.sub(r"<(?:\w+:)?(\w+)>", _value, f"{before}{each.pattern}")
        if isinstance(each, URLResolver):
            yield from addresses(each.url_patterns, path)
        elif path.startswith("/api/v1/") and "schema" not in path:
            yield path


def _value(found: re.Match[str]) -> str:
    return str(VALUES.get(found[1], "m"))


def texts_in(page: str) -> set[str]:
    """Return the texts between tags, and the items of lists in Markdown, each by itself."""
    page = re.sub(r"<(script|style|template|svg)\b.*?</\1>", "", page, flags=re.DOTALL)
    page = re.sub(r"</?(?:span|a|b|strong|em|code|time|data|small)\b[^>]*>", "", page)
    return {" ".join(html.unescape(each).split()) for each in re.split(r"<[^>]+>|\n(?=- )", page)}


def leaves(value: Any, path: str = "") -> Iterator[str]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict | list):
        inner = [*value.items()] if isinstance(value, dict) else [*enumerate(value)]
    else:
        yield f"{path} = {json.dumps(value)}"
    for name, each in inner:
        yield from leaves(each, f"{path}.{name}")


def surfaces(client: Any, api: Any) -> dict[str, set[str]]:
    """Return what every surface says, by its name."""
    said: dict[str, set[str]] = {}
    for path in pages():
        answer = client.get(path)
        if answer.status_code == 200 and not answer.streaming:
            content = answer.content.decode("utf-8", "replace")
            is_page = "html" in answer["Content-Type"]
            said[path] = texts_in(content) if is_page else {*content.splitlines()}
    for path in addresses(get_resolver().url_patterns):
        answer = api.get(path)
        if answer.status_code == 200 and "json" in answer["Content-Type"]:
            said[path] = {*leaves(answer.json())}
    for name in TOOLS:
        answered = answer_json(name, **ASKED.get(name, {"conversation": "m"}))
        words = str(answered.pop("answer", ""))
        said[f"the tool {name}"] = {*leaves(answered), *words.splitlines()}
    for command in COMMANDS:
        said[f"the command {command}"] = {*output_of(command).splitlines()}
    return said


def output_of(command: str) -> str:
    out = io.StringIO()
    try:
        call_command(*command.split(), stdout=out, stderr=out)
    except (CommandError, SystemExit) as error:
        out.write(f"\n{error}")
    return out.getvalue()


def test_nothing_is_said_to_be_none_before_it_is_examined(operator_client, api):
    create_and_add("m", MessageWindow(4), SAID)
    before = surfaces(operator_client, api)
    keep()
    after = surfaces(operator_client, api)
    taken_back = [
        (name, said)
        for name in before
        for said in sorted(before[name] - after[name])
        if NOTHING.search(said) and not NOT_COUNTED.search(said)
    ]
    assert not taken_back, "\n".join(f"{name}: {said[:300]}" for name, said in taken_back)
    assert len(before) > 50
    assert any("ot examined yet" in said for name in before for said in before[name])
