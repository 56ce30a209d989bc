"""Small files in shapes that people have, and what must be stored of each, or how it is refused.

tests/data/field/expected.json says for each file which outcomes are right; one must hold. `said`
are the strings that somebody said: each is in a text, a thought, an argument or a result of a
stored message, unless a printed line matches the pattern that `or_told` has for it.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from chatmemory import AiMessage, ChatMessage, ToolExecutionResultMessage, UserMessage
from chatmemory.messages.contents import ImageContent, TextContent
from chatmemory.messages.message import text_of
from chatmemory.models import Memory
from chatmemory.reading import windows
from chatmemory.reading.history import whole_history

pytestmark = [pytest.mark.django_db, pytest.mark.needs("transfer")]

FIELD = Path(__file__).parents[1] / "data/field"
CASES: dict[str, Any] = json.loads((FIELD / "expected.json").read_text("utf-8"))
ROLES = {UserMessage: "user", AiMessage: "ai", ToolExecutionResultMessage: "tool"}


@pytest.mark.parametrize("name", CASES)
def test_all_text_is_stored_or_reported(name, tmp_path):
    case = CASES[name]
    for step in case.get("steps", [{"file": name, **case}]):
        file = tmp_path / f"input{Path(step['file']).suffix}"
        shutil.copy(FIELD / step["file"], file)
        exit_status, printed = import_output(file)
        problems = [problem_of(right, step, exit_status, printed) for right in step["right"]]
        assert None in problems, "\n".join([*filter(None, problems), printed])


def import_output(file: Path) -> tuple[int, str]:
    """Return the exit status and the output of an import."""
    out = io.StringIO()
    try:
        call_command("import_transcripts", file, stdout=out, stderr=out)
    except CommandError as error:
        return error.returncode, f"{out.getvalue()}{error}\n"
    return 0, out.getvalue()


def problem_of(right: Any, case: Any, exit_status: int, printed: str) -> str | None:
    """Return the first requirement that an outcome does not meet, or None."""
    stored = [*conversations()]
    if exit_status not in right.get("exit", [1, 2] if "refused" in right else [0]):
        return f"it exits with {exit_status}"
    if "refused" in right and (stored or not matches(right["refused"], printed)):
        return f"it is not refused as {right['refused']!r}"
    for pattern in right.get("told", ()):
        if not matches(pattern, printed):
            return f"{pattern!r} is not told"
    for pattern in right.get("not_told", ()):
        if matches(pattern, printed):
            return f"{pattern!r} is told"
    if "refused" in right:
        return None
    messages = [message for _, history in stored for message in history]
    said = "\n".join(words for message in messages for words in words_of(message))
    for each in right.get("said", case["said"]):
        told = case.get("or_told", {}).get(each)
        if each not in said and not (told and matches(told, printed)):
            return f"{each!r} is neither stored nor told"
    if not right.get("may_be_empty") and not all(any(words_of(each)) for each in messages):
        return "a stored message is empty"
    return unequal(right["conversations"], stored)


def conversations() -> Iterator[tuple[str, list[ChatMessage]]]:
    for id in Memory.objects.values_list("pk", flat=True):
        yield id, list(whole_history(id))


def matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def words_of(message: ChatMessage) -> list[str]:
    """Return the words of a message: texts, thoughts, and arguments of calls."""
    said = [text_of(message)]
    if isinstance(message, AiMessage):
        calls = [call for call in message.tool_execution_requests if call]
        said += [message.thinking or "", *(f"{call.name} {call.arguments}" for call in calls)]
    if any(isinstance(each, ImageContent) for each in getattr(message, "contents", ())):
        said.append("[image]")
    return [text for text in said if text]


def unequal(wanted: list[Any], stored: list[tuple[str, list[ChatMessage]]]) -> str | None:
    if len(wanted) != len(stored):
        return f"{len(stored)} conversations are stored"
    rest = list(stored)
    for each in wanted:
        found = next((one for one in rest if is_conversation(each, *one)), None)
        if found is None:
            shown = [(id, [*map(role_and_texts, history)]) for id, history in rest]
            return f"{each} is not among {shown}"
        rest.remove(found)
    return None


def role_and_texts(message: ChatMessage) -> list[Any]:
    role = ROLES.get(type(message), "system")
    calls = message.tool_execution_requests if isinstance(message, AiMessage) else ()
    contents = [each for each in getattr(message, "contents", ()) if isinstance(each, TextContent)]
    said = [each.text for each in contents] or [getattr(message, "text", None) or ""]
    text = " ".join(" ".join(said).split())
    return [role, text, *([call.name, call.arguments] for call in calls if call)]


def is_conversation(wanted: Any, id: str, history: list[ChatMessage]) -> bool:
    found = [each for each in map(role_and_texts, history) if each[0] != "system"]
    images = [each for m in history for each in getattr(m, "contents", ())]
    if sum(isinstance(each, ImageContent) for each in images) < wanted.get("images", 0):
        return False
    window = "\n".join(text_of(message) for message in windows.window(id).messages)
    asked = wanted.get("window", {})
    if any(each not in window for each in asked.get("has", ())):
        return False
    if any(each in window for each in asked.get("lacks", ())):
        return False
    if "some" in wanted:
        rest = iter(found)
        return all(any(is_like(each, one) for one in rest) for each in wanted["some"])
    messages = wanted["messages"]
    return any(
        len(messages) == len(some) and all(map(is_like, messages, some))
        for some in (found, joined(found))
    )


def joined(found: list[list[Any]]) -> list[list[Any]]:
    """Return messages of which texts of one role in a row are one."""
    made: list[list[Any]] = []
    for each in found:
        if made and made[-1][0] == each[0] != "tool":
            made[-1] = [each[0], f"{made[-1][1]} {each[1]}".strip(), *made[-1][2:], *each[2:]]
        else:
            made.append(each)
    return made


def is_like(wanted: list[Any], found: list[Any]) -> bool:
    role, text, *calls = wanted
    is_same = text[1:] in found[1] if text.startswith("~") else text == found[1]
    if role != found[0] or not is_same or len(calls) != len(found) - 2:
        return False
    return all(
        name == call[0] and all(each in str(call[1]) for each in some)
        for (name, *some), call in zip(calls, found[2:], strict=True)
    )
