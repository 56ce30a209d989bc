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
    """The page of a state. Raises InvalidValue where the chat cannot be played."""

    play: Play

    @cached_property
    def policy(self) -> Policy:
        return self.play.policy()

    @cached_property
    def scenes(self) -> list[Scene]:
        return rehearse(self.policy, self.play.messages())

    @property
    def last(self) -> int:
        return len(self.scenes) - 1

    @property
    def at(self) -> int:
        """The number of messages that are said; one that is asked about comes after them."""
        most = self.last - 1 if self.play.asks else self.last
        return most if self.play.at is None else min(self.play.at, most)

    @cached_property
    def board(self) -> Board:
        if self.play.asks:
            changes = (self.scenes[self.at + 1],)
            is_answered = self.play.picked is not None
            return Board(
                self.scenes[self.at], changes, is_answered, asks=True, picked=self.play.picked
            )
        before = self.scenes[max(0, self.at - 1)]
        return Board(before, (self.scenes[self.at],) if self.at else (), is_revealed=True)

    @property
    def caption(self) -> Caption | None:
        """What happened at the step, in a sentence."""
        change = self.scenes[self.at].change
        return None if self.play.asks or change is None else caption(change)

    @property
    def judgement(self) -> Judgement | None:
        if self.play.picked is None:
            return None
        before, after = self.scenes[self.at], self.scenes[self.at + 1]
        key = [row.seq for row in before.window.rows if row.seq not in after.seen]
        lost = [line.seq for line in self.board.arriving if line.seq not in after.seen]
        return judge_picks(key, self.play.picked, lost=lost)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return self.board.scene.verdicts()

    @cached_property
    def url(self) -> str:
        """The link of the page. Raises InvalidValue for a chat that cannot be played."""
        assert self.scenes
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
