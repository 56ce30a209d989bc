"""The drafts of a simulation, as the composer lists them."""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory import text_of
from chatmemory.explain import role
from chatmemory.queries import ConversationState
from inspector.conversation.glyphs import glyph


@dataclass(frozen=True)
class DraftRow:
    """A draft. `seq` is its number as a message that is not said: -2 for the second one."""

    number: int
    seq: int
    glyph: str
    role: str
    text: str
    tokens: int | None
    css: str


def draft_rows(state: ConversationState) -> list[DraftRow]:
    """Return the drafts of the trial; one that would change nothing has no tokens."""
    tokens = {draft.seq: draft.tokens for draft in state.drafts}
    return [
        DraftRow(
            number=n,
            seq=-n,
            glyph=glyph(draft.type, draft.has_tool_execution_requests),
            role=role(draft.type, draft.has_tool_execution_requests),
            text=text_of(draft),
            tokens=tokens.get(-n),
            css="is-sel" if state.query.msg == -n else "",
        )
        for n, draft in enumerate(state.trial.drafts if state.trial else (), 1)
    ]
