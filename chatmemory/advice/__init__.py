"""Advice: which policy to use for one conversation or for several.

`advise` takes the measured figures of conversations. It says whether to keep the policy in force,
to change it, or to send everything. Pages, commands, the API and agents print this advice; nothing
else chooses a policy. Advice needs no database: its figures come from stored conversations or from
files.
"""

from chatmemory.advice.choosing import FACTS_ENOUGH, advise, advise_groups
from chatmemory.advice.effects import Effect, effect_of, or_everything
from chatmemory.advice.values import (
    USUAL,
    Advice,
    DecidedBy,
    Goals,
    LeftOut,
    Measured,
    Option,
    Prefixes,
    Scope,
    Verdict,
)
from chatmemory.advice.words import answer_of

__all__ = [
    "FACTS_ENOUGH",
    "USUAL",
    "Advice",
    "DecidedBy",
    "Effect",
    "Goals",
    "LeftOut",
    "Measured",
    "Option",
    "Prefixes",
    "Scope",
    "Verdict",
    "advise",
    "advise_groups",
    "answer_of",
    "effect_of",
    "or_everything",
]
