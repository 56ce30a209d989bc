"""The playground: a page on which visitors write a chat, and see on a board which messages leave
memory.

The URL holds the whole state, and the chat is compressed in the URL. A short URL could hold a huge
chat. So `unpack` rejects a chat that is too long, before all of it is decompressed.
"""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from django.http import QueryDict
from django.urls import reverse
from django.utils.http import urlencode

from chatmemory import ChatMessage, InvalidValue, Policy, policy_from_dict, policy_kinds
from chatmemory.explain.captions import caption
from chatmemory.formats.script import read_script
from chatmemory.lint import Verdict
from chatmemory.rooms import providers_in_use
from chatmemory.windows.window import Entry
from inspector.rooms.lessons.board import Board
from inspector.rooms.lessons.rehearsal import rehearse
from inspector.rooms.lessons.stage import Happening
from inspector.rooms.lessons.words import judge_picks, number_in, picked_in

MESSAGES_MAX = 60
LIMIT_MAX = 100_000
DEFAULT_KIND = "message_window"
DEFAULT_LIMIT = 6
CHARACTERS_MAX = 8_000
PACKED_MAX = 5_800  # a link of 6,000 characters, less its address and the other fields
_BYTES_MAX = 4 * CHARACTERS_MAX
_DAMAGED = "This link is damaged. Ask its sender for a new link, or write a chat."
_TOO_LONG = f"The chat can have at most {CHARACTERS_MAX:,} characters. Remove some text."


@dataclass(frozen=True)
class Play:
    """The state of the playground: a chat as a `script`, and a `kind` of policy with its `limit`.

    - `at`: the number of messages that have arrived. None means all messages, or, with `asks`, all
      but the last message.
    - `asks`: whether the page asks which messages leave when the next message arrives.
    - `picked`: the numbers of the messages in the visitor's answer; None without an answer.
    """

    script: str
    kind: str = DEFAULT_KIND
    limit: int = DEFAULT_LIMIT
    at: int | None = None
    asks: bool = False
    picked: frozenset[int] | None = None

    @classmethod
    def read(cls, parameters: QueryDict) -> Play:
        """Read the state of the playground from the parameters of a URL. Raises InvalidValue."""
        kind = parameters.get("kind", DEFAULT_KIND)
        if kind not in policy_kinds():
            raise InvalidValue(
                "The link names an unknown kind of policy. Choose a kind in the list."
            )
        asks = "ask" in parameters
        return cls(
            unpack(parameters.get("chat", "")),
            kind,
            number_in(parameters, "limit", LIMIT_MAX) or DEFAULT_LIMIT,
            number_in(parameters, "at", MESSAGES_MAX),
            asks,
            picked_in(parameters) if asks else None,
        )

    @classmethod
    def written(cls, posted: QueryDict) -> Play:
        """Return the state for a form that a visitor sent. Defaults replace a kind or a limit that
        is not valid.
        """
        kind = posted.get("kind", "")
        limit = number_in(posted, "limit", LIMIT_MAX)
        script = posted.get("script", "").replace("\r\n", "\n")
        return cls(script, kind if kind in policy_kinds() else DEFAULT_KIND, limit or DEFAULT_LIMIT)

    @property
    def url(self) -> str:
        """The URL of this state, without the visitor's answer. Raises InvalidValue if the chat is
        too long or is not valid Unicode.
        """
        fields: dict[str, str | int | None] = {"kind": self.kind, "limit": self.limit}
        fields |= {"at": self.at, "ask": 1 if self.asks else None, "chat": pack(self.script)}
        query = urlencode({name: value for name, value in fields.items() if value is not None})
        return f"{reverse('inspector:playground')}?{query}"

    def messages(self) -> list[ChatMessage]:
        """Return the messages of the script. Raises InvalidValue if the script is not valid, or has
        no message or more than 60 messages.
        """
        messages = read_script(self.script)
        if not messages:
            raise InvalidValue("Write a chat: a line such as “user: Hello” for each message.")
        if len(messages) > MESSAGES_MAX:
            raise InvalidValue(
                f"The chat can have at most {MESSAGES_MAX} messages, but has {len(messages):,}. "
                "Remove some messages."
            )
        return messages

    def policy(self) -> Policy:
        kind = policy_kinds()[self.kind]
        return policy_from_dict({"kind": self.kind, kind.limit_name: self.limit})

    def moved(self, at: int, asks: bool = False) -> Play:
        """Return the state of the same chat after `at` messages, without an answer. With `asks`,
        the page asks which messages leave when the next message arrives.
        """
        return replace(self, at=at, asks=asks, picked=None)


class Playground:
    """Presents a state of the playground. `scenes` has memory before the first message, and after
    each message.

    Raises InvalidValue if the chat cannot be played, or is too long for a URL.
    """

    def __init__(self, play: Play) -> None:
        self.play, self.policy = play, play.policy()
        self.packed = pack(play.script)
        self.scenes = rehearse(self.policy, play.messages())
        self.last = len(self.scenes) - 1
        # The number of messages that are said; one that is asked about comes after them.
        most = self.last - 1 if play.asks else self.last
        self.at = most if play.at is None else min(play.at, most)
        happening = self._happening()
        is_revealed = not play.asks or play.picked is not None
        self.board = Board(happening, is_revealed, play.asks, play.picked)
        self.judgement = None if play.picked is None else judge_picks(happening, play.picked)
        change = self.scenes[self.at].change
        self.caption = None if play.asks or change is None else caption(change)
        # The end of the slider: everything fits, and there is some room
        self.limit_max = max(self._whole(play.kind) + 2, play.limit)
        # The links to other steps, and to the question what leaves when the next message arrives.
        # At the end, the question is about the last one.
        is_last = self.at == self.last
        self.back = play.moved(self.at - 1).url if self.at else ""
        self.forward = "" if is_last else play.moved(self.at + 1).url
        self.question_url = play.moved(min(self.at, self.last - 1), asks=True).url

    @cached_property
    def verdicts(self) -> Sequence[Verdict]:
        """For each provider in use, whether the provider would accept the memory on the board. If
        the providers in use are unknown, the verdicts are about the providers that lessons compare.
        """
        use, scene = providers_in_use(), self.board.scene
        return scene.verdicts() if use is None else scene.verdicts_of(use)

    def _happening(self) -> Happening:
        """Return the change that the question is about; without a question, the last change."""
        end = self.at + 1 if self.play.asks else self.at
        if not end:
            return Happening(self.scenes[0])
        return Happening(self.scenes[end - 1], (self.scenes[end],))

    @property
    def kinds(self) -> Iterator[tuple[str, str, bool]]:
        """Yield the kinds of policy to choose from: name, URL, and whether the kind is chosen now.

        The URL of the chosen kind has the current limit. The URLs of the other kinds have a limit
        of half the load of the whole chat, but at least 1.
        """
        for name, kind in policy_kinds().items():
            is_chosen = name == self.play.kind
            limit = self.play.limit if is_chosen else max(1, self._whole(name) // 2)
            url = replace(self.play, kind=name, limit=limit, asks=False, picked=None).url
            yield kind.label, url, is_chosen

    def _whole(self, kind: str) -> int:
        """Return the load that all messages of the chat have under a kind of policy."""
        policy = replace(self.play, kind=kind).policy()
        messages = self.scenes[-1].history
        return policy.load(policy.total(Entry.of(line.message, line.tokens) for line in messages))


def pack(script: str) -> str:
    """Compress a script for a URL. Raises InvalidValue if the script is too long or is not valid
    Unicode.
    """
    _check(script)
    try:
        content = script.encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(
            "The chat contains characters that are not valid Unicode. Remove these characters."
        ) from error
    packed = urlsafe_b64encode(zlib.compress(content, 9)).decode().rstrip("=")
    if len(packed) > PACKED_MAX:
        raise InvalidValue("This chat is too long for a link. Remove some text.")
    return packed


def unpack(packed: str) -> str:
    """Return the script that `pack` compressed to the text `packed`. Raises InvalidValue if
    `packed` is damaged, or if the script is too long.
    """
    if len(packed) > PACKED_MAX or not packed.isascii():
        raise InvalidValue(_DAMAGED)
    inflater = zlib.decompressobj()
    try:
        compressed = urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        script = inflater.decompress(compressed, _BYTES_MAX + 1).decode()
    except (ValueError, zlib.error) as error:
        raise InvalidValue(_DAMAGED) from error
    if not inflater.eof or inflater.unused_data:
        raise InvalidValue(_DAMAGED if len(script) <= CHARACTERS_MAX else _TOO_LONG)
    _check(script)
    return script


def _check(script: str) -> None:
    if len(script) > CHARACTERS_MAX:
        raise InvalidValue(_TOO_LONG)
