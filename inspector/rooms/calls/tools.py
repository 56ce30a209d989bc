"""Stores the tools of calls. Each definition is stored once for all conversations
(`ToolDefinition`). A `CallTool` says that a conversation uses a definition.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple

from chatmemory.conf import configuration
from chatmemory.database import in_list
from chatmemory.messages.estimators import estimator_for
from chatmemory.messages.json_values import JsonMap
from inspector.rooms.calls.bodies import tool_name
from inspector.rooms.calls.models import CallTool, ToolDefinition
from inspector.rooms.calls.spelling import plain

REDACTED = "[redacted]"
TOKENS_MAX = 2**31 - 1


class SentTool(NamedTuple):
    """A tool of a call: the definition that was sent, and its tokens."""

    digest: str
    name: str
    tokens: int
    definition: JsonMap


def sent_tools(memory_id: str, definitions: Sequence[JsonMap]) -> list[SentTool]:
    """Return the tools of a request with their tokens. For a tool that a stored call of the
    conversation has sent, the stored number of tokens is used.
    """
    digests = [_digest(each) for each in definitions]
    known = _known_tokens(memory_id, digests)
    return [
        SentTool(
            digest,
            plain(tool_name(definition), 255),
            known[digest] if digest in known else _count(definition),
            definition,
        )
        for digest, definition in zip(digests, definitions, strict=True)
    ]


_NEWEST: OrderedDict[tuple[str, ...], Mapping[str, int]] = OrderedDict()
KNOWN = 64  # lists of tools


def _known_tokens(memory_id: str, digests: Sequence[str]) -> Mapping[str, int]:
    """Return the stored tokens of tools, by digest. Results for the newest lists of tools are
    cached.
    """
    key = (memory_id, *digests)
    found = _NEWEST.get(key)
    if found is None:
        found = _tokens_of(memory_id, digests)
        if len(found) == len({*digests}):
            _NEWEST[key] = found
        while len(_NEWEST) > KNOWN:
            with suppress(KeyError):  # another thread has removed it
                _NEWEST.popitem(last=False)
    return found


def _digest(definition: JsonMap) -> str:
    return sha256(json.dumps(definition).encode()).hexdigest()[:32]


def _count(definition: JsonMap) -> int:
    """Return the tokens of a definition as JSON, which is close to the provider's count."""
    text = json.dumps(definition, ensure_ascii=False, separators=(",", ":"))
    estimator = estimator_for(configuration().ESTIMATOR)
    return min(estimator.estimate_token_count_in_text(plain(text, len(text))), TOKENS_MAX)


def _tokens_of(memory_id: str, digests: Collection[str]) -> dict[str, int]:
    if not digests:
        return {}
    uses = CallTool.objects.filter(in_list("digest", digests), memory_id=memory_id)
    return dict(uses.values_list("digest", "tokens"))


def tool_tokens(memory_id: str, digests: Sequence[str]) -> int:
    """Return the total tokens of the tools with these digests."""
    tokens = _tokens_of(memory_id, digests)
    return sum(tokens.get(each, 0) for each in digests)


def keep_tools(memory_id: str, tools: Iterable[SentTool]) -> None:
    """Store the tools of a call, except tools that are already stored for the conversation. Call
    this function in the transaction that stores the call.
    """
    by_digest = {each.digest: each for each in tools}
    new = by_digest.keys() - _tokens_of(memory_id, by_digest).keys()
    if not new:
        return
    rows = [by_digest[digest] for digest in sorted(new)]
    # The update locks a known definition, so that no other process deletes it meanwhile
    ToolDefinition.objects.bulk_create(
        [ToolDefinition(each.digest, each.name, json.dumps(each.definition)) for each in rows],
        update_conflicts=True,
        unique_fields=["digest"],
        update_fields=["name"],
    )
    CallTool.objects.bulk_create(
        CallTool(memory_id=memory_id, digest=each.digest, tokens=each.tokens) for each in rows
    )


def tools_of(memory_id: str, digests: Sequence[str]) -> list[SentTool]:
    """Return the tools of a call, in the order of `digests`. The definition of a redacted tool says
    that it was redacted.
    """
    if not digests:
        return []
    uses = CallTool.objects.filter(in_list("digest", digests), memory_id=memory_id)
    tokens = {each.digest: each for each in uses}
    shown = [each.digest for each in uses if not each.is_redacted]
    found = {each.digest: each for each in ToolDefinition.objects.filter(in_list("digest", shown))}

    def sent(digest: str) -> SentTool:
        name, definition = REDACTED, {"name": REDACTED}
        if digest in found:
            name, definition = found[digest].name, json.loads(found[digest].definition)
        return SentTool(digest, name, tokens[digest].tokens, definition)

    return [sent(each) for each in digests if each in tokens]


def redact_tools(memory_id: str, holds: Callable[[str], bool]) -> None:
    """Redact each tool of a conversation if the tool's name or definition contains words of
    redacted messages. `holds` tells whether a text contains such words.
    """
    uses = CallTool.objects.filter(memory_id=memory_id, is_redacted=False)
    digests = [*uses.values_list("digest", flat=True)]
    redacted = [
        each.digest
        for each in ToolDefinition.objects.filter(in_list("digest", digests))
        if holds(json.dumps(json.loads(each.definition), ensure_ascii=False)) or holds(each.name)
    ]
    uses.filter(in_list("digest", redacted)).update(is_redacted=True)
    _forget_unused(redacted)


def forget_tools(memory_id: str, but: Collection[str] = ()) -> None:
    """Delete the tools of a conversation. Tools whose digests are in `but` are kept, because
    remaining calls use them.
    """
    uses = CallTool.objects.filter(memory_id=memory_id)
    digests = {*uses.values_list("digest", flat=True)} - {*but}
    uses.filter(in_list("digest", digests)).delete()
    _forget_unused(digests)


def _forget_unused(digests: Collection[str]) -> None:
    """Delete those of these definitions that no conversation uses any more."""
    rows = ToolDefinition.objects.filter(in_list("digest", sorted(digests)))
    locked = {*rows.select_for_update().order_by("digest").values_list("digest", flat=True)}
    uses = CallTool.objects.filter(in_list("digest", locked), is_redacted=False)
    unused = locked - {*uses.values_list("digest", flat=True)}
    ToolDefinition.objects.filter(in_list("digest", unused)).delete()
