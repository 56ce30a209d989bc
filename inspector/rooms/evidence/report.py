"""The sentence on top of a conversation: the fact that came up again, how it left, and a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from chatmemory import CorruptRow, can_decide, text_of_policy
from chatmemory.explain.reasons import how_it_left
from chatmemory.messages import texts
from chatmemory.recall.kinds import IncidentKind
from inspector.conversation.links import conversation_url
from inspector.conversation.pins import PinPreview, pin_preview, pinning
from inspector.conversation.state import ConversationState
from inspector.rooms.evidence import words
from inspector.rooms.evidence.reads import IncidentsAt, ShownIncident, incidents_at, row_of
from inspector.shell.room import Part, Place


def incidents_shown(view: ConversationState) -> IncidentsAt | None:
    """Return the incidents up to the step that is shown, read once. Raises CorruptRow."""
    if "evidence" not in view.read:
        memory = view.stored.memory
        view.read["evidence"] = incidents_at(
            memory,
            row_of(memory, view.read),
            view.at,
            view.query.number("incident") or 1,
            view.detail,
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
        report = IncidentReport(view, found.shown)
        yield Part("rooms/evidence/_report.html", {"report": report}, Place.REPORT)


class IncidentReport:
    """The presenter of the sentence, with the verbs that would have helped."""

    def __init__(self, view: ConversationState, shown: ShownIncident) -> None:
        self._view, self._shown = view, shown
        incident = shown.incident
        first = incident.shown
        self.what, self.kind = incident.what, incident.kind
        self.asked = incident.asked
        self.last, self.said = first.last, first.said
        self.left_step = first.left_step
        self.how = how_it_left(shown.left, first.last)
        self.sign = "," if self.how.startswith("when ") else ":"  # before `how`
        self.is_forced = incident.is_forced
        number = shown.number_then if shown.number_then > 1 else None
        self.url = conversation_url(view.memory.id, at=incident.step, incident=number)

    @property
    def before(self) -> str:
        """The words before the term, such as `The user had to say`."""
        if self.kind is IncidentKind.USER_REPEATED:
            return "The user had to say" if self.is_forced else "The user said"
        if self.kind is IncidentKind.USER_SUPPLIED:
            return "The user had to supply"
        return ""

    @property
    def after(self) -> str:
        """The words after the term."""
        if self.kind is IncidentKind.USER_REPEATED:
            return "again"
        if self.kind is IncidentKind.USER_SUPPLIED:
            return f", which was said in {texts.named(self.said)}"
        return "was called again"

    @property
    def limit(self) -> int | None:
        """The limit that would have kept it, if it is above today's."""
        today, then = self._view.memory.policy, self._shown.policy
        keeping = self._shown.incident.shown.keeping
        if keeping is None or keeping.limit is None or not (can_decide(today) and can_decide(then)):
            return None
        is_higher = today.unit == then.unit and keeping.limit > today.limit
        return keeping.limit if is_higher and not today.meters_only else None

    @property
    def policy(self) -> str:
        """Today's policy with that limit, as text."""
        today = self._view.memory.policy
        if today is None or self.limit is None:
            return ""
        return text_of_policy(replace(today, limit=self.limit))

    @property
    def pin(self) -> PinPreview | None:
        """The effect of pinning the message that mentions it now; None if that one left, too."""
        view = self._view
        if not view.is_live or self.kind is IncidentKind.CALL_REPEATED:
            return None
        found = pin_preview(view.window, self._shown.incident.again, view.waiting_call)
        return found if found and not found.is_pinned else None

    @property
    def pin_words(self) -> str:
        return pinning(self.pin) if self.pin else ""

    @property
    def cure(self) -> str:
        """The remedy in words; "" if the card has a verb for it."""
        if self.limit or self._view.memory.policy is None:
            return "" if self.limit else "The client writes this window."
        enough, rest = words.cure(self._shown, self._view.memory.policy)
        return f"{enough} {rest}".strip()
