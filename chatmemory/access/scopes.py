"""The conversations that a program may see, limited by the prefix of its token."""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory.access.tokens import token_of
from chatmemory.exceptions import InvalidValue, MemoryNotFound
from chatmemory.messages.ids import check_text


@dataclass(frozen=True)
class Scope:
    """The conversations whose ids begin with `prefix`, and that the token, if any, allows."""

    prefix: str = ""
    token: str = ""

    def beginning(self) -> str:
        """Return the prefix that all visible ids have. Raises TokenRefused, and InvalidValue if the
        prefix and the token exclude each other.
        """
        check_text(self.prefix, "the beginning of an id")
        token_prefix = token_of(self.token.encode()).prefix if self.token else ""
        longer, shorter = sorted([self.prefix, token_prefix], key=len, reverse=True)
        if not longer.startswith(shorter):
            raise InvalidValue(f"the token is for ids that begin with {token_prefix!r}")
        return longer

    def visible(self, memory_id: str) -> str:
        """Return the id of a conversation. Raises MemoryNotFound for one outside of the scope."""
        if not memory_id.startswith(self.beginning()):
            raise MemoryNotFound(f"no conversation has the id {memory_id!r}")
        return memory_id
