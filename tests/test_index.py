"""The index in the ledger: its steps, time travel, verification, redaction and archives."""

from __future__ import annotations

from io import BytesIO

import pytest

from chatmemory import (
    AiMessage,
    SystemMessage,
    TokenWindow,
    TokenWindowChatMemory,
    UserMessage,
    services,
)
from chatmemory.exceptions import NotPinnable
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.messages.message import text_of
from chatmemory.models import AuditEntry, Memory, Message, Stay, Step
from chatmemory.reading import history, simulation, windows
from chatmemory.recall.index import NOTE, index_of, is_index
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.windows.eviction import Reason
from inspector.rooms.transfer.archives import import_archive
from inspector.rooms.transfer.exports import archive_lines

from .any_operations import accusation
from .columns import all_columns
from .conversations import create_and_add

POLICY = TokenWindow(190, low_water=0.4, index_terms=50)
LONG = "and some more words that fill the window " * 3
CITIES = ("Paris", "Rome", "Oslo", "Wien", "Bern", "Graz", "Linz", "Lyon", "Nice", "Pisa")
TEXTS = ("order: A-1182", "flight: HAT001", *CITIES)


def said(*texts: str) -> list[UserMessage]:
    return [UserMessage(f"{each} {LONG}") for each in texts]


@pytest.fixture
def indexed_memory(db) -> str:
    create_and_add("m", POLICY, [SystemMessage("Be brief."), *said(*TEXTS)])
    return "m"


def shown_index(memory_id: str = "m", at: int | None = None) -> str:
    texts = [text_of(each) for each in windows.window(memory_id, at).messages if is_index(each)]
    return "\n".join(texts)


def test_an_index_is_a_step_after_the_add_in_which_messages_left(indexed_memory):
    steps = list(Step.objects.filter(memory="m").order_by("n"))
    (first, *_) = [step for step in steps if step.kind == "index"]
    assert (steps[first.n - 2].kind, first.note, first.by_client) == ("add", NOTE, False)
    window = windows.window("m", first.n)
    assert [row.type for row in window.rows][:2] == ["SYSTEM", "USER"]
    row = Message.objects.get(memory="m", seq=first.seq)
    assert (row.origin, row.text.splitlines()[2]) == ("SYNTHETIC", "order: A-1182 #2")
    assert shown_index(at=first.n - 1) == ""
    assert shown_index().splitlines()[1:] == ["flight: HAT001 #3", "order: A-1182 #2"]
    assert first.seq not in [row.seq for row in history.history("m").rows]
    assert Stay.objects.filter(memory="m", reason=Reason.INDEXED).exists()
    assert verify("m") is None


def test_the_library_makes_the_same_ledger_as_the_service(indexed_memory):
    memory = TokenWindowChatMemory(
        "n", 190, store=DjangoChatMemoryStore(), low_water=0.4, index_terms=50
    )
    memory.add(SystemMessage("Be brief."), *said(*TEXTS))
    assert shown_index("n") == shown_index("m")
    kinds = [[*Step.objects.filter(memory=each).values_list("kind", flat=True)] for each in "mn"]
    assert kinds[0] == kinds[1]
    assert verify("n") is None
    assert [*map(text_of, memory.messages())] == [*map(text_of, windows.window("m").messages)]


def test_a_message_without_room_beside_the_index_makes_it_leave_first(indexed_memory):
    services.add("m", [UserMessage("b " * 150)])
    last = [*Step.objects.filter(memory="m").order_by("n")][-2:]
    assert [step.kind for step in last] == ["index", "add"]
    assert last[0].seq is None
    assert shown_index() == ""
    assert verify("m") is None


def test_a_window_from_which_everything_left_is_not_read_again(db):
    """Two adds of one transaction: each message is too large, and leaves at once."""
    policy = TokenWindow(40, low_water=0.6, index_terms=1)
    create_and_add("m", policy, [UserMessage("order: B-7001")])
    services.add("m", [AiMessage("a " * 60), AiMessage("b " * 60)])
    first = Stay.objects.get(memory="m", n=1)
    assert (first.left_step, first.reason) == (2, Reason.CAPACITY)
    assert verify("m") is None


def test_a_summary_of_the_service_moves_terms_into_the_index(db):
    policy = TokenWindow(400, low_water=0.5, index_terms=50)
    create_and_add("m", policy, said("order: A-1182", "flight: HAT001", "Paris"))
    services.compact("m", "They ask for a flight HAT001.", keep_last=1, append_terms=9)
    assert shown_index().splitlines()[1:] == ["order: A-1182 #1"]
    texts = [*map(text_of, windows.window("m").messages)]
    assert texts[0] == "They ask for a flight HAT001."
    assert verify("m") is None


def test_another_index_than_the_rule_makes_is_found(indexed_memory):
    seq = max(step.seq for step in Step.objects.filter(memory="m", kind="index") if step.seq)
    row = Message.objects.get(memory="m", seq=seq)
    for column in ("text", "frame"):
        changed = getattr(row, column).replace("HAT001", "HAT009")
        Message.objects.filter(memory="m", seq=seq).update(**{column: changed})
    found = verify("m")
    assert found is not None
    assert "differs" in found.what or "the index" in found.what


def test_a_redaction_blanks_the_lines_of_each_index_whose_only_source_it_is(indexed_memory):
    at = Step.objects.filter(memory="m", kind="index").order_by("n").first().n
    services.redact("m", 2, actor="ada")
    assert "A-1182" not in all_columns()
    assert shown_index().splitlines()[1:] == ["flight: HAT001 #3", "[redacted #2] #2"]
    assert "A-1182" not in shown_index(at=at)
    assert "HAT001" in shown_index(at=at)
    assert verify("m") is None
    services.redact("m", 3, actor="ada")  # of indexes that are blank in part already
    assert "HAT001" not in all_columns()
    assert verify("m") is None
    services.add("m", said("id: Z-99", *TEXTS[2:]))
    assert shown_index().splitlines()[1:] == ["id: Z-99 #" + shown_index().split("#")[-1]]
    assert verify("m") is None


def test_a_term_that_another_message_said_stays_in_the_index(db):
    create_and_add("m", POLICY, said("order: A-1182", "A-1182 again", *TEXTS[2:]))
    services.redact("m", 1)
    assert "A-1182 #2" in shown_index()
    services.redact("m", 2)
    assert "A-1182" not in all_columns()
    assert verify("m") is None


def test_an_index_cannot_be_unpinned_and_can_be_redacted(indexed_memory):
    seq = next(row.seq for row in windows.window("m").rows if row.pinned)
    with pytest.raises(NotPinnable, match="is an index"):
        services.unpin("m", seq)
    services.redact("m", seq)
    assert f"[redacted #{seq}]" in [*map(text_of, windows.window("m").messages)]
    services.add("m", said("id: Z-99", *TEXTS[2:]))
    assert "Z-99" in shown_index()
    assert verify("m") is None


def test_an_archive_keeps_it(indexed_memory):
    services.redact("m", 2)
    services.redact("m", 3)
    lines = list(archive_lines(["m"]))
    for rows in (Memory.objects.all(), AuditEntry.objects.all()):
        rows.delete()
    file = BytesIO("".join(f"{each}\n" for each in lines).encode())
    assert [each.refused for each in import_archive(file)] == [None] or not [
        each.refused for each in import_archive(BytesIO(file.getvalue())) if each.refused
    ]
    assert list(archive_lines(["m"])) == lines
    assert verify("m") is None


def test_a_branch_has_the_index_with_its_own_numbers(indexed_memory):
    services.branch("m", "b", [UserMessage("Well?")])
    index = next(filter(None, map(index_of, windows.window("b").messages)))
    texts = {row.seq: row.text for row in history.history("b").rows}
    assert {row.term for row in index.rows} == {"A-1182", "HAT001"}
    assert all(row.term in texts[row.last] for row in index.rows)
    services.redact("b", next(row.last for row in index.rows if row.term == "A-1182"))
    assert "A-1182" not in shown_index("b")
    assert verify("b") is None


def test_a_client_that_decides_gets_no_index(db):
    protocol.update_messages("c", said("order: A-1182", "Paris"))
    protocol.update_messages("c", said("Paris", "Rome"))
    create_and_add("m", POLICY, said("order: A-1182", "Paris"))
    services.set_messages("m", said(*TEXTS))
    assert not Step.objects.filter(kind="index").exists()
    assert verify("m") is None


def test_a_simulation_shows_the_index_that_an_add_would_make(db):
    create_and_add("m", POLICY, said("order: A-1182", "flight: HAT001", "Paris", "Rome"))
    new = [AiMessage(f"{each} {LONG}") for each in ("Oslo", "Wien", "Bern")]
    found = simulation.simulate("m", new)
    services.add("m", new)
    assert shown_index()
    real = windows.window("m")
    assert found.window.totals == real.totals
    assert [row.tokens for row in found.window.rows] == [row.tokens for row in real.rows]


def test_the_page_shows_the_index_its_terms_and_what_it_does_not_say(
    indexed_memory, operator_client
):
    seq = next(row.seq for row in windows.window("m").rows if row.pinned)
    page = operator_client.get(f"/c/m/?msg={seq}").content.decode()
    assert "It is the index of messages that left memory." in page
    assert "index of messages that left" in page
    assert 'href="/c/m/?msg=2"' in page
    assert "What the index does not say" in page
    assert "ask again" not in page
    assert "Unpin" not in page
    left = operator_client.get("/c/m/?msg=2").content.decode()
    assert "In the index" in left
    assert "A-1182" in left
    nothing = operator_client.get("/c/m/?msg=4").content.decode()
    assert "In the index" not in nothing
    step = Step.objects.filter(memory="m", kind="index").first()
    shown = operator_client.get(f"/c/m/?at={step.n}").content.decode()
    assert "The index of exact terms was added" in shown


@pytest.mark.parametrize("seed", range(3))
def test_no_accusation_with_an_index_among_any_operations(db, seed):
    assert accusation(900 + seed, 40) == ""
