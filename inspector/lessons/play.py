"""The state of the playground, which its link holds: a chat, a policy, a step, and a question."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.http import QueryDict
from django.urls import reverse
from django.utils.http import urlencode

from chatmemory import ChatMessage, InvalidValue, Policy, policy_from_dict, policy_kinds
from chatmemory.formats.script import read_script
from inspector.lessons.answers import picked_in
from inspector.lessons.numbers import whole
from inspector.lessons.packing import pack, unpack

MESSAGES_MAX = 60
LIMIT_MAX = 100_000
DEFAULT_KIND = "message_window"
DEFAULT_LIMIT = 6


@dataclass(frozen=True)
class Play:
    """A chat as a script, a kind of policy with its limit, and the step that is shown.

    `at` is the number of messages that are said; None means all. It `asks` what leaves next; with
    `picked` somebody has answered.
    """

    script: str
    kind: str = DEFAULT_KIND
    limit: int = DEFAULT_LIMIT
    at: int | None = None
    asks: bool = False
    picked: frozenset[int] | None = None

    @classmethod
    def read(cls, asked: QueryDict) -> Play:
        """Return the state of an address. Raises InvalidValue."""
        kind = asked.get("kind", DEFAULT_KIND)
        if kind not in policy_kinds():
            raise InvalidValue("There is no such kind of memory.")
        asks = "ask" in asked
        return cls(
            unpack(asked.get("chat", "")),
            kind,
            whole(asked.get("limit", ""), LIMIT_MAX) or DEFAULT_LIMIT,
            whole(asked.get("at", ""), MESSAGES_MAX),
            asks,
            picked_in(asked, MESSAGES_MAX) if asks else None,
        )

    @classmethod
    def written(cls, posted: QueryDict) -> Play:
        """Return the state of a chat that was written, under the memory that is on the page."""
        kind = posted.get("kind", "")
        limit = whole(posted.get("limit", ""), LIMIT_MAX)
        script = posted.get("script", "").replace("\r\n", "\n")
        return cls(script, kind if kind in policy_kinds() else DEFAULT_KIND, limit or DEFAULT_LIMIT)

    @property
    def url(self) -> str:
        """The link that holds all of it, but for what was answered. Raises InvalidValue."""
        fields: dict[str, str | int] = {"kind": self.kind, "limit": self.limit}
        if self.at is not None:
            fields["at"] = self.at
        if self.asks:
            fields["ask"] = 1
        query = urlencode({**fields, "chat": pack(self.script)})
        return f"{reverse('inspector:playground')}?{query}"

    def messages(self) -> list[ChatMessage]:
        """Return the messages of the script. Raises InvalidValue."""
        messages = read_script(self.script)
        if not messages:
            raise InvalidValue("Write a chat: a line such as “user: Hello” for each message.")
        if len(messages) > MESSAGES_MAX:
            raise InvalidValue(
                f"{len(messages):,} messages are more than {MESSAGES_MAX}: leave some out."
            )
        return messages

    def policy(self) -> Policy:
        kind = policy_kinds()[self.kind]
        return policy_from_dict({"kind": self.kind, kind.limit_name: self.limit})

    def moved(self, at: int, asks: bool = False) -> Play:
        """Return the state at another step."""
        return replace(self, at=at, asks=asks, picked=None)
