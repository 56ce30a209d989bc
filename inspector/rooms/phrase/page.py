"""The search for a phrase on the conversation page: highlights, the answer, and the matching
messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from chatmemory.messages.phrases import Speaker
from chatmemory.reading.rows import MessageDetail
from chatmemory.testing import snippets
from inspector.conversation.as_test import copied_test
from inspector.conversation.history import tag
from inspector.conversation.looks import STYLES
from inspector.rooms.phrase import answers
from inspector.rooms.phrase.answers import PhraseAnswer
from inspector.rooms.phrase.matches import PhraseMatches
from inspector.rooms.phrase.searching import PARAMETER, PhraseSearch, search_on
from inspector.shell.highlights import Highlights
from inspector.shell.room import Part, Place
from inspector.shell.state import ConversationState

FOLDER = "rooms/phrase"
LISTED_RANGES = 5

HEADINGS = {
    Speaker.OTHERS: "Users and tools",
    Speaker.ASSISTANT: "The assistant itself",
    Speaker.SYSTEM: "System messages",
    Speaker.CLIENT: "Put into memory by the client, not in history",
}


class FoundMention:
    """A message that contains the phrase, as listed on the page.

    `step` is the step at which the message left memory. For a message that arrives after the shown
    step, `step` is the step of the arrival. It is None if the message is in memory.
    """

    def __init__(self, search: PhraseSearch, row: MessageDetail) -> None:
        state, _, matches = search
        self.row, self.look = row, STYLES[row.type, row.has_calls]
        self.is_in = row.seq in state.in_window
        self.step = matches.departures.left_at.get(row.seq)
        arrival = min((stay.entered_step for stay in row.stays), default=0)
        if arrival > state.step.n:
            self.tag, self.step = f"said at step {arrival:,}", arrival
            return
        self.tag = tag(state, row) or "in memory"
        arrived = matches.departures.arrivals.get(self.step or 0)
        if arrived and arrived != row.seq:
            self.tag += f", when #{arrived} arrived"


class SearchResult:
    """Presents the result of a search for a phrase."""

    def __init__(self, search: PhraseSearch) -> None:
        self._search, self.matches = search, search.matches
        self.count = search.matches.count
        self.is_partial = search.matches.is_partial  # there are more mentions than were examined
        # the nearest word, if no message has the phrase
        self.nearest = search.matches.similar.nearest

    @cached_property
    def answer(self) -> PhraseAnswer:
        return answers.remembered(self._search)

    @cached_property
    def groups(self) -> list[tuple[str, list[FoundMention]]]:
        """The listed messages with the phrase, grouped by speaker: pairs of a heading and the
        group's messages, the latest message first. Users and tools are the first group. Empty
        groups are left out.
        """
        rows = list(reversed(self.matches.rows))
        speakers = self.matches.speakers
        return [
            (heading, [FoundMention(self._search, row) for row in these])
            for speaker, heading in HEADINGS.items()
            if (these := [row for row in rows if speakers[row.seq] is speaker])
        ]

    @property
    def test(self) -> str:
        """Python code that tests whether memory has the phrase at the shown step; "" in a
        simulation, at step 0, and if no message contains the phrase.
        """
        state, phrase, matches = self._search
        if state.is_simulated or not matches.speakers or state.step.detail is None:
            return ""
        row = state.step.detail.row
        at = None if row.n == state.memory.last_step else row.said_count
        asserted, about = [snippets.holds(phrase, at)], f"remembers {phrase}"
        why = f"{self.answer.question} {self.answer.cause}"
        return copied_test(state.memory.id, row.policy, about, asserted, why)

    @property
    def unlisted(self) -> int:
        """The number of messages found that the page does not list."""
        return self.count - len(self.matches.rows)

    @property
    def consequence(self) -> str:
        """A sentence such as “Without #3, nothing in memory mentions …”, if the phrase left memory
        together with the selected message. Otherwise "".
        """
        state, phrase, matches = self._search
        step = state.selection.left_by and state.selection.left_by.step
        left_at = matches.departures.left_at
        if state.selection.row is None or step is None or matches.present:
            return ""
        if left_at.get(state.selection.row.seq) != step or step != max(left_at.values()):
            return ""
        return answers.without([seq for seq, then in left_at.items() if then == step], phrase)


def marks(view: ConversationState) -> Highlights | None:
    """Return what the page highlights for a search: the phrase, the listed messages with the
    phrase, and the steps with the phrase in memory. None without a search.
    """
    search = search_on(view)
    if search is None:
        return None
    _, phrase, matches = search
    kept = {PARAMETER: phrase}
    return Highlights(phrase, matches.rows, matches.presence.spans, _band_words(matches), kept)


def parts(view: ConversationState) -> Iterator[Part]:
    """Yield the search form and, if the page has a search, the answer. If a message is selected,
    the answer is shorter.
    """
    search = search_on(view)
    found = SearchResult(search) if search else None
    context = {"phrase": search.phrase if search else "", "found": found}
    yield Part(f"{FOLDER}/_form.html", context, Place.HISTORY)
    yield Part(f"{FOLDER}/_fields.html", place=Place.FIELDS)
    if found is None:
        return
    name = "_beside" if view.selection.row else "_answer"
    yield Part(f"{FOLDER}/{name}.html", context, Place.ANSWER, asks_to_be_seen=True)
    yield Part(f"{FOLDER}/_consequence.html", context, Place.BELOW_REASON)


def _band_words(matches: PhraseMatches) -> str:
    """Return in words at which steps memory had the phrase, and which steps are known if not all
    are.
    """
    words = _in_words(matches.presence.spans)
    is_partial = matches.is_partial and matches.presence.first_step > 1
    part = f"; steps before {matches.presence.first_step:,} were not examined" if is_partial else ""
    return f"Phrase in memory at steps {words}{part}"


def _in_words(ranges: Sequence[tuple[int, int]]) -> str:
    """Return the first ranges of steps in words: `4 to 42 and 47 to 58`."""
    words = [f"{a:,}" if a == b else f"{a:,} to {b:,}" for a, b in ranges[:LISTED_RANGES]]
    if len(ranges) > LISTED_RANGES:
        words.append(f"{len(ranges) - LISTED_RANGES:,} more times")
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
