"""What agents may ask of the windows that a provider would refuse."""

from __future__ import annotations

from chatmemory import explain, queries
from chatmemory.api.responses import IllSerializer
from inspector.shell.agents import SIZE, Agent, Answer


def doctor(agent: Agent, provider: str = "", rule: str = "") -> Answer:
    """List conversations whose windows a provider would refuse next, the newest first.

    Each with the step at which it broke a rule. `provider` is openai, openai_responses,
    anthropic or gemini; with a `rule`, also those that are only mishandled.
    """
    which = queries.IllFilter(rule, provider, agent.scope.beginning())
    page, counts = queries.doctor_page(which, size=SIZE), queries.doctor_counts(which.id_prefix)
    told = [f"{explain.counted(counts.refused, 'conversation')} would be refused."]
    if counts.changed:
        changed = explain.counted(counts.changed, "conversation")
        told.append(f"{changed} changed since the last look.")
    for ill in page.rows:
        told += [f"{ill.memory.id}: {line}" for line in _ill_words(ill)]
    rows = [{**IllSerializer(ill).data, "url": agent.page_of(ill.memory.id)} for ill in page.rows]
    url = agent.page("doctor", provider=provider, rule=rule)
    sums = {"by_rule": counts.by_rule, "changed": counts.changed}
    return Answer(told, url, conversations=rows, **sums)


def _ill_words(ill: queries.IllConversation) -> list[str]:
    """Return what is wrong with a conversation, or that what is kept of it cannot be read."""
    if ill.unreadable:
        return [ill.unreadable]
    until = "" if ill.is_current else f" As of step {ill.known_until:,}."
    return [
        f"{explain.problem_title(each.rule)}. {explain.how_it_began(each, ill.known_until)}{until}"
        for each in ill.problems
    ]
