"""The playground's page: a chat of somebody's own on the board of the lessons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from chatmemory import Policy, policy_kinds
from chatmemory.explain import Caption, caption
from chatmemory.queries import Scene, Verdict, rehearse
from inspector.lessons.answers import Judgement, judge_picks
from inspector.lessons.board import Board
from inspector.lessons.happening import Happening
from inspector.lessons.lesson import Lesson
from inspector.lessons.packing import pack
from inspector.lessons.play import Play


class Kind(NamedTuple):
    """A kind of policy to switch to, with the address that does it."""

    label: str
    url: str
    is_chosen: bool


@dataclass(frozen=True)
class Playground:
    """The page of a state. `scenes` are those before and after each message."""

    play: Play
    policy: Policy
    scenes: tuple[Scene, ...]

    @classmethod
    def of(cls, play: Play) -> Playground:
        """Play a chat. Raises InvalidValue where it cannot be played, or fits into no link."""
        pack(play.script)
        policy = play.policy()
        return cls(play, policy, tuple(rehearse(policy, play.messages())))

    @property
    def last(self) -> int:
        return len(self.scenes) - 1

    @property
    def at(self) -> int:
        """The number of messages that are said; one that is asked about comes after them."""
        most = self.last - 1 if self.play.asks else self.last
        return most if self.play.at is None else min(self.play.at, most)

    @property
    def happening(self) -> Happening:
        """What is asked about, or what happened last."""
        end = self.at + 1 if self.play.asks else self.at
        return Happening(self.scenes[max(0, end - 1)], self.scenes[end : end + 1] if end else ())

    @cached_property
    def board(self) -> Board:
        asks, picked = self.play.asks, self.play.picked
        is_revealed = not asks or picked is not None
        return Board(self.happening, is_revealed, asks=asks, picked=picked)

    @property
    def caption(self) -> Caption | None:
        """What happened at the step, in a sentence."""
        change = self.scenes[self.at].change
        return None if self.play.asks or change is None else caption(change)

    @property
    def judgement(self) -> Judgement | None:
        picked = self.play.picked
        return None if picked is None else judge_picks(self.happening, picked)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return self.board.scene.verdicts()

    @property
    def url(self) -> str:
        return self.play.url

    @property
    def packed(self) -> str:
        return pack(self.play.script)

    @property
    def back(self) -> str:
        return self._at(self.at - 1) if self.at else ""

    @property
    def forward(self) -> str:
        return self._at(self.at + 1) if self.at < self.last else ""

    @property
    def question_url(self) -> str:
        """The link that asks what leaves when the next message arrives."""
        return self.play.moved(self.at, asks=True).url if self.at < self.last else ""

    @property
    def reveal_url(self) -> str:
        """The link to the step that a question asks about."""
        return self._at(self.at + 1)

    @property
    def kinds(self) -> Iterator[Kind]:
        """Yield the kinds to switch to, each with a limit that half of the chat fits in."""
        for name, kind in policy_kinds().items():
            is_chosen = name == self.play.kind
            limit = self.play.limit if is_chosen else max(1, self._whole(name) // 2)
            url = replace(self.play, kind=name, limit=limit, asks=False, picked=None).url
            yield Kind(kind.label, url, is_chosen)

    @property
    def limit_max(self) -> int:
        """The end of the slider: everything fits, and there is some room."""
        return max(self._whole(self.play.kind) + 2, self.play.limit)

    def _whole(self, kind: str) -> int:
        """Return the load of all messages under a kind of policy."""
        policy = replace(self.play, kind=kind).policy()
        said = self.scenes[-1].said
        return policy.load(len(said), sum(line.tokens for line in said))

    def _at(self, at: int) -> str:
        return self.play.moved(at).url


def of_sample(lesson: Lesson) -> Play:
    """Return the state that shows a lesson's chat under its policy."""
    return Play(lesson.script, lesson.policy.kind, lesson.policy.limit)
