"""The tool with which agents list the conversations that a provider would reject."""

from __future__ import annotations

from chatmemory.explain import wording
from inspector.conf import inspector_configuration
from inspector.rooms.doctor import words
from inspector.rooms.doctor.api import IllSerializer
from inspector.rooms.doctor.reads import IllConversation, IllFilter, doctor_counts, doctor_page
from inspector.shell.agents import SIZE, Agent, Answer


def doctor(agent: Agent, provider: str = "", rule: str = "") -> Answer:
    """List conversations whose window a provider would reject, the newest problem first.

    For each conversation, the answer names the step since which the window breaks a rule.

    `provider` is openai, openai_responses, anthropic, gemini, mistral, bedrock or deepseek. Without
    a `provider`, only the providers in use count.

    With a `rule`, the list has the conversations whose windows break this rule. Windows that a
    provider accepts, but may mishandle, are included.
    """
    which = IllFilter(rule, provider, agent.scope.beginning())
    page, counts = doctor_page(which, size=SIZE), doctor_counts(which.id_prefix, which.choices)
    lines = (
        []
        if which.choices.is_made
        else ["No providers are chosen for this site, so problems for all providers are listed."]
    )
    if counts.refused is None:
        lines.append("No conversation has been examined yet.")
    else:
        lines.append(f"{wording.counted(counts.refused, 'conversation')} would be rejected.")
    if counts.changed:
        changed = wording.counted(counts.changed, "conversation")
        keep = f"{inspector_configuration().MANAGE} keep --once"
        lines.append(f"{changed} not examined yet. The command `{keep}` examines them.")
    for ill in page.rows:
        lines += [f"{ill.memory.id}: {line}" for line in _ill_words(ill)]
    rows = [{**IllSerializer(ill).data, "url": agent.page_of(ill.memory.id)} for ill in page.rows]
    url = agent.page("doctor", provider=provider, rule=rule)
    in_use = which.choices.everywhere.written()
    sums = {"in_use": in_use, "by_rule": counts.by_rule, "changed": counts.changed}
    return Answer(lines, url, conversations=rows, **sums)


def _ill_words(ill: IllConversation) -> list[str]:
    """Return the faults of a conversation in words, or a sentence that its stored diagnosis cannot
    be read.
    """
    if ill.unreadable:
        return [ill.unreadable]
    until = "" if ill.is_current else f" As of step {ill.known_until:,}."
    return [
        f"{words.problem_title(each.rule)}. {words.how_it_began(each, ill.known_until)}{until}"
        for each in ill.problems
    ]
