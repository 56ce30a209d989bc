"""Lets a program see only the conversations whose ids begin with a prefix.

The prefix comes from an option such as `--prefix`, from the program's API token, or from both.
"""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory.access.tokens import token_of
from chatmemory.exceptions import InvalidValue, MemoryNotFound
from chatmemory.messages.ids import check_text


@dataclass(frozen=True)
class Scope:
    """The conversations that a program may see: those whose ids begin with `prefix`.

    If `token`, the secret of an API token, is given, the ids must begin with the token's prefix,
    too.
    """

    prefix: str = ""
    token: str = ""

    def beginning(self) -> str:
        """Return the text with which the ids of all visible conversations begin; "" if all
        conversations are visible.

        This is the longer of two texts: `prefix` and the token's prefix. Raises InvalidValue if the
        longer text does not begin with the shorter one. Raises TokenRefused for an invalid token,
        and UnstorableText for a `prefix` that the database cannot store.
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
