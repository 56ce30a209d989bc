"""Advice: which policy to use for one conversation or for several.

`advise` gets figures of conversations under many policies: facts held and tokens of prompts. It
says whether to keep the policy in force, to change it, or to send everything. All advice on pages,
in commands, in the API and for agents comes from here. This package does not read the database.
"""

from chatmemory.advice.choosing import advise, advise_groups
from chatmemory.advice.effects import Effect, effect_of, or_everything
from chatmemory.advice.values import (
    FACTS_ENOUGH,
    USUAL,
    Advice,
    DecidedBy,
    Goals,
    LeftOut,
    Measured,
    Option,
    PromptFigures,
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
    "PromptFigures",
    "Scope",
    "Verdict",
    "advise",
    "advise_groups",
    "answer_of",
    "effect_of",
    "or_everything",
]
