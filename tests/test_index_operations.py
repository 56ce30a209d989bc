"""Any operations under policies that have an index: no accusation, and a redacted term is in no
column of any table.
"""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest

from chatmemory import Policy, TokenWindow, services
from chatmemory.exceptions import InvalidValue
from chatmemory.ledger.windows import read_message
from chatmemory.models import Message, Step
from chatmemory.reading import windows
from chatmemory.reading.indexes import index_among
from chatmemory.recall.index import is_index

from . import any_operations
from .any_operations import Conversation, accusation
from .columns import all_columns

TERMS = tuple(f"E-{n}" for n in range(1000, 4000))  # so many that few messages share one
TERM = re.compile("E-[0-9]{4}")


def a_policy(random: Random) -> Policy:
    return TokenWindow(
        random.randint(90, 220),
        low_water=random.choice(["0.2", "0.4"]),
        index_terms=random.choice([5, 50]),
        clear_tool_results=random.randint(0, 2),
        snap_to_user=random.random() < 0.2,
    )


class Indexed(Conversation):
    """A conversation in which all policies have an index. It remembers the terms that messages had
    before they were redacted.
    """

    said: dict[tuple[str, int], set[str]]

    def begin(self) -> None:
        self.said = {}
        super().begin()

    def any_policy(self) -> Policy:
        return a_policy(self.random)

    def operate(self) -> bool:
        kind = self.random.random()
        if kind < 0.15:
            is_made = self.redact_a_term()
        else:
            is_made = self.choose_a_term() if kind < 0.22 else super().operate()
        for row in Message.objects.filter(redacted_step=None):
            if not is_index(read_message(row)):
                self.said[row.memory_id, row.seq] = set(TERM.findall(f"{row.text}{row.frame}"))
        return is_made

    def choose_a_term(self) -> bool:
        """Leave a term of the index out, or list a term again that was left out."""
        found = index_among(self.id, windows.window(self.id).seqs)
        rows = [row for row in found.index.rows if TERM.fullmatch(row.term)] if found else []
        if not rows:
            return False
        row = self.random.choice(rows)
        change = services.list_term if row.is_left_out else services.leave_out_term
        try:
            change(self.id, row.term, actor="ada")
        except InvalidValue:  # a client put the index there, or the policy makes none
            return False
        self.made.append(change.__name__)
        SEEN["chosen"] += 1
        return True

    def redact_a_term(self) -> bool:
        """Redact a message of the conversation that has a term, if there is one."""
        redacted = {*Message.objects.exclude(redacted_step=None).values_list("memory_id", "seq")}
        seqs = [
            seq for id, seq in self.said.keys() - redacted if id == self.id and self.said[id, seq]
        ]
        if not seqs:
            return False
        services.redact(self.id, self.random.choice(sorted(seqs)), actor="ada")
        self.made.append(any_operations.redact.__name__)
        return True

    def contradiction(self) -> str:
        """Return the terms of redacted messages that a column still has."""
        rows = Message.objects.exclude(redacted_step=None).values_list("memory_id", "seq")
        redacted = {*rows}
        gone = set().union(*(self.said.get(each, set()) for each in redacted))
        kept = set().union(*(terms for each, terms in self.said.items() if each not in redacted))
        columns = all_columns()
        SEEN["index"] += Step.objects.filter(kind="index").count()
        SEEN["erased"] += len(gone - kept)
        return ", ".join(sorted(term for term in gone - kept if term in columns))


SEEN = Counter[str]()


@pytest.fixture
def many_terms(db, monkeypatch) -> None:
    monkeypatch.setattr(any_operations, "ORDERS", TERMS)
    SEEN.clear()


def check(seeds: range) -> None:
    found = [accusation(each, 40, of=Indexed) for each in seeds]
    assert "".join(found) == ""


def test_a_redacted_term_is_nowhere_with_an_index_among_any_operations(many_terms):
    check(range(700, 703))
    assert SEEN["index"] > 10
    assert SEEN["erased"] > 3
    assert SEEN["chosen"] > 0


@pytest.mark.long
def test_it_is_nowhere_after_many_operations(many_terms):
    check(range(7_000, 7_120))
    assert SEEN["index"] > 500
    assert SEEN["chosen"] > 30
