"""Classes and functions, such as the answer of a tool, for rooms that offer tools to coding agents.

A tool is a function of a room; see `SiteRoom.tools`. Its first argument is the agent. The coding
agent sees the docstring and the other arguments of the function. Tools only read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from chatmemory import InvalidValue
from chatmemory.access.scopes import Scope
from chatmemory.ledger.validation import check_text
from inspector.shell.rooms import page_url

SIZE = 20  # rows in an answer
TEXT = 400  # characters of a message in an answer


class Answer:
    """The answer of a tool: lines of text (`words`), `values` for JSON, and the `url` of the page
    that shows these values. `url` can be None.
    """

    def __init__(self, words: Iterable[str], url: str | None, **values: object) -> None:
        self.words, self.url, self.values = words, url, values


@dataclass(frozen=True)
class Agent:
    """A coding agent that calls a tool. `scope` says which conversations the agent may read. `site`
    is the URL of the inspector.
    """

    site: str
    scope: Scope

    def visible(self, conversation: str) -> str:
        """Return the given conversation ID if the agent may read the conversation. Otherwise raise
        MemoryNotFound.
        """
        return self.scope.visible(conversation)

    def page_of(self, memory_id: str, **query: int | str | None) -> str | None:
        """Return the URL of a conversation's page with the parameters `query`; None if the page is
        not installed.
        """
        return self.page("conversation", memory_id, **query)

    def page(self, route: str, *arguments: str, **query: int | str | None) -> str | None:
        """Return the URL of a page with the parameters `query`; None if the page is not
        installed.
        """
        path = page_url(route, *arguments)
        if not path:
            return None
        parameters = {name: value for name, value in query.items() if value not in (None, "")}
        return f"{self.site}{path}{'?' if parameters else ''}{urlencode(parameters)}"


def check_words(text: str, what: str) -> None:
    """Raise InvalidValue for a text that is too long, or that no database can store. `what` names
    the text in the error.
    """
    check_text(text, what)
    if len(text) > TEXT:
        raise InvalidValue(f"{what} can have at most {TEXT} characters, but has {len(text):,}")


def short(text: str) -> str:
    """Return a text on one line, cut after 400 characters. If the text is cut, "…" follows."""
    words = " ".join(text[: 2 * TEXT].split())
    return words if len(words) <= TEXT else f"{words[:TEXT]}…"
