"""The conversations that exist for a program."""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory.access.tokens import token_of
from chatmemory.exceptions import InvalidValue, MemoryNotFound
from chatmemory.messages.given import check_text


@dataclass(frozen=True)
class Scope:
    """The conversations of a token, if there is one, whose ids begin with `prefix`."""

    prefix: str = ""
    token: str = ""

    def beginning(self) -> str:
        """Return the prefix of their ids. Raises TokenRefused, and InvalidValue if no id can have
        it.
        """
        check_text(self.prefix, "the beginning of an id")
        given = token_of(self.token.encode()).prefix if self.token else ""
        longer, shorter = sorted([self.prefix, given], key=len, reverse=True)
        if not longer.startswith(shorter):
            raise InvalidValue(f"the token is for ids that begin with {given!r}")
        return longer

    def visible(self, memory_id: str) -> str:
        """Return the id of a conversation. Raises MemoryNotFound for one outside of the scope."""
        if not memory_id.startswith(self.beginning()):
            raise MemoryNotFound(f"no conversation has the id {memory_id!r}")
        return memory_id
