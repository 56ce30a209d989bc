"""The search for a phrase in a conversation: for the conversation page, for the API and
for agents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from chatmemory.patterns import declared_pattern
from inspector.forms.fields import searchable
from inspector.rooms.phrase.matches import PhraseMatches, phrase_matches, simulated_matches
from inspector.shell.state import ConversationQuery, ConversationState

PARAMETER = "find"
NUMBER = declared_pattern(r"#([0-9]{1,18})")


class PhraseSearch(NamedTuple):
    """A searched phrase and its matches in a conversation, at the step of `state`."""

    state: ConversationState
    phrase: str
    matches: PhraseMatches


def search_for(state: ConversationState, phrase: str) -> PhraseSearch:
    """Search a stored conversation for a phrase. Return the phrase and its matches, at the step of
    `state`.
    """
    return PhraseSearch(state, phrase, phrase_matches(state.stored, phrase, state.step.detail))


def search_on(view: ConversationState) -> PhraseSearch | None:
    """Return the search that the URL of a page asks for. Return None if the URL has no search, or
    if the page replays another policy.

    In a simulation, the matches also cover drafts and simulated memory; see `PhraseMatches`.
    """
    phrase = phrase_of(view.query)
    if not phrase or view.simulation.is_replay:
        return None
    if "phrase" not in view.read:
        view.read["phrase"] = search_for(view, phrase).matches
    matches: PhraseMatches = view.read["phrase"]
    if view.simulation.changes is not None:
        simulated = view.simulation.drafts, view.in_window, view.simulation.changes
        matches = simulated_matches(matches, phrase, *simulated)
    return PhraseSearch(view, phrase, matches)


def phrase_of(query: ConversationQuery) -> str:
    """Return the phrase that the URL searches for. Return "" without a search. Return "" also for
    the search text `#26`, if the URL already selects message 26.
    """
    number = selected(query.room_parameters)
    is_selected = number is not None and number == query.msg
    return "" if is_selected else searchable(query.room_parameters.get(PARAMETER, ""))


def selected(parameters: Mapping[str, str]) -> int | None:
    """Return the number of the message that the search text names, such as 26 for `#26`. Return
    None for any other text. `parameters` are the parameters of the URL.
    """
    found = NUMBER.fullmatch(searchable(parameters.get(PARAMETER, "")))
    return int(found[1]) if found else None
