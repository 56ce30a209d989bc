"""The sentence about an incident at the top of the conversation page: the repeated fact, how the
fact left memory, and a remedy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chatmemory import CorruptRow
from chatmemory.explain.reasons import how_it_left
from chatmemory.recall.kinds import IncidentKind
from inspector.conversation.links import conversation_url
from inspector.conversation.pins import PinPreview, pin_preview, pinning
from inspector.rooms.evidence import words
from inspector.rooms.evidence.reads import IncidentsAt, ShownIncident, incidents_at, row_of
from inspector.shell.advice import advice_of
from inspector.shell.room import Part, Place
from inspector.shell.state import ConversationState


def incidents_shown(view: ConversationState) -> IncidentsAt | None:
    """Return the incidents up to the step that the page shows, read once for each page. None if no
    incidents are stored. Raises CorruptRow for an altered row.
    """
    if "evidence" not in view.read:
        memory = view.stored.memory
        view.read["evidence"] = incidents_at(
            memory,
            row_of(memory, view.read),
            view.step.n,
            view.query.number("incident") or 1,
            view.step.detail,
            lists_used="used" in view.query.room_parameters,
        )
    found: IncidentsAt | None = view.read.get("evidence")
    return found


def reports(view: ConversationState) -> Iterator[Part]:
    if view.is_simulated:
        return
    try:
        found = incidents_shown(view)
    except CorruptRow:
        return  # a card shows the error
    if found and found.shown:
        context = {"report": IncidentReport(view, found.shown)}
        dots = {} if view.selection.row else dots_of(found.shown)
        yield Part("rooms/evidence/_report.html", context, Place.REPORT, dots=dots)


def dots_of(shown: ShownIncident) -> Mapping[int, str]:
    """Return CSS classes for three dots on the timeline, by step: where the fact was said, where it
    left memory, and where it was repeated.
    """
    left_step = shown.incident.shown.left_step
    at_steps = (shown.said_step, left_step, shown.incident.step)
    return dict(zip(at_steps, ("cell__was", "cell__gone", "cell__again"), strict=True))


class IncidentReport:
    """Presents an incident at the top of the conversation page: a sentence, and the buttons below
    the sentence.
    """

    def __init__(self, view: ConversationState, shown: ShownIncident) -> None:
        self._view, self._shown = view, shown
        incident = shown.incident
        first = incident.shown
        self.what, self.kind = incident.what, incident.kind
        self.messages = incident.messages
        self.last = first.last
        self.how = how_it_left(shown.left, first.last)
        self.sign = "," if self.how.startswith("when ") else ":"  # before `how`
        self.is_forced = incident.is_forced
        number = shown.number_then if shown.number_then > 1 else None
        self.url = conversation_url(view.memory.id, at=incident.step, incident=number)

    @property
    def before(self) -> str:
        """The words before the repeated term, such as `The user had to repeat`."""
        if self.kind is IncidentKind.USER_REPEATED:
            return "The user had to repeat" if self.is_forced else "The user repeated"
        if self.kind is IncidentKind.USER_SUPPLIED:
            return "The user had to supply"
        return ""

    @property
    def after(self) -> str:
        """The words between the repeated term and the number of the message with the incident, such
        as `was called again in`.
        """
        return "was called again in" if self.kind is IncidentKind.CALL_REPEATED else "in"

    @property
    def origin(self) -> str:
        """The words between the number of a message and `left memory`. In the sentence `#3, the
        last message with it, left memory`, these are `, the last message with it,`. With
        `names_last`, they are followed by the number of another message.
        """
        if self.kind is IncidentKind.CALL_REPEATED:
            return ", the result before,"
        if self.last == self.messages.said:
            return ", the last message with it,"
        return " said it." if self.names_last else " said it. The fact"

    @property
    def names_last(self) -> bool:
        """Whether the report names the message `last`: a message with the fact that left memory at
        a later step than the message that said the fact.
        """
        if self.kind is IncidentKind.CALL_REPEATED or self.last == self.messages.said:
            return False
        return self.messages.said not in {each.seq for each in self._shown.left.evicted}

    @property
    def pin(self) -> PinPreview | None:
        """The effect of pinning the message that repeats the fact, for a button. None in these
        cases:

        - The page shows an earlier step.
        - The incident is a repeated tool call.
        - The advice offers no pin (see `AdviceCard.offers_pin`).
        - The message cannot be pinned (see `pin_preview`), or is already pinned.
        """
        view = self._view
        if not view.is_live or self.kind is IncidentKind.CALL_REPEATED:
            return None
        advice = advice_of(view)
        if advice and not advice.offers_pin:
            return None
        found = pin_preview(view.window, self._shown.incident.again, view.waiting_call)
        return found if found and not found.is_pinned else None

    @property
    def pin_words(self) -> str:
        return pinning(self.pin) if self.pin else ""

    @property
    def cure(self) -> str:
        """A sentence that says that no limit would have kept the fact, or that the limit is
        unknown. For a conversation without a policy: `The client writes this window.`

        "" if the conversation has a policy, and a limit would have kept the fact.
        """
        keeping = self._shown.incident.shown.keeping
        if self._view.memory.policy is None:
            return "The client writes this window."
        if keeping is not None and keeping.limit is not None:
            return ""
        cause = self._shown.incident.shown.cause
        if keeping is not None and cause.is_beyond_limits and not self._shown.left.by_client:
            return "A larger limit would not have kept it."
        enough, rest = words.cure(self._shown, self._view.memory.policy)
        return f"{enough} {rest}".strip()
