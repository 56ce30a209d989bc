"""Files that have grown, forks of their trees, and lines that cannot be read."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from chatmemory import AiMessage, UserMessage, services
from chatmemory.ledger.verification import verify
from chatmemory.messages.message import text_of
from chatmemory.models import Memory
from chatmemory.reading import windows
from chatmemory.reading.history import whole_history
from inspector.rooms.erasure.copies import copies

pytestmark = pytest.mark.django_db


class File:
    """A file of Claude Code, which grows by records."""

    def __init__(self, path: Path) -> None:
        self.path, self.records = path, []

    def say(self, uuid: str, text: str, parent: str | None = "", **more: Any) -> None:
        kind = "assistant" if uuid.startswith("a") else "user"
        content: Any = [{"type": "text", "text": text}] if kind == "assistant" else text
        last = self.records[-1]["uuid"] if self.records else None
        record = {"uuid": uuid, "parentUuid": last if parent == "" else parent, "sessionId": "s"}
        message = {"role": kind, "content": content, "id": uuid}
        self.records.append({**record, "type": kind, "message": message, **more})

    def compact(self, uuid: str, summary: str) -> None:
        about = {"subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}}
        last = self.records[-1]["uuid"]
        record = {"uuid": uuid, "parentUuid": None, "logicalParentUuid": last, "sessionId": "s"}
        self.records.append({**record, "type": "system", **about})
        self.say(f"{uuid}-summary", summary, isCompactSummary=True)

    def write(self, bad: str = "") -> Path:
        lines = [*map(json.dumps, self.records), *([bad] if bad else [])]
        self.path.write_text("\n".join(lines))
        return self.path


@pytest.fixture
def file(tmp_path) -> File:
    file = File(tmp_path / "x.jsonl")
    file.say("u1", "Begin the list")
    file.say("a1", "List begun.")
    return file


def import_file(path: Path, capsys) -> str:
    call_command("import_transcripts", path)
    return str(capsys.readouterr().out).partition(", ")[0]


def texts_of_history(memory_id: str) -> list[str]:
    return [text_of(message) for message in whole_history(memory_id)]


def test_new_messages_of_a_file_are_added_with_their_compactions(file, capsys):
    import_file(file.write(), capsys)
    file.say("u2", "Add milk")
    file.say("a2", "Milk added.")
    file.compact("b", "They keep a list.")
    file.say("u3", "Add bread")
    assert "1 conversation with 3 messages imported" in import_file(file.write(), capsys)
    assert [*map(text_of, windows.window("x-s").messages)] == ["They keep a list.", "Add bread"]
    assert "0 conversations with 0 messages imported" in import_file(file.write(), capsys)
    file.say("a3", "Bread added.")
    assert "1 conversation with 1 message imported" in import_file(file.write(), capsys)
    assert texts_of_history("x-s")[2:] == ["Add milk", "Milk added.", "Add bread", "Bread added."]
    assert verify("x-s") is None


def test_a_redacted_message_is_known_by_its_number_and_role(file, capsys):
    import_file(file.write(), capsys)
    services.redact("x-s", 1)
    assert "0 conversations" in import_file(file.write(), capsys)
    file.say("u2", "Add milk")
    assert "1 conversation with 1 message imported" in import_file(file.write(), capsys)
    assert texts_of_history("x-s")[1:] == ["List begun.", "Add milk"]
    assert "Begin" not in texts_of_history("x-s")[0]
    assert verify("x-s") is None


def test_another_beginning_or_a_changed_conversation_is_refused(file, capsys):
    import_file(file.write(), capsys)
    file.say("u2", "Add milk")
    file.records[0]["message"]["content"] = "Begin another list"
    with pytest.raises(CommandError, match="1 refusal"):
        import_file(file.write(), capsys)
    assert "does not begin like the conversation in the file" in capsys.readouterr().err
    assert texts_of_history("x-s") == ["Begin the list", "List begun."]


@pytest.mark.parametrize("key", ["the key of before", "another key"])
def test_a_file_is_known_after_its_conversation_has_gone_on(tmp_path, settings, capsys, key):
    """Under another SECRET_KEY, as on a new machine, the contents are compared."""
    settings.SECRET_KEY = "the key of before"
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "Begin"}]}))
    import_file(path, capsys)
    services.add("chat-1", [AiMessage("Begun."), UserMessage("Go on")])
    settings.SECRET_KEY = key
    call_command("import_transcripts", path)
    assert "1 already imported, 0 refused" in capsys.readouterr().out
    assert texts_of_history("chat-1") == ["Begin", "Begun.", "Go on"]


def test_a_long_rest_is_added_in_slices(file, capsys, monkeypatch):
    monkeypatch.setattr("chatmemory.ledger.slices.SLICE", 3)
    import_file(file.write(), capsys)
    for n in range(2, 9):
        file.say(f"u{n}", f"said {n}")
    assert "1 conversation with 7 messages imported" in import_file(file.write(), capsys)
    assert len(texts_of_history("x-s")) == 9
    assert Memory.objects.get().imported is None
    assert verify("x-s") is None


def test_lines_of_chat_messages_that_have_grown_go_on(tmp_path, capsys):
    path = tmp_path / "chat.json"
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Begin"},
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": "Begun."},
    ]
    path.write_text(json.dumps(turns))
    import_file(path, capsys)
    path.write_text(json.dumps([*turns, {"role": "user", "content": "Go on"}]))
    assert "1 conversation with 1 message imported" in import_file(path, capsys)
    assert texts_of_history("chat-1") == ["Be brief.", "Begin", "Begun.", "Go on"]


def test_a_fork_is_stored_as_a_branch(file, capsys):
    file.say("u2", "Add tea")
    file.say("a2", "Tea added.")
    file.say("u3", "Add milk", parent="a1")
    assert "2 conversations" in import_file(file.write(), capsys)
    assert texts_of_history("x-s") == ["Begin the list", "List begun.", "Add milk"]
    assert texts_of_history("x-s-branch-1") == [
        "Begin the list",
        "List begun.",
        "Add tea",
        "Tea added.",
    ]
    branch = Memory.objects.get(pk="x-s-branch-1")
    assert (branch.branched_from, branch.labels["from"]) == ("x-s", "x-s step 2")
    assert copies("x-s", 1) == [("x-s-branch-1", 1)]
    assert verify("x-s-branch-1") is None
    assert "0 conversations" in import_file(file.write(), capsys)


def test_redacted_text_does_not_come_back_in_a_branch(file, capsys):
    file.say("u2", "Add tea")
    import_file(file.write(), capsys)
    services.redact("x-s", 1)
    file.say("u3", "Add milk", parent="a1")
    import_file(file.write(), capsys)
    assert texts_of_history("x-s-branch-1")[1:] == ["List begun.", "Add milk"]
    assert "Begin" not in texts_of_history("x-s-branch-1")[0]
    assert verify("x-s-branch-1") is None


def test_stored_messages_stay_if_the_user_goes_back_later(file, capsys):
    file.say("u2", "Add tea")
    import_file(file.write(), capsys)
    file.say("u3", "Add milk", parent="a1")
    file.say("a3", "Milk added.")
    import_file(file.write(), capsys)
    assert texts_of_history("x-s") == ["Begin the list", "List begun.", "Add tea"]
    assert texts_of_history("x-s-branch-1") == [
        "Begin the list",
        "List begun.",
        "Add milk",
        "Milk added.",
    ]
    file.say("u4", "Add bread")
    assert "1 conversation with 1 message imported" in import_file(file.write(), capsys)
    assert texts_of_history("x-s-branch-1")[-1] == "Add bread"


def test_page_and_command_report_the_same(file, operator_client, capsys):
    file.say("u2", "Look", isMeta=True)
    file.records.append({"type": "attachment", "uuid": "t", "sessionId": "s", "attachment": {}})
    path = file.write(bad='{"type": "us')
    given = {"format": "auto", "kind": "message_window", "limit": 20, "begin": "page-"}
    with path.open("rb") as opened:
        answer = operator_client.post("/import/", {**given, "file": opened})
    page = " ".join(html.unescape(re.sub("<[^>]+>", " ", answer.content.decode())).split())
    with pytest.raises(CommandError, match="1 refusal, 1 conversation imported") as error:
        call_command("import_transcripts", path, "--json")
    assert error.value.returncode == 1
    refused, row, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert (refused["conversation"], refused["refused"]) == ("line 5", "not JSON")
    assert "line 5: not JSON" in page
    assert [what.partition(", first at ")[2] for what in row["lost"]] == ["", "line 4"]
    for what in row["lost"]:
        assert f" {what} " in page
    assert texts_of_history("page-s") == texts_of_history("x-s")


@pytest.mark.parametrize(
    "command", [["doctor"], ["incidents", "--policy", "message_window:2"]], ids=lambda it: it[0]
)
def test_commands_report_the_conversations_that_they_left_out(file, command, capsys):
    name, *options = command
    path = file.write(bad="null")
    with pytest.raises(SystemExit) as ended:
        call_command(name, path, *options)
    assert ended.value.code == 3
    assert (
        "left out line 3: this is not a record of the format claude_code, but null"
        in capsys.readouterr().err
    )
