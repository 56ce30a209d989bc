"""Diagnoses of conversations for tests."""

from __future__ import annotations

from chatmemory import MessageWindow, services
from chatmemory.ledger import protocol
from chatmemory.lint import PROVIDERS
from chatmemory.lint.catalog import RULES
from chatmemory.lint.linter import example
from chatmemory.models import Memory
from inspector.rooms.doctor.choosing import choices, choose_providers
from inspector.rooms.doctor.diagnosis import Diagnosis
from inspector.rooms.doctor.models import KeptDiagnosis
from inspector.rooms.doctor.writes import current_diagnosis

from ...conversations import HI, call, create_and_add, result


def diagnosed(*memory_ids: str) -> Diagnosis:
    """Keep the diagnosis of some or all conversations, and return the last one for the providers in
    use.
    """
    kept = Diagnosis(0)
    for memory_id in memory_ids or Memory.objects.order_by("id").values_list("id", flat=True):
        found = current_diagnosis(memory_id)
        kept = found.under(choices().of(memory_id)) if found else kept
    return kept


def break_each_rule() -> None:
    """Store the bad window of each rule, in the order of the rules, and diagnose it for every
    provider.
    """
    choose_providers("", list(PROVIDERS))
    for name, rule in RULES.items():
        services.create(name, None)
        protocol.update_messages(name, example(rule.bad, rule.example_provider))
        services.change(name, policy=MessageWindow(99))  # else only its client could change it
        diagnosed(name)


def make_ill() -> None:
    """Store a conversation with a dangling call and an orphan, which OpenAI refuses."""
    create_and_add("ill", MessageWindow(20), [HI, call("1"), HI, result("9"), HI])
    choose_providers("", ["openai"], actor="ada")
    diagnosed()


def kept(memory_id: str = "m") -> KeptDiagnosis:
    """Keep the diagnosis of a conversation, and return its row."""
    diagnosed(memory_id)
    return KeptDiagnosis.objects.get(memory=memory_id)
