"""What would have kept a message in memory, in words."""

from __future__ import annotations

from collections.abc import Iterator

from chatmemory.explain.reasons import Explanation
from chatmemory.explain.wording import counted, in_unit
from chatmemory.queries import WhatWouldKeep

QUESTION = "What would have kept it?"


def what_would_keep(answer: WhatWouldKeep) -> Explanation:
    """Explain which limit would have kept a message, and that a higher one now comes too late."""
    return Explanation(QUESTION, _cause(answer), " ".join(_details(answer)))


def _cause(answer: WhatWouldKeep) -> str:
    if answer.keeping is None:
        return "Not known." if not answer.deferred else "Not computed yet."
    unpinned = ", with nothing pinned" if answer.leaves_out_pins else ""
    if answer.keeping.limit is None:
        return f"No limit{unpinned}."
    if answer.is_within_limit:
        return f"The same limit{unpinned or ' from the first message on'}."
    about = "About " if answer.keeping.tried_every > 1 else ""
    return f"{about}{in_unit(answer.keeping.limit, answer.policy)} or more{unpinned}."


def _details(answer: WhatWouldKeep) -> Iterator[str]:
    keeping = answer.keeping
    if keeping is None and answer.deferred:
        yield f"It takes a replay of {counted(answer.deferred, 'message')}."
    elif keeping is None:
        yield (
            "Under this policy limits must be tried one by one, and this history is too long for "
            "that."
        )
    elif keeping.limit is None:
        yield f"Even with room for everything, memory would not hold it at step {answer.step:,}."
    else:
        limit = "that limit"
        if answer.is_within_limit:
            limit = f"{in_unit(keeping.limit, answer.policy)} or more"
        yield (
            f"With {limit} from the first message on, #{answer.seq} would still be in memory at "
            f"step {answer.step:,}."
        )
        if keeping.tried_every > 1:
            yield f"Limits were tried {keeping.tried_every:,} apart."
    if answer.leaves_out_changes:
        yield "This leaves out that memory was also cleared or set as a whole."
    if answer.leaves_out_pins and keeping is not None:
        yield "This leaves out that messages were pinned: beside them, more room is needed."
    yield "A higher limit now does not bring it back."
