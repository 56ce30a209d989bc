"""Splits the flag (reason for attention) of rejected conversations into one flag for each rule of
the linter. Each flag names the providers that reject windows which break the rule.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from django.db.models import Q

from chatmemory.explain.wording import decapitalized
from chatmemory.flag import Alarm, Flag, FlagCases, Line, PastCases
from chatmemory.lint import PROVIDERS
from chatmemory.lint.catalog import RULES
from inspector.rooms.doctor.card import refused_at
from inspector.rooms.doctor.choosing import choices
from inspector.rooms.doctor.past import counting
from inspector.rooms.doctor.words import problem_title, provider_names
from inspector.shell.rooms import page_url


def flags_by_rule(past: PastCases) -> list[Flag]:
    """Return a flag (a reason for attention) for each rule by which a provider in use rejects
    windows. Return [] while nobody has chosen providers.

    `past` finds the past cases of the flag `refused`.
    """
    made = choices()
    if not made.is_made:
        return []
    return [_part(rule, names, past) for rule in RULES if (names := _refusing(rule))]


def _refusing(rule: str) -> tuple[str, ...]:
    """Return the providers that reject windows which break a rule, and that are in use for any
    conversation.
    """
    use = choices().everywhere
    return tuple(
        name
        for name in PROVIDERS
        if name in use.models
        and (law := RULES[rule].laws.get(name))
        and (law.severity == "refused" or rule in use.refusing(name))
    )


def _part(rule: str, names: tuple[str, ...], past: PastCases) -> Flag:
    title = f"Rejected by {provider_names(names)}: {decapitalized(problem_title(rule))}"
    return Flag(
        f"refused.{rule}",
        title,
        partial(_where, rule),
        place=5,
        alarm=Alarm(is_any=False),
        line=Line(
            lambda: "Repair…" if page_url("repair-many") else "Show the causes",
            "doctor",
            title=title,
            newest=partial(refused_at, rule),
            began_at="keptdiagnosis__ill_at",
        ),
        cases=FlagCases(past=replace(past, counting=partial(counting, rule))),
    )


def _where(rule: str) -> Q:
    return choices().where(rule)
