"""Converts sessions of coding agents to stored messages, and back.

Details that only sessions have, such as the token counts of prompts, are stored in attributes of
messages.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from chatmemory.messages.json_values import JsonDict, JsonMap
from chatmemory.messages.message import ChatMessage, with_attributes
from chatmemory.messages.sessions import Compaction, Session

OWN = "chatmemory"  # the attribute for details of a message that only a session has


def recorded_messages(session: Session) -> list[ChatMessage]:
    """Return the messages of a session as they are stored.

    Details that only the session has, such as the token counts of prompts, are in the attribute
    `chatmemory` of the messages. `stored_session` reads them.
    """
    details: defaultdict[int, JsonDict] = defaultdict(dict)
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


def said_messages(
    messages: Sequence[ChatMessage], session: Session | None
) -> Sequence[ChatMessage]:
    """Return the messages of an imported conversation that go into the history.

    With a session, these are its `recorded_messages` without summaries. Without a session,
    `messages` are returned unchanged.
    """
    if session is None:
        return messages
    recorded = enumerate(recorded_messages(session))
    return [message for place, message in recorded if place not in session.summaries]


def stored_session(
    messages: Mapping[int, ChatMessage],
    injected: Collection[int],
    compactions: Iterable[Compaction],
) -> Session:
    """Return stored messages as a session of an agent.

    - `messages`: the messages in order, by seq.
    - `injected`: the seqs of messages that are not in history, because a client put them into
      memory.
    - `compactions`: as in a `Session`, but with seqs in place of positions. If the summary message
      has token counts that the agent recorded, these replace the token counts of the compaction.
    """
    numbers = list(messages)
    places = {number: position for position, number in enumerate(numbers)}
    details = list(map(_details_of, messages.values()))
    stored = [_stored(each, places, details) for each in compactions]
    by_programs = {places[number] for number in injected} - {each.summary for each in stored}
    return Session(
        tuple(messages.values()),
        tuple(stored),
        frozenset(by_programs | {n for n, each in enumerate(details) if each.get("by_program")}),
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


def _stored(each: Compaction, places: Mapping[int, int], details: Sequence[JsonMap]) -> Compaction:
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
    """Return whether a program wrote an imported message in the user's name, such as a reminder."""
    return bool(_details_of(message).get("by_program"))


def _details_of(message: ChatMessage) -> JsonMap:
    own = getattr(message, "attributes", {}).get(OWN)
    return own if isinstance(own, Mapping) else {}


def _count(details: JsonMap, name: str) -> int | None:
    """Return the whole number under a name; None for any other value, which a client may have
    sent.
    """
    value = details.get(name)
    return value if type(value) is int and value >= 0 else None
