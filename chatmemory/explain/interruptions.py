"""Words for interrupted tool calls: calls whose results are missing, or have other tool call IDs
than the calls. The policy hides these calls from the model.
"""

from __future__ import annotations

from chatmemory.explain.wording import capitalized, counted, seqs
from chatmemory.messages.texts import named
from chatmemory.reading.windows import WindowView
from chatmemory.windows.recovery import InterruptedCall

LISTED_CALLS = 3


def state_of(call: InterruptedCall) -> str:
    """Return the state of an interrupted tool call. This is `waiting for results` if no message
    follows the call and the results that have come, else `interrupted: 1 of 2 results came`.
    """
    return "waiting for results" if call.is_last else f"interrupted: {results_of(call)}"


def results_of(call: InterruptedCall) -> str:
    """Return how many results of an interrupted tool call have come, such as `1 of 2 results came`.
    If all have come, return `its results have other tool call IDs`.
    """
    if len(call.results) == call.calls:
        return "its results have other tool call IDs"
    came = len(call.results) or "none"
    return f"{came} of {counted(call.calls, 'result')} came"


def unseen(window: WindowView) -> list[str]:
    """Return two texts about the interrupted tool calls in a window: which they are, and that the
    model does not see them. Returns [] if there are none.
    """
    calls = window.interrupted
    if not calls:
        return []
    if len(calls) > LISTED_CALLS:
        names = seqs([call.call.seq for call in calls])
        first = f"The tool calls {names} were not answered completely."
    else:
        first = " ".join(map(_sentence, calls))
    is_one = len(window.interrupted_seqs) == 1
    which = "it" if is_one else "them"
    removes = f"the next message that is no tool result removes {which} from memory"
    return [first, f"The model does not see {which}, and {removes}."]


def _sentence(call: InterruptedCall) -> str:
    state = "waits for results" if call.is_last else "was interrupted"
    return f"Tool call {named(call.call.seq)} {state}: {results_of(call)}."


def why_unseen(call: InterruptedCall, seq: int) -> tuple[str, str]:
    """Return why the model does not see a message of an interrupted tool call: a short sentence,
    and the details.
    """
    cause = (
        "The tool call waits for results."
        if call.is_last
        else "The tool call was not answered completely."
    )
    name, first = named(seq), capitalized(named(seq))
    of = "" if call.call.seq == seq else f"{first} is a result of {named(call.call.seq)}. "
    came = f"{capitalized(results_of(call))}."
    hides = f"The policy hides {name} until all results have come. " if call.is_last else ""
    removes = f"{hides}The next message that is no tool result removes {name} from memory."
    return cause, f"{of}{came} {removes} History keeps {name}."
