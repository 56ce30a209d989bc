"""Erasure removes texts from every table and file; an audit entry remains."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatmemory import (
    AiMessage,
    CustomMessage,
    InvalidValue,
    MemoryNotFound,
    MessageNotFound,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    VersionConflict,
    queries,
    services,
)
from chatmemory.database import parts_of
from chatmemory.formats import Reading, Transcript
from chatmemory.ledger.verification import verify
from chatmemory.models import AuditEntry, IdempotentAnswer, Memory, Message, Stay, Step
from chatmemory.services import erasure, sqlite_files
from inspector.rooms.transfer.imports import import_all

from .conversations import BRIEF, create_and_add

SECRET = "my card is 4111-1111-QUOKKA"
SAID = [
    SystemMessage(SECRET),
    UserMessage(SECRET),
    AiMessage(SECRET, (ToolExecutionRequest("1", "pay", f'{{"card": "{SECRET}"}}'),), SECRET),
    ToolExecutionResultMessage("1", "pay", SECRET),
    CustomMessage({"card": SECRET}),
    BRIEF,
]


def everything() -> str:
    """Every value of every row of a conversation."""
    tables = (Memory, Message, Stay, Step, AuditEntry, IdempotentAnswer)
    return str([list(table.objects.values()) for table in tables])


def redacted() -> set[tuple[str, int]]:
    rows = Message.objects.filter(redacted_step__isnull=False)
    return set(rows.values_list("memory_id", "seq"))


def left() -> set[str]:
    return set(Memory.objects.values_list("pk", flat=True))


@pytest.fixture
def secrets(db) -> str:
    create_and_add("m", TokenWindow(5_000), SAID)
    return "m"


# Redaction


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
    assert call.message.tool_execution_requests[0] == ToolExecutionRequest("1", "pay", "{}")
    result = ToolExecutionResultMessage("1", "pay", "[redacted #4]")
    assert queries.message("m", 4).message == result
    row = queries.message("m", 2)
    assert (row.text, row.redacted.n, row.redacted.actor) == ("[redacted #2]", 8, "ada")
    assert queries.message("m", 6).redacted is None
    entry = AuditEntry.objects.get(detail__seq=2)
    assert (entry.action, entry.memory_id, entry.actor) == ("redact", "m", "ada")
    assert entry.detail == {"seq": 2, "step": 8}
    assert verify("m") is None


def test_a_text_that_only_looks_redacted_is_not(secrets):
    services.add("m", [UserMessage("[redacted #7]")])
    assert queries.message("m", 7).redacted is None
    assert services.redact("m", 7) is not None


def test_a_redaction_erases_trials_and_a_second_one_changes_nothing(secrets):
    key = services.keep_trial("m", [UserMessage(SECRET)])
    assert services.redact("m", 2) is not None
    assert queries.trial("m", key) is None
    key = services.keep_trial("m", [UserMessage("hi")])
    assert services.redact("m", 2) is None
    assert (queries.memory("m").last_step, AuditEntry.objects.count()) == (7, 1)
    assert queries.trial("m", key) is not None


def test_what_cannot_be_redacted_is_refused(secrets):
    with pytest.raises(MessageNotFound):
        services.redact("m", 99)
    with pytest.raises(VersionConflict):
        services.redact("m", 1, expected_version=3)


def test_a_message_is_redacted_without_its_estimator(secrets):
    Memory.objects.update(policy_estimator="custom:somebody.Elses")
    services.redact("m", 2, actor="ada")
    assert "QUOKKA" not in queries.message("m", 2).text


def test_redaction_over_the_api(api, secrets):
    url = "/api/v1/memories/m/messages/2/"
    answer = api.post(f"{url}redact/", headers={"If-Match": '"6"'})
    assert (answer.status_code, answer.data["text"]) == (200, "[redacted #2]")
    assert answer.data["redacted"]["actor"] == "token:tests"
    assert {**api.get(url).data, "copies": [], "summaries": []} == answer.data
    assert api.post(f"{url}redact/", headers={"If-Match": '"6"'}).status_code == 412


def test_redaction_on_the_page(operator_client, secrets):
    assert "Redact #2" in operator_client.get("/c/m/?msg=2").content.decode()
    assert operator_client.post("/c/m/redact/2/")["Location"] == "/c/m/?msg=2"
    page = operator_client.get("/c/m/?msg=2").content.decode()
    assert "[redacted #2]" in page
    assert "by operator" in page
    assert "Message #2 was redacted" in operator_client.get("/c/m/?at=7").content.decode()


# Branches and imports


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
    assert redacted() == {("m", 2), ("branch", 2)}
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
    assert redacted() == {("m", 2)}


def test_sources_that_somebody_altered_do_not_go_round_for_ever(branches):
    Memory.objects.filter(pk="branch").update(branched_from="twig")
    Memory.objects.update(created_at=timezone.now())
    services.redact("m", 2, branches=["branch", "twig"])
    assert redacted() == {("m", 2)}
    assert queries.branches(["branch"]) == ["twig"]


def test_a_page_asks_before_it_redacts_in_branches(operator_client, branches):
    page = operator_client.post("/c/m/redact/2/").content.decode()
    assert '<input type="checkbox" name="branch" value="twig" checked>' in page
    assert not redacted()
    operator_client.post("/c/m/redact/2/", {"confirmed": "1", "branch": ["twig"]})
    assert redacted() == {("m", 2), ("twig", 2)}


def test_a_page_asks_before_it_deletes_branches(operator_client, branches):
    page = operator_client.post("/bulk/", {"action": "delete", "id": "m"}).content.decode()
    assert "Also delete 2 conversations saved from them" in page
    deletion = {"action": "delete", "id": "m", "confirmed": "1"}
    operator_client.post("/bulk/", deletion | {"branches": '["twig", "gone"]'})
    assert left() == {"branch", "other"}


def test_an_import_is_known_also_under_another_key_and_after_a_redaction(db, settings):
    reading = Reading("openai_chat", (Transcript("chat", (UserMessage("QUOKKA"),)),), ())
    assert [result.messages for result in import_all(reading, MessageWindow(3))] == [1]
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another"
    assert [result.already for result in import_all(reading, MessageWindow(3))] == [True]
    step = services.redact("chat", 1)
    (again,) = import_all(reading, MessageWindow(3))
    assert again.already  # the redacted message is compared by its number and role
    assert again.messages == 0
    assert step.step == queries.memory("chat").last_step
    assert verify("chat") is None


# Summaries


@pytest.fixture
def summarised(db) -> str:
    """Three summaries: one with a term, one that stands for it and has the term, one without."""
    said = [UserMessage("It is A-1182 for Ada"), AiMessage("Thanks"), UserMessage("and B-7 too")]
    create_and_add("m", MessageWindow(9), said)
    services.compact("m", "They ask for (A-1182).", covering=[1, 2])
    services.add("m", [AiMessage("on its way")])
    services.compact("m", "A-1182 and B-7 are on their way.", covering=[4, 3])
    services.compact("m", "Two parcels for Ada.", covering=[6, 5])
    return "m"


def test_the_summaries_that_hold_terms_of_a_message_are_named(summarised):
    assert queries.summaries_holding("m", 1) == [4, 6]
    assert queries.summaries_holding("m", 2) == []
    assert queries.summaries_holding("m", 4) == [6]
    with pytest.raises(MessageNotFound):
        queries.summaries_holding("m", 99)
    services.redact("m", 6)
    assert queries.summaries_holding("m", 1) == [4]
    services.redact("m", 1)
    assert queries.summaries_holding("m", 1) == []


def test_words_of_the_settings_are_terms(summarised, settings):
    settings.CHATMEMORY = {**settings.CHATMEMORY, "FACT_TERMS": ["Ada"]}
    assert queries.summaries_holding("m", 1) == [4, 6, 7]


@pytest.mark.parametrize(
    ("chosen", "reached"),
    [((), []), ([6], [6]), ({4, 6}, [4, 6]), ([7], [7]), (True, [4, 6])],
)
def test_the_summaries_that_were_chosen_are_redacted_too(summarised, chosen, reached):
    before = queries.memory("m").last_step
    result = services.redact("m", 1, actor="ada", summaries=chosen)
    assert (result.kind, result.step, result.seq) == ("redact", before + 1, 1)
    assert redacted() == {("m", seq) for seq in [1, *reached]}
    steps = Step.objects.filter(memory="m", n__gt=before).order_by("n")
    assert [(step.kind, step.seq, step.actor) for step in steps] == [
        ("redact", seq, "ada") for seq in [1, *reached]
    ]
    assert AuditEntry.objects.filter(action="redact", actor="ada").count() == 1 + len(reached)
    assert ("A-1182" in everything()) == (not {4, 6} <= set(reached))
    assert verify("m") is None


@pytest.mark.parametrize(
    ("chosen", "left"),
    [
        ((), {("m", 4), ("m", 6), ("branch", 5), ("branch", 7)}),
        ([4, 6], {("branch", 7)}),
        (True, set()),
    ],
)
def test_copies_of_summaries_are_reached_and_with_true_those_of_the_branch(
    summarised, chosen, left
):
    """The branch has a copy of #6, and a summary of its own, #7, which stands for that copy."""
    services.branch("m", "branch", [AiMessage("yes")], at=6)
    copied = Message.objects.get(memory="branch", origin="SYNTHETIC").seq
    services.compact("branch", "Still A-1182.", keep_last=0)
    services.redact("m", 1, branches=["branch"], summaries=chosen)
    texts = Message.objects.filter(text__contains="A-1182").values_list("memory_id", "seq")
    assert (copied, set(texts)) == (5, left)
    assert verify("m") is verify("branch") is None


def test_a_redacted_summary_stays_one(summarised):
    services.add("m", [UserMessage("a"), UserMessage("b")])
    services.redact("m", 7)
    row = queries.window("m").rows[0]
    assert (row.seq, row.pinned, row.message.contents[0].text) == (7, True, "[redacted #7]")
    services.compact("m", "All.", keep_last=1)
    assert [row.seq for row in queries.window("m").rows] == [10, 9]
    assert queries.stands_for("m", [10])[10].seqs == (1, 2, 3, 5, 8)
    assert verify("m") is None


def test_without_summaries_none_are_asked_for(secrets):
    services.compact("m", "Paid.", keep_last=1)
    with CaptureQueriesContext(connection) as asked:
        services.redact("m", 2)
    assert not [each for each in asked if "SUMMARIZED" in each["sql"]]
    with CaptureQueriesContext(connection) as asked:
        assert queries.summaries_holding("m", 6) == []
    assert len(asked) == 2


def test_log_lines_of_a_redaction_have_no_terms(
    summarised, caplog, django_capture_on_commit_callbacks
):
    def act() -> None:
        services.redact("m", 1, actor="ada", summaries=True)

    lines = audit_lines(caplog, django_capture_on_commit_callbacks, act)
    assert [line.action for line in lines] == ["redact"] * 4
    assert "A-1182" not in caplog.text


def test_a_page_asks_before_it_redacts_summaries(operator_client, summarised):
    page = operator_client.post("/c/m/redact/1/").content.decode()
    assert "Redact #1 in other places, too?" in page
    for seq in (4, 6):
        assert f'<input type="checkbox" name="summary" value="{seq}" checked>' in page
    assert 'value="7"' not in page
    assert "Conversations that were saved" not in page
    assert "A-1182" not in page
    assert not redacted()
    operator_client.post("/c/m/redact/1/", {"confirmed": "1", "summary": ["6", "x"]})
    assert redacted() == {("m", 1), ("m", 6)}


def test_a_page_does_not_ask_where_no_summary_holds_a_term(operator_client, summarised):
    assert operator_client.post("/c/m/redact/2/")["Location"] == "/c/m/?msg=2"
    assert redacted() == {("m", 2)}


# Deletion


def test_a_deletion_leaves_an_audit_entry_and_nothing_else(secrets):
    services.delete("m", actor="ada")
    (entry,) = AuditEntry.objects.all()
    assert (entry.action, entry.memory_id, entry.actor) == ("delete", "m", "ada")
    assert entry.detail.keys() == {"steps", "messages", "head"}
    assert (entry.detail["steps"], entry.detail["messages"]) == (6, 6)
    assert "QUOKKA" not in everything()
    assert not Message.objects.exists()
    with pytest.raises(MemoryNotFound):
        services.delete("m")


def audit_lines(caplog, capture, act) -> list[logging.LogRecord]:
    """Return the lines of the audit log that an action writes when it commits."""
    with caplog.at_level(logging.INFO, "chatmemory.audit"), capture(execute=True):
        act()
    return [record for record in caplog.records if record.name == "chatmemory.audit"]


def test_log_lines_have_actor_and_action_without_texts(
    secrets, caplog, django_capture_on_commit_callbacks
):
    def act() -> None:
        services.create("empty", None, actor="ada")
        services.add("m", [UserMessage(SECRET)], actor="ada")
        services.delete("m", actor="ada")

    created, added, deleted = audit_lines(caplog, django_capture_on_commit_callbacks, act)
    assert (created.action, created.memory_id, created.actor) == ("create", "empty", "ada")
    assert (added.action, added.actor, added.memory_id) == ("add", "ada", "m")
    assert (added.first_step, added.last_step, deleted.action) == (7, 7, "delete")
    assert "QUOKKA" not in caplog.text


def test_several_conversations_are_locked_in_one_order(
    db, caplog, django_capture_on_commit_callbacks
):
    """Else two that change the same ones wait for each other on PostgreSQL."""

    def act() -> None:
        services.label(["c", "a", "b", "a"], "team", "x")
        services.delete_all(["b", "c", "a"], "ada")

    for memory_id in "cab":
        services.create(memory_id, MessageWindow(2))
    lines = audit_lines(caplog, django_capture_on_commit_callbacks, act)
    told = [(line.action, line.memory_id) for line in lines]
    assert told == [(action, each) for action in ("labels", "delete") for each in "abc"]
    assert {entry.actor for entry in AuditEntry.objects.all()} == {"ada"}


def test_many_conversations_are_deleted_in_short_transactions(db, monkeypatch):
    assert list(parts_of({"a": 4, "b": 4, "c": 9, "d": 1}, 9)) == [["a", "b"], ["c"], ["d"]]
    assert list(parts_of({"a": 10}, 9)) == [["a"]]
    assert list(parts_of({}, 9)) == [[]]
    monkeypatch.setattr(erasure, "AT_ONCE", 10)
    for n in range(9):
        create_and_add(f"m{n}", MessageWindow(2), [UserMessage("a")])  # four rows
    services.delete_all([f"m{n}" for n in range(9)])
    assert queries.count() == 0


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


# manage.py purge_memories


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


@pytest.mark.parametrize(
    ("options", "goes", "told"),
    [
        (["--older-than", "90d"], {"old", "old-test"}, "2 conversations: old, old-test"),
        (["--label", "env:test"], {"old-test", "new-test"}, "2 conversations: new-test, old-test"),
        (["--label", "env"], {"old-test", "new-test"}, "2 conversations"),
        (["--older-than", "90d", "--label", "env:test"], {"old-test"}, "old-test"),
        (["--older-than", "200d"], set(), ""),
    ],
)
def test_purging_by_age_and_label(old, capsys, options, goes, told):
    everyone = left()
    call_command("purge_memories", *options, "--dry-run")
    assert left() == everyone
    assert told in capsys.readouterr().out
    call_command("purge_memories", *options, "--yes")
    assert left() == everyone - goes
    assert set(AuditEntry.objects.values_list("memory_id", flat=True)) == goes


@pytest.mark.parametrize(("options", "stays"), [([], {"branch"}), (["--with-branches"], set())])
def test_purging_shows_the_branches(old, capsys, options, stays):
    services.branch("old-test", "branch", [])
    call_command("purge_memories", "--label", "env:test", "--yes", *options)
    assert "1 were saved from them" in capsys.readouterr().out
    assert left() == {"new", "old"} | stays


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "older-than"),
        (["--older-than", "soon"], "older-than"),
        (["--older-than", "-1d"], "older-than"),
        *(
            (["--begun", *options], f"use --begun without {options[0]}")
            for options in (
                ["--older-than", "1d"],
                ["--label", "env:test"],
                ["--with-branches"],
                ["--dry-run"],
            )
        ),
    ],
)
def test_purging_needs_a_valid_choice(old, options, why):
    with pytest.raises(CommandError, match=why):
        call_command("purge_memories", *options, "--yes")
    assert len(left()) == 4


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


# The bytes of SQLite's files


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
    assert "vacuumed" in served.manage("vacuum")
    assert secret.encode() not in bytes_of(served)


@pytest.fixture
def reader(committing) -> Iterator[sqlite3.Connection]:
    """A reader that needs the log, which holds a conversation's words."""
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL's log cannot be emptied")
    create_and_add("m", MessageWindow(3), [UserMessage(SECRET)])
    with closing(sqlite3.connect(connection.settings_dict["NAME"])) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM chatmemory_message").fetchone()
        yield reader


def log_of_sqlite() -> bytes:
    return Path(f"{connection.settings_dict['NAME']}-wal").read_bytes()


def test_an_erasure_does_not_wait_for_a_reader_and_says_so(reader, caplog):
    services.redact("m", 1)
    assert "which still holds what was erased" in caplog.text
    services.empty_leftover_log()
    assert b"QUOKKA" in log_of_sqlite()
    reader.close()
    services.empty_leftover_log()
    assert not log_of_sqlite()
    assert b"QUOKKA" not in Path(connection.settings_dict["NAME"]).read_bytes()
    services.add("m", [UserMessage("more")])
    services.empty_leftover_log()
    assert log_of_sqlite(), "nothing was erased since"


def test_vacuum_says_whether_a_reader_needs_the_log(reader, capsys, monkeypatch):
    monkeypatch.setattr("chatmemory.management.commands.vacuum.WAIT_SECONDS", 0)
    services.redact("m", 1)
    reader.execute("COMMIT")
    call_command("vacuum")
    assert capsys.readouterr().out == "vacuumed\n"
    assert not log_of_sqlite()
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM chatmemory_message").fetchone()
    call_command("vacuum")
    assert "a reader still needs the write-ahead log" in capsys.readouterr().out


def test_a_log_that_an_earlier_process_has_left_is_emptied(reader, monkeypatch):
    services.redact("m", 1)
    reader.close()
    monkeypatch.setattr(sqlite_files, "_emptied", set())  # as in a new process
    services.empty_leftover_log()
    assert not log_of_sqlite()


@pytest.mark.parametrize("how", ["at once", "in slices", "interrupted"])
def test_a_deletion_leaves_nothing_in_the_log(committing, monkeypatch, how):
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL's log cannot be emptied")
    if how != "at once":
        monkeypatch.setattr(erasure, "AT_ONCE", 0)
    create_and_add("m", MessageWindow(3), [UserMessage(SECRET)])
    with monkeypatch.context() as patched:
        if how == "interrupted":
            patched.setattr(erasure, "_purge", lambda memory_id: None)
        services.delete("m")
    if how == "interrupted":
        services.finish_deletions()
    file = str(connection.settings_dict["NAME"])
    assert not Path(f"{file}-wal").read_bytes()
    assert b"QUOKKA" not in Path(file).read_bytes()


def test_what_does_not_stand_for_the_message_is_refused(summarised):
    for wrong in ([2], [4, 99], [3, 6]):
        with pytest.raises(InvalidValue, match="is no summary that stands for #1"):
            services.redact("m", 1, summaries=wrong)
    for wrong in ("46", 4, False, None, [True], ["4"]):
        with pytest.raises(InvalidValue, match="summaries must be a list of whole numbers"):
            services.redact("m", 1, summaries=wrong)
    assert not redacted()
    services.redact("m", 1)
    assert services.redact("m", 1, summaries=[99]) is None
