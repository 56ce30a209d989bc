"""Every service takes time in line with the size of the window, of whatever shape it is.

A new service has a row here, or is named among those that are about no window.
`make test` tries the shapes in which most belongs together, under a plain policy. `make attack`
tries all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

import pytest
from django.db import connection, transaction

from chatmemory import ChatMessage, MessageWindow, TokenWindow, UserMessage, services
from chatmemory.exceptions import ChatMemoryError, InvalidValue
from chatmemory.ledger import protocol
from chatmemory.ledger.transaction import MANY
from chatmemory.models import Memory
from chatmemory.reading import windows
from chatmemory.reading.indexes import index_among
from chatmemory.windows.compaction import summary_message
from inspector.conversation.state import conversation_state
from inspector.project.server import load_what_requests_need
from inspector.shell.state import ConversationQuery

from ..conversations import numbered
from ..rooms import room_modules
from .shapes import POLICIES, SHAPES, TIMES, assert_grows_in_line

N = TIMES * (MANY + 1)  # of the smaller size, too, lists are compared before the lock
# Incidents of more than two stretches (rooms/evidence/stretches.py) are found in two parts.
SIZES = {"current_incidents": 2 * N, "keep": 2 * N, "remade": 2 * N}
QUICK = {"one call with n results", "n equal texts"}
# Rows are made again by the functions of "keep", which is tried with both.
ALSO_LONG = {("remade", "one call with n results")}
NEW = [UserMessage(f"one more, {n}") for n in range(10)]


@dataclass(frozen=True)
class Filled:
    """A conversation whose window has a shape."""

    id: str
    messages: Sequence[ChatMessage]

    @property
    def text(self) -> int:
        """The seq of the first message."""
        return 1

    @property
    def list(self) -> list[ChatMessage]:
        return [*self.messages]


def put_an_index(it: Filled) -> None:
    """Trim the window to 90 % under a policy with an index."""
    full = windows.window(it.id).totals.tokens + 100
    services.change(it.id, policy=TokenWindow(full, low_water="0.9", index_terms=50))
    services.add(it.id, [UserMessage("order: Z-1182"), UserMessage("words " * 90)] * 2)


def a_term(it: Filled) -> str:
    """Return a term of the index. Equal texts have none, because those that stay mention the term:
    the refusal is measured.
    """
    found = index_among(it.id, windows.window(it.id).seqs)
    return found.index.rows[0].term if found else "none"


def leave_a_term_out(it: Filled) -> None:
    put_an_index(it)
    with suppress(InvalidValue):
        services.leave_out_term(it.id, a_term(it))


ROWS: dict[str, Callable[[Filled], object]] = {
    "add": lambda it: services.add(it.id, NEW),
    "change": lambda it: services.change(it.id, policy=MessageWindow(9_999, estimator="gpt-4")),
    "change_and_add": lambda it: services.change_and_add(it.id, NEW, policy=TokenWindow(50)),
    "clear_messages": lambda it: services.clear_messages(it.id),
    "compact": lambda it: services.compact(it.id, "They talked.", keep_last=0, append_terms=1000),
    "count_ahead": lambda it: services.count_ahead(it.id, it.messages),
    "delete": lambda it: services.delete(it.id),
    "import_conversation": lambda it: services.import_conversation(
        "new", it.messages, MessageWindow(9_999)
    ),
    "keep": lambda it: services.keep(it.id),
    "leave_out_term": lambda it: services.leave_out_term(it.id, a_term(it)),
    "list_term": lambda it: services.list_term(it.id, a_term(it)),
    "new_messages": lambda it: services.new_messages(it.id, it.messages),
    "pin": lambda it: services.pin(it.id, it.text),
    "plan_compaction": lambda it: services.plan_compaction(it.id, "They talked.", keep_tokens=9),
    "plan_list": lambda it: services.plan_list(it.id, [*it.list[::2], *NEW]),
    "preview_compaction": lambda it: services.preview_compaction(it.id, "They.", keep_last=9),
    "preview_term": lambda it: services.preview_term(it.id, a_term(it), is_listed=False),
    "remade": lambda it: services.remade(it.id),
    "set_messages": lambda it: services.set_messages(it.id, [*it.list[::2], *NEW]),
    "storable_messages": lambda it: services.storable_messages(it.messages),
    "unpin": lambda it: (services.pin(it.id, it.text), services.unpin(it.id, it.text)),
}
# What is done before, and is not measured
BEFORE: dict[str, Callable[[Filled], object]] = {
    "remade": lambda it: services.keep(it.id),
    "leave_out_term": put_an_index,
    "list_term": leave_a_term_out,
    "preview_term": put_an_index,
}
ROOM_ROWS = {name: act for room in room_modules("growth") for name, act in room.ROWS.items()}
PROTOCOL: dict[str, Callable[[Filled], object]] = {
    "get_messages": lambda it: protocol.get_messages(it.id),
    "get_window": lambda it: protocol.get_window(it.id).with_messages(),
    "update_messages": lambda it: protocol.update_messages(it.id, [*it.list[1:], *NEW]),
    "update_messages, a summary": lambda it: protocol.update_messages(
        it.id, [summary_message("They talked."), *NEW]
    ),
    "delete_messages": lambda it: protocol.delete_messages(it.id),
}
READS: dict[str, Callable[[Filled], object]] = {
    "window": lambda it: windows.window(it.id),
    "conversation_state": lambda it: conversation_state(
        it.id, ConversationQuery(msg=it.text, room_parameters={"find": "A-1"})
    ),
}
MEASURED = ROWS | ROOM_ROWS | PROTOCOL | READS
# What is about several conversations, settings, or rows without messages
OF_NO_WINDOW = {
    "ChangeResult", "CompactionPreview", "Examination", "NamedDefault", "NewMessage", "Recount",
    "Rounds",
    "CHANNEL", "keepers", "QUICK_MESSAGES", "atomic", "chosen_policy",
    "create", "default_policies", "default_policy", "delete_all",
    "empty_leftover_log", "finish_deletions",
    "known_branches", "label", "newest_kept", "remove_default_policy",
    "set_default_policy", "try_to_empty_log", "unaudited_deletions",
}  # fmt: skip


def test_every_service_has_a_row():
    assert set(services.__all__) - OF_NO_WINDOW == ROWS.keys()


def cases():
    for name in MEASURED:
        for shape in SHAPES:
            for policy in POLICIES:
                is_quick = shape in QUICK and (name, shape) not in ALSO_LONG and policy == "plain"
                marks = [] if is_quick else [pytest.mark.long]
                yield pytest.param(name, shape, policy, id=f"{name}-{shape}-{policy}", marks=marks)


def filled_of(shape: str, policy: str, n: int) -> Filled:
    """Return the conversation of this shape, policy and size; create it if it is not stored."""
    filled = Filled(f"{shape}, {policy}, {n}".replace(" ", "-"), SHAPES[shape](n))
    if not Memory.objects.filter(pk=filled.id).exists():
        services.create(filled.id, POLICIES[policy](len(filled.messages) + 1))
        services.set_messages(filled.id, filled.messages)
    return filled


def fill_quick_shapes() -> None:
    for shape in sorted(QUICK):
        for n in (N // TIMES, 2 * N // TIMES, N, 2 * N):
            filled_of(shape, "plain", n)


@pytest.fixture(scope="module")
def quick_shapes(django_db_setup, django_db_blocker, images) -> Iterator[None]:
    """The conversations that most cases read, filled once for all tests of this module."""
    with django_db_blocker.unblock(), images.lasting("quick shapes", fill_quick_shapes):
        yield


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the CPU of this process is the same")
@pytest.mark.parametrize(("name", "shape", "policy"), [*cases()])
def test_services(quick_shapes, db, name, shape, policy):
    act = MEASURED[name]

    def prepared(n: int) -> Callable[[], object]:
        filled = filled_of(shape, policy, n)
        if name in BEFORE:
            BEFORE[name](filled)

        def acted() -> None:
            with suppress(ChatMemoryError), transaction.atomic():
                act(filled)
                transaction.set_rollback(True)

        return acted

    assert_grows_in_line(prepared, SIZES.get(name, N))


LONG_LIST = numbered(MANY)
LONG_LISTS: dict[str, Callable[[Filled], object]] = {
    "set_messages, a long list": lambda it: services.set_messages(it.id, LONG_LIST),
    "update_messages, a long list": lambda it: protocol.update_messages(it.id, LONG_LIST),
    "update_messages, a new id": lambda it: protocol.update_messages("new", LONG_LIST),
}
# What is derived, which no change may do while it holds the lock of writers
DERIVING = (
    "/chatmemory/lint/",
    "/chatmemory/recall/",
    "/rooms/doctor/diagnosis.py",
    "/rooms/evidence/incidents.py",
)
# Redactions look for summaries that hold a term of the message, which must not change meanwhile.
# An index is made from the window under the lock (ADR 24), also if somebody leaves a term out.
ALLOWED = {name: {"/chatmemory/recall/"} for name in ("redact", "leave_out_term", "list_term")}
# A short list is compared with the window in less time than it takes to plan that.
COMPARING = "/chatmemory/ledger/client_list.py"


@pytest.mark.skipif(connection.vendor != "sqlite", reason="on PostgreSQL a read is a transaction")
@pytest.mark.parametrize("name", ROWS | ROOM_ROWS | PROTOCOL | LONG_LISTS)
def test_nothing_is_derived_under_a_lock(transactional_db, name):
    load_what_requests_need()
    filled = Filled("m", [UserMessage("It is A-1182."), *SHAPES["n calls"](20)])
    services.create("m", MessageWindow(100))
    services.set_messages("m", filled.messages)
    if name in BEFORE:
        BEFORE[name](filled)
    deriving = (*DERIVING, COMPARING) if name in LONG_LISTS else DERIVING
    derived = set()

    def called(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and connection.in_atomic_block:
            file = frame.f_code.co_filename
            derived.update(part for part in deriving if part in file)

    sys.setprofile(called)
    try:
        with suppress(ChatMemoryError):
            (ROWS | ROOM_ROWS | PROTOCOL | LONG_LISTS)[name](filled)
    finally:
        sys.setprofile(None)
    assert derived <= ALLOWED.get(name, set())
