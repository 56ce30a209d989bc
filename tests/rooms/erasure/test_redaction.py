"""Redactions: of messages, of their copies in branches, and of summaries."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatmemory import (
    AiMessage,
    InvalidValue,
    MessageNotFound,
    MessageWindow,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    VersionConflict,
    services,
)
from chatmemory.formats import Reading, Transcript
from chatmemory.ledger.branches import branches_of
from chatmemory.ledger.verification import verify
from chatmemory.models import AuditEntry, Memory, Message, Step
from chatmemory.reading import conversations, history, windows
from chatmemory.reading.summaries import coverage_by_summary
from inspector.rooms.erasure.copies import copies
from inspector.rooms.erasure.terms import summaries_holding
from inspector.rooms.simulation.trials import trial
from inspector.rooms.transfer.imports import import_all

from ...conversations import create_and_add
from ...test_erasure import SAID, SECRET, audit_lines, everything, ids_left, redacted


def test_a_redacted_message_keeps_its_type_and_loses_its_text(secrets):
    before = conversations.memory("m")
    for seq in range(1, 6):
        services.redact("m", seq, actor="ada")
    assert "QUOKKA" not in everything()
    assert not Memory.objects.containing("QUOKKA").exists()
    after = conversations.memory("m")
    assert (after.window, after.said_count) == (before.window, before.said_count)
    assert after.history_tokens == before.history_tokens
    call = history.message("m", 3)
    assert call.message.tool_execution_requests[0] == ToolExecutionRequest("1", "pay", "{}")
    result = ToolExecutionResultMessage("1", "pay", "[redacted #4]")
    assert history.message("m", 4).message == result
    row = history.message("m", 2)
    assert (row.text, row.redacted.n, row.redacted.actor) == ("[redacted #2]", 8, "ada")
    assert history.message("m", 6).redacted is None
    entry = AuditEntry.objects.get(detail__seq=2)
    assert (entry.action, entry.memory_id, entry.actor) == ("redact", "m", "ada")
    assert entry.detail == {"seq": 2, "step": 8}
    assert verify("m") is None


def test_a_text_that_only_looks_redacted_is_not(secrets):
    services.add("m", [UserMessage("[redacted #7]")])
    assert history.message("m", 7).redacted is None
    assert services.redact("m", 7) is not None


def test_a_redaction_erases_trials_and_a_second_one_changes_nothing(secrets):
    key = services.keep_trial("m", [UserMessage(SECRET)])
    assert services.redact("m", 2) is not None
    assert trial("m", key) is None
    key = services.keep_trial("m", [UserMessage("hi")])
    assert services.redact("m", 2) is None
    assert (conversations.memory("m").last_step, AuditEntry.objects.count()) == (7, 1)
    assert trial("m", key) is not None


def test_messages_that_cannot_be_redacted_are_refused(secrets):
    with pytest.raises(MessageNotFound):
        services.redact("m", 99)
    with pytest.raises(VersionConflict):
        services.redact("m", 1, expected_version=3)


def test_a_message_is_redacted_without_its_estimator(secrets):
    Memory.objects.update(policy_estimator="custom:somebody.Elses")
    services.redact("m", 2, actor="ada")
    assert "QUOKKA" not in history.message("m", 2).text


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
    assert branches_of(["m"]) == ["branch", "twig"]
    assert copies("m", 2) == [("branch", 2), ("twig", 2)]
    services.redact("m", 2, actor="ada", branches=["branch", "other"])
    assert redacted() == {("m", 2), ("branch", 2)}
    assert copies("m", 2) == []
    assert AuditEntry.objects.filter(memory_id="branch", actor="ada").exists()
    assert all(verify(memory_id) is None for memory_id in ("m", "branch", "twig"))


def test_a_branch_of_a_deleted_branch_is_reached(branches):
    services.delete("branch")
    assert copies("m", 2) == [("twig", 2)]
    services.delete("m")
    services.create("m", TokenWindow(5_000))
    assert branches_of(["m"]) == []


def test_a_later_conversation_of_the_same_id_has_not_the_branches(branches):
    services.delete("m")
    create_and_add("m", TokenWindow(5_000), SAID)
    services.branch("branch", "leaf", [])
    services.delete("branch")
    assert branches_of(["m"]) == []
    services.redact("m", 2, branches=["twig", "leaf"])
    assert redacted() == {("m", 2)}


def test_sources_that_somebody_altered_do_not_go_round_for_ever(branches):
    Memory.objects.filter(pk="branch").update(branched_from="twig")
    Memory.objects.update(created_at=timezone.now())
    services.redact("m", 2, branches=["branch", "twig"])
    assert redacted() == {("m", 2)}
    assert branches_of(["branch"]) == ["twig"]


def test_a_page_asks_before_it_redacts_in_branches(operator_client, branches):
    page = operator_client.post("/c/m/redact/2/").content.decode()
    assert '<input type="checkbox" name="branch" value="twig" checked>' in page
    assert not redacted()
    operator_client.post("/c/m/redact/2/", {"confirmed": "1", "branch": ["twig"]})
    assert redacted() == {("m", 2), ("twig", 2)}


def test_a_page_asks_before_it_deletes_branches(operator_client, branches):
    page = operator_client.post("/bulk/", {"action": "delete", "id": "m"}).content.decode()
    assert "Also delete 2 branches with copies of these messages" in page
    deletion = {"action": "delete", "id": "m", "confirmed": "1"}
    operator_client.post("/bulk/", deletion | {"branches": '["twig", "gone"]'})
    assert ids_left() == {"branch", "other"}


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
    assert step.step == conversations.memory("chat").last_step
    assert verify("chat") is None


# Summaries


@pytest.fixture
def summarised(db) -> str:
    """Three summaries: one with a term, one that covers it and has the term, one without."""
    said = [UserMessage("It is A-1182 for Ada"), AiMessage("Thanks"), UserMessage("and B-7 too")]
    create_and_add("m", MessageWindow(9), said)
    services.compact("m", "They ask for (A-1182).", covering=[1, 2])
    services.add("m", [AiMessage("on its way")])
    services.compact("m", "A-1182 and B-7 are on their way.", covering=[4, 3])
    services.compact("m", "Two parcels for Ada.", covering=[6, 5])
    return "m"


def test_the_summaries_that_hold_terms_of_a_message_are_named(summarised):
    assert summaries_holding("m", 1) == [4, 6]
    assert summaries_holding("m", 2) == []
    assert summaries_holding("m", 4) == [6]
    with pytest.raises(MessageNotFound):
        summaries_holding("m", 99)
    services.redact("m", 6)
    assert summaries_holding("m", 1) == [4]
    services.redact("m", 1)
    assert summaries_holding("m", 1) == []


def test_words_of_the_settings_are_terms(summarised, settings):
    settings.CHATMEMORY = {**settings.CHATMEMORY, "FACT_TERMS": ["Ada"]}
    assert summaries_holding("m", 1) == [4, 6, 7]


@pytest.mark.parametrize(
    ("chosen", "reached"),
    [((), []), ([6], [6]), ({4, 6}, [4, 6]), ([7], [7]), (True, [4, 6])],
)
def test_the_summaries_that_were_chosen_are_redacted_too(summarised, chosen, reached):
    before = conversations.memory("m").last_step
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
    """The branch has a copy of #6, and a summary of its own, #7, which covers that copy."""
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
    row = windows.window("m").rows[0]
    assert (row.seq, row.pinned, row.message.contents[0].text) == (7, True, "[redacted #7]")
    services.compact("m", "All.", keep_last=1)
    assert [row.seq for row in windows.window("m").rows] == [10, 9]
    assert coverage_by_summary("m", [10], 10)[10].seqs == (1, 2, 3, 5, 8)
    assert verify("m") is None


def test_without_summaries_none_are_asked_for(secrets):
    services.compact("m", "Paid.", keep_last=1)
    with CaptureQueriesContext(connection) as asked:
        services.redact("m", 2)
    assert not [each for each in asked if "SUMMARIZED" in each["sql"]]
    with CaptureQueriesContext(connection) as asked:
        assert summaries_holding("m", 6) == []
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


def test_what_does_not_stand_for_the_message_is_refused(summarised):
    for wrong in ([2], [4, 99], [3, 6]):
        with pytest.raises(InvalidValue, match="is not a summary that covers message #1"):
            services.redact("m", 1, summaries=wrong)
    for wrong in ("46", 4, False, None, [True], ["4"]):
        with pytest.raises(InvalidValue, match="summaries must be a list of whole numbers"):
            services.redact("m", 1, summaries=wrong)
    assert not redacted()
    services.redact("m", 1)
    assert services.redact("m", 1, summaries=[99]) is None
