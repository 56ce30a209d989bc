"""Sessions of agents: all messages, and the windows that the agent saw.

An agent whose window is full replaces messages by a summary: a compaction. A recorded session has
the messages in order, summaries included, and each compaction has the messages that it replaced and
the window that the agent saw afterwards. A position is an index into the messages, from 0.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chatmemory.messages.message import AiMessage, ChatMessage, UserMessage, with_attributes
from chatmemory.messages.packed import Packed

OWN = "chatmemory"  # the attribute for details of a message that only a session has


@dataclass(frozen=True)
class Compaction:
    """A summary that replaced messages.

    `summary` is its position. `covered` are the positions of the messages that it replaced, an
    earlier summary included, and `window` the positions of the messages that the agent saw right
    afterwards, in order, the summary included. `tokens_before` and `tokens_after` are the agent's
    or provider's counts of the whole prompt, or None. `is_opaque` is True if only the provider can
    read the summary.
    """

    summary: int
    covered: tuple[int, ...]
    window: tuple[int, ...]
    trigger: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    is_opaque: bool = False

    @property
    def kept(self) -> tuple[int, ...]:
        """The positions of the original messages that stayed."""
        return tuple(position for position in self.window if position != self.summary)

    def after(self, window: Sequence[int]) -> list[int]:
        """Return the window afterwards if only its own messages can stay, in their order.

        It equals the compaction's `window` unless that puts messages back or reorders them.
        """
        expected, held = set(self.kept), set(window)
        stay = [position for position in window if position in expected]
        ahead = len(held.intersection(self.window[: self.window.index(self.summary)]))
        return [*stay[:ahead], self.summary, *stay[ahead:]]


@dataclass(frozen=True)
class Session:
    """The messages of a session, and its compactions in order.

    `by_programs` are the positions of messages that a program wrote in place of the user or the
    model, such as reminders. `cleared` maps the position of a result to the number of messages
    after which it was cleared in place, so that the agent no longer saw its text. `prompts` are the
    provider's token counts of the prompts, by the answer's position.
    """

    messages: Sequence[ChatMessage]
    compactions: tuple[Compaction, ...] = ()
    by_programs: frozenset[int] = frozenset()
    cleared: Mapping[int, int] = field(default_factory=dict)
    prompts: Mapping[int, int] = field(default_factory=dict)

    @property
    def summaries(self) -> frozenset[int]:
        return frozenset(each.summary for each in self.compactions)

    def windows(self) -> Iterator[tuple[Compaction, list[int]]]:
        """Yield each compaction, and the window after it if no messages can be put back."""
        window: list[int] = []
        end = 0
        for each in self.compactions:
            window = each.after([*window, *range(end, each.summary)])
            end = each.summary + 1
            yield each, window


class SessionBuilder:
    """Puts a session together, one message after the other."""

    def __init__(self) -> None:
        self.messages: Packed[ChatMessage] = Packed()
        self.window: list[int] = []
        self.compactions: list[Compaction] = []
        self._by_programs: set[int] = set()
        self._cleared: dict[int, int] = {}
        self._prompts: dict[int, int] = {}

    def add(self, message: ChatMessage, by_program: bool = False) -> int:
        """Add a message and return its position."""
        position = len(self.messages)
        self.messages.append(message)
        self.window.append(position)
        if by_program:
            self._by_programs.add(position)
        return position

    def join(self, position: int, part: AiMessage) -> None:
        """Add a part to the answer at a position: agents write answers part by part."""
        whole = self.messages[position]
        assert isinstance(whole, AiMessage)
        self.messages[position] = AiMessage(
            _joined(whole.text, part.text),
            whole.tool_execution_requests + part.tool_execution_requests,
            _joined(whole.thinking, part.thinking),
            {**part.attributes, **whole.attributes},
        )

    def count_prompt(self, position: int, tokens: int) -> None:
        self._prompts[position] = tokens

    def clear(self, positions: Iterable[int]) -> None:
        """Remove the texts of results from the agent's window."""
        self._cleared.update(dict.fromkeys(positions, len(self.messages)))

    def compact(
        self,
        summary: UserMessage,
        kept: Collection[int] = (),
        ahead: int = 0,
        trigger: str | None = None,
        tokens_before: int | None = None,
        tokens_after: int | None = None,
        is_opaque: bool = False,
    ) -> None:
        """Replace the window except for the kept messages. Some of these are `ahead` of the
        summary.
        """
        covered = tuple(position for position in self.window if position not in kept)
        stay = [position for position in self.window if position in kept]
        self.window = []
        place = self.add(summary)
        self.window = [*stay[:ahead], place, *stay[ahead:]]
        window = tuple(self.window)
        self.compactions.append(
            Compaction(place, covered, window, trigger, tokens_before, tokens_after, is_opaque)
        )

    def session(self) -> Session:
        """Return the session. Missing token counts of compactions come from the prompts."""
        return Session(
            self.messages,
            tuple(map(self._with_tokens, self.compactions)),
            frozenset(self._by_programs),
            self._cleared,
            self._prompts,
        )

    def _with_tokens(self, each: Compaction) -> Compaction:
        before = [self._prompts[place] for place in self._prompts if place < each.summary]
        after = [self._prompts[place] for place in self._prompts if place > each.summary]
        return replace(
            each,
            tokens_before=each.tokens_before or next(reversed(before), None),
            tokens_after=each.tokens_after or next(iter(after), None),
        )


# Sessions with stored messages


def recorded_messages(session: Session) -> list[ChatMessage]:
    """Return the messages of a session. Details that only the session has are in their attribute
    `chatmemory`, where `stored_session` finds them.
    """
    details: defaultdict[int, dict[str, Any]] = defaultdict(dict)
    for each in session.compactions:
        about = {"tokens_before": each.tokens_before, "tokens_after": each.tokens_after}
        known = {name: tokens for name, tokens in about.items() if tokens is not None}
        opaque = {"opaque": True} if each.is_opaque else {}
        details[each.summary] = {"summary": True, **known, **opaque}
    for position in session.by_programs:
        details[position]["by_program"] = True
    for position, after in session.cleared.items():
        details[position]["cleared_after"] = after
    for position, tokens in session.prompts.items():
        details[position]["prompt_tokens"] = tokens
    messages = list(session.messages)
    for position, about in details.items():
        attributes = getattr(messages[position], "attributes", {})
        messages[position] = with_attributes(messages[position], {**attributes, OWN: about})
    return messages


def stored_session(
    messages: Mapping[int, ChatMessage],
    injected: Collection[int],
    compactions: Iterable[Compaction],
) -> Session:
    """Return the session of stored messages by their numbers, in order, and of some compactions.

    Compactions have seqs as positions, and the token counts of the window, or of the prompts if the
    agent recorded them. Messages that a client `injected` are not part of the history.
    """
    numbers = list(messages)
    places = {number: position for position, number in enumerate(numbers)}
    details = list(map(_details_of, messages.values()))
    stored = [_stored(each, places, details) for each in compactions]
    not_said = {places[number] for number in injected} - {each.summary for each in stored}
    return Session(
        tuple(messages.values()),
        tuple(stored),
        frozenset(not_said | {n for n, each in enumerate(details) if each.get("by_program")}),
        cleared={
            position: bisect_right(numbers, after)
            for position, each in enumerate(details)
            if (after := _count(each, "cleared_after")) is not None
        },
        prompts={
            position: tokens
            for position, each in enumerate(details)
            if (tokens := _count(each, "prompt_tokens")) is not None
        },
    )


def _stored(
    each: Compaction, places: Mapping[int, int], details: Sequence[Mapping[str, Any]]
) -> Compaction:
    summary = places[each.summary]
    before, after = (_count(details[summary], name) for name in ("tokens_before", "tokens_after"))
    if before is None and after is None:
        before, after = each.tokens_before, each.tokens_after
    return replace(
        each,
        summary=summary,
        covered=tuple(places[number] for number in each.covered),
        window=tuple(places[number] for number in each.window),
        tokens_before=before,
        tokens_after=after,
        is_opaque=details[summary].get("opaque") is True,
    )


def is_by_program(message: ChatMessage) -> bool:
    """Return whether, according to its session, a program wrote a message in place of the user."""
    return bool(_details_of(message).get("by_program"))


def _details_of(message: ChatMessage) -> Mapping[str, Any]:
    own = getattr(message, "attributes", {}).get(OWN)
    return own if isinstance(own, Mapping) else {}


def _count(details: Mapping[str, Any], name: str) -> int | None:
    """Return the whole number under a name, or None for any other value that clients may send."""
    value = details.get(name)
    return value if type(value) is int and value >= 0 else None


def _joined(one: str | None, other: str | None) -> str | None:
    return f"{one}\n{other}" if one and other else one or other
