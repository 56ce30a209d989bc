"""The tool with which agents check whether memory has a phrase."""

from __future__ import annotations

from chatmemory import InvalidValue
from inspector.conversation.state import conversation_state
from inspector.rooms.phrase.answers import remembered
from inspector.rooms.phrase.matches import Remembered
from inspector.rooms.phrase.searching import PARAMETER, search_for
from inspector.shell.agents import Agent, Answer, check_words
from inspector.shell.state import ConversationQuery

_IN = {True: "in memory", False: "not in memory", None: "unknown"}


def does_it_remember(
    agent: Agent, conversation: str, phrase: str, step: int | None = None
) -> Answer:
    """Check whether memory still has a phrase, such as an order number, now or after a step.

    The field `in_memory` is true if messages that the model sees contain the phrase, ignoring case.
    The field `state` says who said these messages:

    - `"in_memory"`: at least one message is by a user, a tool or the client.
    - `"aside"`: all are system messages or the assistant's own messages.
    - `"not_in_memory"`: there are no such messages.
    """
    check_words(phrase, "a phrase")
    if not (phrase := phrase.strip()):
        raise InvalidValue("the phrase is empty: give the words to look for")
    state = conversation_state(agent.visible(conversation), ConversationQuery(at=step))
    search = search_for(state, phrase)
    found = remembered(search)
    periods = [f"  {each.steps}: {_IN[each.is_in]}, {each.why}" for each in found.periods]
    return Answer(
        [f"{found.question} {found.summary}", *periods],
        agent.page_of(conversation, at=step, **{PARAMETER: phrase}),
        state=found.state.value,
        in_memory=found.state is not Remembered.NOT_IN_MEMORY,
        periods=[vars(each) for each in found.periods],
        mentions=[row.seq for row in search.matches.rows],
    )
