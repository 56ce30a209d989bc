"""Erasure removes texts from every table and file; an audit entry remains."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import threading
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from chatmemory import (
    AiMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    queries,
    services,
)
from chatmemory.core.exceptions import MemoryNotFound, MessageNotFound, VersionConflict
from chatmemory.core.messages import CustomMessage
from chatmemory.core.policies import MessageWindow, TokenWindow
from chatmemory.database import parts_of
from chatmemory.formats import Reading, Transcript
from chatmemory.ledger.verification import verify
from chatmemory.models import AuditEntry, IdempotentAnswer, Memory, Message, Stay, Step
from chatmemory.services import erasure, write_ahead_log

from .conversations import create_and_add

LISTING = """from chatmemory.models import Message
print(list(Message.objects.values_list("memory_id", "text", "seq")))"""
SECRET = "my card is 4111-1111-QUOKKA"
SAID = [
    SystemMessage(SECRET),
    UserMessage(SECRET),
    AiMessage(SECRET, (ToolExecutionRequest("1", "pay", f'{{"card": "{SECRET}"}}'),), SECRET),
    ToolExecutionResultMessage("1", "pay", SECRET),
    CustomMessage({"card": SECRET}),
    SystemMessage("Be brief."),
]


def everything() -> str:
    """Every value of every row of a conversation."""
    tables = (Memory, Message, Stay, Step, AuditEntry, IdempotentAnswer)
    return str([list(table.objects.values()) for table in tables])


@pytest.fixture
def secrets(db) -> str:
    create_and_add("m", TokenWindow(5_000), SAID)
    return "m"


def test_a_redacted_message_keeps_its_type_and_loses_its_text(secrets):
    before = queries.memory("m")
    for seq in range(1, 6):
        services.redact("m", seq, actor="ada")
    assert "QUOKKA" not in everything()
    assert not Memory.objects.containing("QUOKKA").exists()
    after = queries.memory("m")
    assert (after.window, after.said_count) == (before.window, before.said_count)
    assert after.history_tokens == before.history_tokens
    call = queries.message("m", 3)
    assert call.has_calls
    assert call.message.tool_execution_requests[0] == ToolExecutionRequest("1", "pay", "{}")
    assert queries.message("m", 2).text == "[redacted #2]"
    result = ToolExecutionResultMessage("1", "pay", "[redacted #4]")
    assert queries.message("m", 4).message == result
    assert verify("m") is None


def test_a_tombstone_has_actor_and_time(secrets):
    step = services.redact("m", 2, actor="ada")
    row = queries.message("m", 2)
    assert (row.redacted.n, row.redacted.actor) == (step.step, "ada") == (7, "ada")
    assert queries.message("m", 1).redacted is None
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.memory_id, entry.actor) == ("redact", "m", "ada")
    assert entry.detail == {"seq": 2, "step": 7}


def test_a_text_that_only_looks_redacted_is_not(secrets):
    services.add("m", [UserMessage("[redacted #7]")])
    assert queries.message("m", 7).redacted is None
    assert services.redact("m", 7) is not None


def test_a_redaction_erases_trials(secrets):
    key = services.keep_trial("m", [UserMessage(SECRET)])
    services.redact("m", 2)
    assert queries.trial("m", key) is None


@pytest.fixture
def branches(secrets) -> None:
    """A branch, a branch of that, and a conversation that says the same."""
    services.branch("m", "branch", [UserMessage(SECRET)], at=2, policy=TokenWindow(5_000))
    services.branch("branch", "twig", [])
    create_and_add("other", TokenWindow(5_000), SAID)


def test_a_redaction_reaches_the_copies_in_the_branches_that_were_chosen(branches):
    assert queries.branches(["m"]) == ["branch", "twig"]
    assert queries.copies("m", 2) == [("branch", 2), ("twig", 2)]
    services.redact("m", 2, actor="ada", branches=["branch", "other"])
    redacted = Message.objects.filter(redacted_step__isnull=False)
    assert set(redacted.values_list("memory_id", "seq")) == {("m", 2), ("branch", 2)}
    assert queries.copies("m", 2) == []
    assert AuditEntry.objects.filter(memory_id="branch", actor="ada").exists()
    assert all(verify(memory_id) is None for memory_id in ("m", "branch", "twig"))


def test_a_branch_of_a_deleted_branch_is_reached(branches):
    services.delete("branch")
    assert queries.copies("m", 2) == [("twig", 2)]
    services.delete("m")
    services.create("m", TokenWindow(5_000))
    assert queries.branches(["m"]) == []


def test_a_later_conversation_of_the_same_id_has_not_the_branches(branches):
    services.delete("m")
    create_and_add("m", TokenWindow(5_000), SAID)
    services.branch("branch", "leaf", [])
    services.delete("branch")
    assert queries.branches(["m"]) == []
    services.redact("m", 2, branches=["twig", "leaf"])
    assert not Message.objects.filter(memory__in=["twig", "leaf"], redacted_step__gt=0).exists()


def test_sources_that_somebody_altered_do_not_go_round_for_ever(branches):
    Memory.objects.filter(pk="branch").update(branched_from="twig")
    Memory.objects.update(created_at=timezone.now())
    services.redact("m", 2, branches=["branch", "twig"])
    assert not Message.objects.filter(memory="twig", redacted_step__gt=0).exists()
    assert queries.branches(["branch"]) == ["twig"]


def test_a_page_asks_before_it_redacts_in_branches(operator_client, branches):
    page = operator_client.post("/c/m/redact/2/").content.decode()
    assert '<input type="checkbox" name="branch" value="twig" checked>' in page
    assert not Message.objects.filter(redacted_step__isnull=False).exists()
    operator_client.post("/c/m/redact/2/", {"confirmed": "1", "branch": ["twig"]})
    redacted = Message.objects.filter(redacted_step__isnull=False)
    assert set(redacted.values_list("memory_id", "seq")) == {("m", 2), ("twig", 2)}


def test_a_page_asks_before_it_deletes_branches(operator_client, branches):
    page = operator_client.post("/bulk/", {"action": "delete", "id": "m"}).content.decode()
    assert "Also delete 2 conversations saved from them" in page
    deletion = {"action": "delete", "id": "m", "confirmed": "1"}
    operator_client.post("/bulk/", deletion | {"branches": '["twig", "gone"]'})
    assert left() == {"branch", "other"}


def test_a_redacted_import_is_no_longer_known(db):
    reading = a_file_with("QUOKKA")
    assert [result.messages for result in services.import_all(reading, MessageWindow(3))] == [1]
    assert [result.already for result in services.import_all(reading, MessageWindow(3))] == [True]
    step = services.redact("chat", 1)
    (again,) = services.import_all(reading, MessageWindow(3))
    assert not again.already
    assert "already exists" in again.refused
    assert step.step == queries.memory("chat").last_step
    assert verify("chat") is None


def test_an_import_is_known_after_a_rotation_of_the_secret_key(db, settings):
    reading = a_file_with("QUOKKA")
    list(services.import_all(reading, MessageWindow(3)))
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another"
    assert [result.already for result in services.import_all(reading, MessageWindow(3))] == [True]


def a_file_with(words: str) -> Reading:
    return Reading("openai_chat", (Transcript("chat", (UserMessage(words),)),), ())


def test_a_second_redaction_changes_nothing(secrets):
    assert services.redact("m", 2) is not None
    key = services.keep_trial("m", [UserMessage("hi")])
    assert services.redact("m", 2) is None
    assert queries.memory("m").last_step == 7
    assert queries.trial("m", key) is not None
    assert AuditEntry.objects.count() == 1


def test_a_conversation_continues_after_a_redaction(secrets):
    services.redact("m", 1)
    services.redact("m", 6)
    services.add("m", [SystemMessage("Be kind."), UserMessage("hello")])
    services.change("m", policy=MessageWindow(2))
    services.add("m", [UserMessage("again")])
    assert verify("m") is None


def test_a_list_with_a_tombstone_keeps_its_totals(secrets):
    services.redact("m", 2)
    before = {row.seq: row.tokens for row in queries.window("m").rows}
    services.set_messages("m", queries.window("m").messages[:4])
    assert {row.seq: row.tokens for row in queries.window("m").rows}.items() <= before.items()
    services.add("m", [UserMessage("hello")])
    assert verify("m") is None


def test_an_unknown_message_cannot_be_redacted(secrets):
    with pytest.raises(MessageNotFound):
        services.redact("m", 99)
    with pytest.raises(VersionConflict):
        services.redact("m", 1, expected_version=3)


def test_redaction_over_the_api(api, secrets):
    url = "/api/v1/memories/m/messages/2/"
    answer = api.post(f"{url}redact/", headers={"If-Match": '"6"'})
    assert answer.status_code == 200
    assert answer.data["text"] == "[redacted #2]"
    assert answer.data["redacted"]["actor"] == "token:tests"
    assert {**api.get(url).data, "copies": []} == answer.data
    assert api.post(f"{url}redact/", headers={"If-Match": '"6"'}).status_code == 412


def test_redaction_on_the_page(operator_client, secrets):
    page = operator_client.get("/c/m/?msg=2").content.decode()
    assert "Redact #2" in page
    answer = operator_client.post("/c/m/redact/2/")
    assert answer["Location"] == "/c/m/?msg=2"
    page = operator_client.get("/c/m/?msg=2").content.decode()
    assert "[redacted #2]" in page
    assert "by operator" in page
    assert "Message #2 was redacted" in operator_client.get("/c/m/?at=7").content.decode()


def test_a_deletion_leaves_an_audit_entry_and_nothing_else(secrets):
    services.delete("m", actor="ada")
    (entry,) = AuditEntry.objects.all()
    assert (entry.action, entry.memory_id, entry.actor) == ("delete", "m", "ada")
    assert entry.detail.keys() == {"steps", "messages", "head"}
    assert (entry.detail["steps"], entry.detail["messages"]) == (6, 6)
    assert "QUOKKA" not in everything()
    assert not Message.objects.exists()


def test_log_lines_have_actor_and_action_without_texts(
    secrets, caplog, django_capture_on_commit_callbacks
):
    with (
        caplog.at_level(logging.INFO, "chatmemory.audit"),
        django_capture_on_commit_callbacks(execute=True),
    ):
        services.create("empty", None, actor="ada")
        services.add("m", [UserMessage(SECRET)], actor="ada")
        services.delete("m", actor="ada")
    created, added, deleted = (
        record for record in caplog.records if record.name == "chatmemory.audit"
    )
    assert (created.action, created.memory_id, created.actor) == ("create", "empty", "ada")
    assert (added.actor, added.memory_id, added.first_step, added.last_step) == ("ada", "m", 7, 7)
    assert added.action == "add"
    assert deleted.action == "delete"
    assert "QUOKKA" not in caplog.text


# The bytes


def bytes_of(served) -> bytes:
    database = Path(served.environment["DATABASE_URL"].removeprefix("sqlite:///"))
    return b"".join(file.read_bytes() for file in database.parent.glob(f"{database.name}*"))


@pytest.mark.parametrize("how", ["redact", "delete"])
def test_no_byte_is_left_in_sqlites_files(served, how):
    if not served.environment["DATABASE_URL"].startswith("sqlite"):
        pytest.skip("PostgreSQL keeps what VACUUM and its log still hold, see docs/operations.md")
    secret = f"{how}-4111-1111-QUOKKA"
    served.create(how)
    served.say(how, f"my card is {secret}", f"{secret} " * 2_000)
    assert secret.encode() in bytes_of(served)
    url = f"{served.url}/api/v1/memories/{how}/"
    if how == "delete":
        served.api.delete(url).raise_for_status()
    else:
        for seq in (1, 2):
            served.api.post(f"{url}messages/{seq}/redact/").raise_for_status()
    assert "compacted" in served.manage("compact")
    assert secret.encode() not in bytes_of(served)


# Purging


@pytest.fixture
def old(db) -> None:
    for memory_id, days, labels in [
        ("new", 1, {}),
        ("old", 100, {}),
        ("old-test", 100, {"env": "test"}),
        ("new-test", 1, {"env": "test"}),
    ]:
        create_and_add(memory_id, MessageWindow(3), [UserMessage("hi")], labels)
        Memory.objects.filter(pk=memory_id).update(updated_at=timezone.now() - timedelta(days=days))


def left() -> set[str]:
    return set(Memory.objects.values_list("pk", flat=True))


@pytest.mark.parametrize(
    ("options", "goes"),
    [
        (["--older-than", "90d"], {"old", "old-test"}),
        (["--label", "env:test"], {"old-test", "new-test"}),
        (["--label", "env"], {"old-test", "new-test"}),
        (["--older-than", "90d", "--label", "env:test"], {"old-test"}),
        (["--older-than", "200d"], set()),
    ],
)
def test_purging_by_age_and_label(old, capsys, options, goes):
    everyone = left()
    call_command("purge_memories", *options, "--dry-run")
    assert left() == everyone
    said = capsys.readouterr().out
    assert all(memory_id in said for memory_id in goes)
    call_command("purge_memories", *options, "--yes")
    assert left() == everyone - goes
    assert set(AuditEntry.objects.values_list("memory_id", flat=True)) == goes


def test_a_dry_run_lists_the_conversations(old, capsys):
    call_command("purge_memories", "--label", "env:test", "--dry-run")
    assert "2 conversations: new-test, old-test" in capsys.readouterr().out


@pytest.mark.parametrize(("options", "stays"), [([], {"branch"}), (["--with-branches"], set())])
def test_purging_shows_the_branches(old, capsys, options, stays):
    services.branch("old-test", "branch", [])
    call_command("purge_memories", "--label", "env:test", "--yes", *options)
    assert "1 were saved from them" in capsys.readouterr().out
    assert left() == {"new", "old"} | stays


@pytest.mark.parametrize("options", [[], ["--older-than", "soon"], ["--older-than", "-1d"]])
def test_purging_needs_a_valid_filter(old, options):
    with pytest.raises(CommandError, match="older-than"):
        call_command("purge_memories", *options, "--yes")
    assert len(left()) == 4


# Copies


@pytest.mark.own_server
def test_a_copy_made_during_writes_is_complete(served, tmp_path):
    if not served.environment["DATABASE_URL"].startswith("sqlite"):
        pytest.skip("PostgreSQL has pg_dump")
    from .load.test_crash import Load  # clients that write without a pause

    for memory_id in ("one", "two", "three"):
        served.create(memory_id, limit=10)
    copy = tmp_path / "copy.sqlite3"
    with Load(served) as load:
        load.wait_for(30)
        known = set(load.acknowledged)
        assert "bytes" in served.manage("backup", str(copy))
        load.wait_for(5)
    restored = served.environment | {"DATABASE_URL": f"sqlite:///{copy}"}
    original, served.environment = served.environment, restored
    try:
        assert "verified: all match their replay" in served.manage("verify_memories")
        kept = served.manage("shell", "-v", "0", "-c", LISTING)
    finally:
        served.environment = original
    assert all(str(each) in kept for each in known)
    assert copy.stat().st_mode & 0o077 == 0


def test_a_copy_does_not_replace_files(db, tmp_path):
    if connection.vendor != "sqlite":
        with pytest.raises(CommandError, match="pg_dump"):
            call_command("backup", str(tmp_path / "copy"))
        return
    target = tmp_path / "copy.sqlite3"
    target.write_text("precious")
    with pytest.raises(CommandError, match="already exists"):
        call_command("backup", str(target))
    assert target.read_text() == "precious"
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("backup", str(tmp_path / "nowhere" / "copy"))
    assert list(tmp_path.iterdir()) == [target]


def test_a_copy_does_not_replace_the_database_in_use(served):
    if not served.environment["DATABASE_URL"].startswith("sqlite"):
        pytest.skip("PostgreSQL is copied by pg_dump")
    served.create("kept")
    file = served.environment["DATABASE_URL"].removeprefix("sqlite:///")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        served.manage("backup", file, "--force")
    assert "is the database in use" in refused.value.stderr
    served.say("kept", "still here")


def test_a_message_is_redacted_without_its_estimator(secrets):
    Memory.objects.update(policy_estimator="custom:somebody.Elses")
    services.redact("m", 2, actor="ada")
    assert "QUOKKA" not in queries.message("m", 2).text


@pytest.mark.parametrize(
    ("name", "actor"),
    [("ada", "ada"), (None, "uid 123456789"), ("\udce4", "\\udce4"), ("n" * 300, "n" * 246)],
)
def test_a_purge_tells_who_asked_for_it(old, monkeypatch, name, actor):
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    if name:
        monkeypatch.setenv("LOGNAME", name)
    monkeypatch.setattr("os.getuid", lambda: 123456789)  # which has no name
    call_command("purge_memories", "--label", "env:test", "--yes")
    assert {entry.actor for entry in AuditEntry.objects.all()} == {f"purge by {actor}"}


@pytest.mark.parametrize(
    "options",
    [["--older-than", "1d"], ["--label", "env:test"], ["--with-branches"], ["--dry-run"]],
)
def test_finishing_deletions_takes_no_choice_of_others(old, options):
    with pytest.raises(CommandError, match=f"use --begun without {options[0]}"):
        call_command("purge_memories", "--begun", "--yes", *options)
    assert len(left()) == 4
    call_command("purge_memories", "--begun", "--yes")


def test_purging_skips_conversations_that_change_meanwhile(old, monkeypatch):
    def answer(_: str) -> str:
        services.add("old", [UserMessage("I am back")])
        return "yes"

    monkeypatch.setattr("builtins.input", answer)
    call_command("purge_memories", "--older-than", "30d")
    assert left() == {"new", "new-test", "old"}


def test_a_purge_without_confirmation_deletes_nothing(secrets, monkeypatch):
    monkeypatch.setattr("sys.stdin", StringIO())
    with pytest.raises(CommandError, match="use --yes"):
        call_command("purge_memories", "--older-than", "0d")
    assert Memory.objects.exists()


# The log of SQLite


def test_an_erasure_does_not_wait_for_a_reader(committing, monkeypatch):
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL's log cannot be emptied")
    monkeypatch.setattr(write_ahead_log, "RETRY_SECONDS", 0.01)
    file = str(connection.settings_dict["NAME"])
    create_and_add("m", MessageWindow(3), [UserMessage(SECRET)])
    reader = sqlite3.connect(file)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM chatmemory_message").fetchone()
    services.redact("m", 1)
    retrying = write_ahead_log.retry.thread_of(file)
    assert retrying.is_alive()
    assert b"QUOKKA" in Path(f"{file}-wal").read_bytes()
    reader.close()
    retrying.join(20)
    assert write_ahead_log.retry.thread_of(file) is None
    assert not Path(f"{file}-wal").read_bytes()
    assert b"QUOKKA" not in Path(file).read_bytes()


def test_a_log_whose_file_cannot_be_opened_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(write_ahead_log, "RETRY_SECONDS", 0.01)
    tries = threading.Semaphore(0)
    file = tmp_path / "file"
    file.mkdir()  # which SQLite cannot open
    monkeypatch.setattr(sqlite3, "connect", counted(sqlite3.connect, tries))
    write_ahead_log.retry.start(str(file))
    retrying = write_ahead_log.retry.thread_of(str(file))
    assert tries.acquire(timeout=20), "a first try"
    assert tries.acquire(timeout=20), "and another one"
    file.rmdir()
    retrying.join(20)
    assert write_ahead_log.retry.thread_of(str(file)) is None


def counted(call, calls: threading.Semaphore):
    def called(*args, **options):
        calls.release()
        return call(*args, **options)

    return called


@pytest.mark.parametrize("how", ["at once", "in slices", "interrupted"])
def test_a_deletion_leaves_nothing_in_the_log(committing, monkeypatch, how):
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL's log cannot be emptied")
    if how != "at once":
        monkeypatch.setattr("chatmemory.services.erasure.AT_ONCE", 0)
    create_and_add("m", MessageWindow(3), [UserMessage(SECRET)])
    with monkeypatch.context() as patched:
        if how == "interrupted":
            patched.setattr("chatmemory.services.erasure._purge", lambda memory_id: None)
        services.delete("m")
    if how == "interrupted":
        services.finish_deletions()
    file = str(connection.settings_dict["NAME"])
    assert not Path(f"{file}-wal").read_bytes()
    assert b"QUOKKA" not in Path(file).read_bytes()


def test_the_logs_of_two_files_are_emptied(tmp_path, monkeypatch):
    monkeypatch.setattr(write_ahead_log, "RETRY_SECONDS", 0.01)
    files = [str(tmp_path / name) for name in ("one", "two")]
    writers, readers = zip(*map(written_and_read, files), strict=True)
    for file in files:
        write_ahead_log.retry.start(file)
    retrying = [write_ahead_log.retry.thread_of(file) for file in files]
    assert all(Path(f"{file}-wal").read_bytes() for file in files)
    for reader in readers:
        reader.close()
    for thread in retrying:
        thread.join(20)
    assert not any(Path(f"{file}-wal").read_bytes() for file in files)
    for writer in writers:
        writer.close()


def written_and_read(file: str) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Return two connections to a new file, of which the second reads what the first has written.

    The log is emptied when the last connection is closed, too.
    """
    writer, reader = sqlite3.connect(file), sqlite3.connect(file)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE erased (text)")
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM erased").fetchone()
    return writer, reader


def test_many_conversations_are_deleted_in_short_transactions(db, monkeypatch):
    assert list(parts_of({"a": 4, "b": 4, "c": 9, "d": 1}, 9)) == [["a", "b"], ["c"], ["d"]]
    assert list(parts_of({"a": 10}, 9)) == [["a"]]
    assert list(parts_of({}, 9)) == [[]]
    monkeypatch.setattr("chatmemory.services.erasure.AT_ONCE", 10)
    for n in range(9):
        create_and_add(f"m{n}", MessageWindow(2), [UserMessage("a")])  # four rows
    services.delete_all([f"m{n}" for n in range(9)])
    assert queries.count() == 0


def test_several_conversations_are_locked_in_one_order(
    db, caplog, django_capture_on_commit_callbacks
):
    """Else two that change the same ones wait for each other on PostgreSQL."""
    for memory_id in "cab":
        services.create(memory_id, MessageWindow(2))
    with (
        caplog.at_level(logging.INFO, "chatmemory.audit"),
        django_capture_on_commit_callbacks(execute=True),
    ):
        services.label(["c", "a", "b", "a"], "team", "x")
        services.delete_all(["b", "c", "a"], "ada")
    told = [(record.action, record.memory_id) for record in caplog.records]
    assert told == [(action, each) for action in ("labels", "delete") for each in "abc"]
    assert {entry.actor for entry in AuditEntry.objects.all()} == {"ada"}


def test_a_conversation_that_somebody_deletes_meanwhile_is_left_out(db, monkeypatch):
    sizes_of = erasure.sizes_of

    def meanwhile(memory_ids):
        sizes = sizes_of(memory_ids)
        services.delete("b")
        return sizes

    monkeypatch.setattr(erasure, "sizes_of", meanwhile)
    for memory_id in "abc":
        services.create(memory_id, MessageWindow(2))
    services.delete_all(["a", "b", "c"])
    assert queries.count() == 0


def test_nothing_is_deleted_or_labelled_if_one_does_not_exist(db):
    services.create("m", MessageWindow(2))
    for act in (services.delete_all, lambda ids: services.label(ids, "team", "a")):
        with pytest.raises(MemoryNotFound, match="nobody"):
            act(["m", "nobody"])
    assert queries.memory("m").labels == {}
