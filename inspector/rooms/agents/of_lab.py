"""What agents may ask of the limits that would have held more."""

from __future__ import annotations

from chatmemory import MemoryNotFound, explain, queries
from chatmemory.api.responses import RecallRowSerializer
from chatmemory.core.written_policies import policies_from_text, text_of_policy
from chatmemory.queries import MemoryFilter
from inspector.shell.agents import SIZE, Agent, Answer, check_words


def recall(
    agent: Agent,
    limits: str = "token_window:1000,token_window:4000,message_window:20,everything",
    prefix: str = "",
    label: str = "",
) -> Answer:
    """Measure how much of what the assistant needed each limit would have held.

    Of stored conversations whose ids begin with `prefix`, such as one id, or with a label. As
    `limits` write them: token_window:4000,message_window:20,everything.
    """
    for text in (prefix, label):
        check_words(text, "a prefix or a label")
    policies = policies_from_text(limits)[:SIZE]
    own = agent.scope.beginning()
    if not (prefix.startswith(own) or own.startswith(prefix)):
        raise MemoryNotFound(f"no conversation has an id that begins with {prefix!r}")
    which = MemoryFilter(label=label, id_prefix=max(prefix, own, key=len))
    found = queries.recall_of_stored(which, policies, most=queries.READ_AT_ONCE)
    told = [
        f"{text_of_policy(each.policy)}: {each.held:,} of {each.recalls:,} held, "
        f"{each.said_again:,} said again, {each.fetched_again:,} fetched again, "
        f"{each.prompt_tokens:,} prompt tokens"
        for each in found
    ]
    several = explain.counted(found[0].conversations if found else 0, "conversation")
    url = agent.page("lab", prefix=prefix, label=label)
    rows = RecallRowSerializer(found, many=True).data
    return Answer([f"{several}.", *told], url, results=rows)
