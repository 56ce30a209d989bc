"""Advice: the one answer to what should be done about the window of a conversation, or of several.

`advise` takes the figures of conversations and says whether to keep what is in force, to change it,
or to send everything. Pages, commands, the API and agents print its answer; nothing else chooses a
remedy. It needs no database: figures come from stored conversations and from files alike.
"""

from chatmemory.advice.choosing import FACTS_ENOUGH, advise, advise_groups
from chatmemory.advice.effects import Effect, effect_of
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
]
