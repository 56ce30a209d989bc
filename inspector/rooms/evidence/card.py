"""The card of an incident: the fact that was repeated, how it left memory, and a limit that would
have kept it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from chatmemory import Policy, can_decide
from chatmemory.explain import receipts
from chatmemory.explain.reasons import how_it_left
from chatmemory.messages.texts import named, question_in, quoted
from chatmemory.recall.incidents import call_words, incident_words
from inspector.conversation.as_test import copied_incident
from inspector.conversation.links import comparison_url, conversation_url
from inspector.conversation.markdown import as_markdown
from inspector.rooms.evidence import words
from inspector.rooms.evidence.reads import IncidentsAt, ShownIncident
from inspector.shell.advice import AdviceCard, advice_of
from inspector.shell.state import ConversationState


@dataclass(frozen=True)
class Stop:
    """A point in the story of a repeated fact: a message that the card quotes, or the step at which
    the fact left memory.

    - `label` says what happened, such as `said` or `left memory`.
    - `text` is the quote. For a step, `text` says how the fact left.
    - `is_out` is True if memory did not have the fact at this point.
    - `seq` is the seq of the message; None for a step.
    - `step` is the number of the step; None for a message.
    """

    label: str
    text: str
    is_out: bool
    seq: int | None = None
    step: int | None = None

    @property
    def name(self) -> str:
        return f"step {self.step:,}" if self.step else named(self.seq or 0)

    @property
    def words(self) -> str:
        detail = f", {self.text}" if self.step else f" “{self.text}”"
        return f"{self.label}: {self.name}{detail}"


class IncidentCard:
    """Presents an incident on the page of its conversation."""

    def __init__(self, state: ConversationState, shown: ShownIncident) -> None:
        self._state, self._shown = state, shown
        self._incident = shown.incident
        self.number, self.count = shown.number, shown.count
        self.newer = shown.number - 1 or None
        self.older = shown.number + 1 if shown.number < shown.count else None
        self.what = shown.incident.what
        self.happened = shown.incident.happened
        self.cost = call_words(shown.incident)
        self.is_forced = shown.incident.is_forced
        self.enough, self.cure = words.cure(shown, state.memory.policy)

    @cached_property
    def path(self) -> list[Stop]:
        return list(self._stops())

    def _stops(self) -> Iterator[Stop]:
        incident, texts = self._incident, self._shown.texts
        named = incident.messages
        quote = quoted(texts[named.said], incident.fact)
        yield Stop("result" if incident.result else "said", quote, is_out=False, seq=named.said)
        how = how_it_left(self._shown.left, incident.shown.last)
        yield Stop("left memory", how, is_out=True, step=named.left_step)
        if named.asked:
            request = question_in(texts[named.asked])
            yield Stop("asked for", request, is_out=True, seq=named.asked)
        again = quoted(texts[named.again], incident.fact)
        yield Stop(incident.words.repeated, again, is_out=False, seq=named.again)

    @property
    def limit(self) -> int | None:
        """The limit that would have kept the fact in memory. None if no limit would have kept the
        fact, if the limit is unknown, or if no policy decided which messages leave.
        """
        return self._remedy.limit if self._remedy else None

    @property
    def _remedy(self) -> Policy | None:
        """The policy in force at the incident, with the limit that would have kept the fact."""
        policy, keeping = self._shown.policy, self._incident.shown.keeping
        if not can_decide(policy) or keeping is None or keeping.limit is None:
            return None
        return replace(policy.enforced(), limit=keeping.limit)

    @property
    def kept_number(self) -> int:
        """The number of the incident: 1 for the newest. Links to messages have this number as the
        URL parameter `incident`, so that the panel *Why?* explains this incident.
        """
        return self.number

    @property
    def url(self) -> str:
        """The URL of this card at the step of the incident. It shows the same card even after the
        conversation has changed.
        """
        number = self._shown.number_then if self._shown.number_then > 1 else None
        return conversation_url(self._state.memory.id, at=self._incident.step, incident=number)

    @property
    def try_url(self) -> str:
        """The URL of a simulation at the step before the fact was repeated, with the limit that
        would have kept the fact.
        """
        before = self._incident.step - 1
        return conversation_url(self._state.memory.id, at=before, limit=self.limit)

    @cached_property
    def _advice(self) -> AdviceCard | None:
        """The advice for the conversation of today, with a line about the limit that would have
        kept the fact. None if the limit is unknown, or if the conversation has another kind of
        policy today.
        """
        state, remedy = self._state, self._remedy
        today = state.memory.policy
        if remedy is None or not can_decide(today):
            return None
        card = advice_of(state) if type(today) is type(remedy) else None
        return card.keeping(replace(today.enforced(), limit=remedy.limit)) if card else None

    @property
    def price(self) -> str:
        """A sentence on the cost of the limit that would have kept the fact; "" if the cost is
        unknown.
        """
        return self._advice.keeps if self._advice else ""

    @property
    def offers_limit(self) -> bool:
        """Whether the page offers the limit that would have kept the fact. False in these cases:

        - No limit would have kept the fact, or the limit is unknown.
        - No policy decides the window today.
        - Another measured policy costs less than this limit, and is not worse in any other way.
        """
        if not self.limit or not can_decide(self._state.memory.policy):
            return False
        return self._advice is None or self._advice.offers_kept

    @property
    def markdown(self) -> str:
        """The card as Markdown, for a ticket."""
        answers = [stop.words for stop in self.path] + [f"{self.enough} {self.cure}"]
        lines = receipts.receipt(self._shown.left)
        return as_markdown(f"{self.what} {self.happened}{self.cost}", answers, lines)

    @property
    def test(self) -> str:
        """The Python code of a test, to paste into a test suite. The test asserts that no incident
        of this kind happens (see `copied_incident`).
        """
        incident, shown = self._incident, self._shown
        fact, why = incident.fact if incident.facts else "", incident_words(incident)
        about = incident.kind.value, fact, shown.message_count, why
        return copied_incident(self._state.memory.id, shown.policy, *about)


class UsedTerms:
    """Presents facts that the assistant used although no message in memory mentioned them. These
    facts are exact terms, and values of tool calls such as `membership=gold`.
    """

    def __init__(self, state: ConversationState, found: IncidentsAt) -> None:
        self._state = state
        self.words = words.used_words(found.used)
        self.has_values = found.used.pairs > 0
        self.listed = found.listed
        self.more = found.used.total - sum(len(each.facts) for each in found.listed)

    @property
    def compare_url(self) -> str:
        state = self._state
        said_count = state.step.detail.row.said_count if state.step.detail else 0
        return comparison_url(state, (state.memory.policy,), said_count)
