"""The lab of conversations that are in a file, of which nothing is stored."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

from chatmemory.conf import fact_words
from chatmemory.core.estimators import estimator_for
from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.recall.figures import Sums, distance, figures_of
from chatmemory.core.recall.histories import History, history_of
from chatmemory.core.recall.replay import departures
from chatmemory.core.recall.scores import uses
from chatmemory.formats import Transcript
from chatmemory.queries.fleet import LISTED, Fleet, FleetLists, Loser
from chatmemory.queries.recalling import READ_AT_ONCE


class FileFleet:
    """The conversations of a file. Raises InvalidValue for too many messages, UnknownEstimator."""

    def __init__(self, transcripts: Sequence[Transcript], kind: Policy) -> None:
        amount = sum(len(each.messages) for each in transcripts)
        if amount > READ_AT_ONCE:
            raise InvalidValue(
                f"the file has {amount:,} messages, and the lab reads up to {READ_AT_ONCE:,} of a "
                "file: import it, or use manage.py recall"
            )
        estimator, words = estimator_for(kind.estimator), fact_words()
        self._kind = kind
        self._names = [each.name or "" for each in transcripts]
        self._histories = [history_of(each.messages, estimator, words) for each in transcripts]

    def fleet(self) -> Fleet:
        sums = Sums(distance(self._kind))
        for history in self._histories:
            sums.add(figures_of(history, self._kind))
        count = len(self._histories)
        return Fleet(count, count, sums, sums.points())

    def lists(self, limit: int) -> FleetLists:
        """Return which conversations lose most under a limit."""
        policy = replace(self._kind, limit=limit)
        losers = [
            _loser(name, history, policy)
            for name, history in zip(self._names, self._histories, strict=True)
        ]
        worst = heapq.nlargest(LISTED, losers, key=lambda each: each.lost)
        return FleetLists(tuple(each for each in worst if each.lost))


def _loser(name: str, history: History, policy: Policy) -> Loser:
    recalls = list(uses(history, departures(history, policy), MessageType.AI))
    lost = [use for use in recalls if not use.is_held]
    if not lost:
        return Loser(name, 0, len(recalls))
    first = lost[0]
    said, needed = history.numbers[first.mention], history.numbers[first.position]
    return Loser(name, len(lost), len(recalls), first.fact, said, needed, first.position)
