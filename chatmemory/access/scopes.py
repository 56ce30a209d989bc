"""Limits the conversations that a program may see, by a prefix of conversation ids and by the
program's API token.
"""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory.access.tokens import token_of
from chatmemory.exceptions import InvalidValue, MemoryNotFound
from chatmemory.messages.ids import check_text


@dataclass(frozen=True)
class Scope:
    """The conversations that a program may see: their ids begin with `prefix`, and with the prefix
    of an API token.

    `token` is the secret of the API token. If `token` is empty, only `prefix` counts.
    """

    prefix: str = ""
    token: str = ""

    def beginning(self) -> str:
        """Return the prefix that all visible ids have: `prefix` or the token's prefix, whichever is
        longer.

        Raises TokenRefused for an invalid token, and InvalidValue if neither prefix begins with the
        other.
        """
        check_text(self.prefix, "the beginning of an id")
        token_prefix = token_of(self.token.encode()).prefix if self.token else ""
        longer, shorter = sorted([self.prefix, token_prefix], key=len, reverse=True)
        if not longer.startswith(shorter):
            raise InvalidValue(
                f"the token allows only conversations whose ids begin with {token_prefix!r}: use "
                "such an id, or a different token"
            )
        return longer

    def visible(self, memory_id: str) -> str:
        """Return the id if the conversation is visible. Raises MemoryNotFound if it is not."""
        if not memory_id.startswith(self.beginning()):
            raise MemoryNotFound(f"no conversation has the id {memory_id!r}")
        return memory_id
