"""Derives the hourly figures of a conversation from its ledger and from its recorded calls.

After a change, only the new steps are read, and their figures are added to the stored rows. The
`State` after the last step is stored too, as the starting point of the next change.

Providers count the tokens of recorded calls. In addition, tokens and cost of all prompts are
estimated from the ledger. For this, the window before an answer counts as a prompt. The prefix that
this prompt shares with the previous prompt counts as cached.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from chatmemory.conf import configuration
from chatmemory.flag import Case, Flag
from chatmemory.flags import flags
from chatmemory.messages.estimators import count_overhead, estimator_for
from chatmemory.messages.json_values import JsonDict, JsonList, JsonValue
from chatmemory.messages.message import MessageType
from chatmemory.models import Memory, Step
from chatmemory.reading.history import estimator_of
from chatmemory.reading.passage import Held, Passage, PassageStep, PastWindow, Said
from chatmemory.recall.cost import ONE, Call, Prices, Provider, bill_of
from inspector.rooms.hours.clock import hour_of
from inspector.rooms.hours.models import Hour

THOUSAND = 1_000
_SUMMARIZED = "SUMMARIZED"


def past_flags() -> list[Flag]:
    """Return the flags whose past cases can be found in a ledger."""
    return [each for each in flags() if each.cases.past]


@dataclass
class State:
    """The values about a conversation's earlier steps that are needed to derive the figures of
    later steps.

    - `has_evicted`, `has_compacted`: whether memory has had an eviction or a compaction.
    - `prompt_step`: the step of the newest prompt, or None.
    - `prompt_at`: the time of the newest prompt that has a time, in seconds since 1970, or None.
    - `said`, `untimed`: the number of messages with a time, and without a time.
    - `last_hour`: the hour of the last message with a time, or None.
    - `found`: for each flag by name, the values with which `PastCases.find` continues.
    - `cases`: for each flag by name, all cases as lists of step, hour and detail.
    """

    has_evicted: bool = False
    has_compacted: bool = False
    prompt_step: int | None = None
    prompt_at: float | None = None
    said: int = 0
    untimed: int = 0
    last_hour: int | None = None
    found: JsonDict = field(default_factory=dict)
    cases: dict[str, list[JsonList]] = field(default_factory=dict)

    @classmethod
    def read(cls, content: JsonValue) -> State:
        """Return the `State` from the parsed JSON text that its method `written` returned. Raises
        TypeError for other JSON.
        """
        return cls(**content)

    def written(self) -> str:
        return json.dumps(self.__dict__, separators=(",", ":"))


def cost_of(call: Call, provider: Provider) -> int:
    """Return the estimated cost of a prompt. A cost of 1,000 is the price of one input token."""
    prices = Prices(ONE, provider.cached, provider.write)
    return round(prices.weight(bill_of([call], provider.rules)) * THOUSAND)


def counted_cost(input: int, cached: int, written: int, provider: Provider | None) -> int:
    """Return the cost of a prompt whose tokens the provider has counted. A cost of 1,000 is the
    price of one input token.

    `input` is the number of all tokens of the prompt. Of these, `cached` tokens were read from the
    prompt cache, and `written` tokens were written to the cache. Without a `provider`, all tokens
    cost the full price.
    """
    if provider is None:
        return input * THOUSAND
    fresh = max(0, input - cached - written)
    weight = fresh + cached * provider.cached + Decimal(written) * provider.write
    return round(weight * THOUSAND)


class Derivation:
    """Derives the hourly figures of a passage. `hours` has the changed rows by hour.

    `stored` returns the stored row of an hour, or None if the hour has no row yet. New figures are
    added to the stored row.
    """

    def __init__(
        self,
        passage: Passage,
        state: State,
        provider: Provider,
        stored: Callable[[int], Hour | None],
    ) -> None:
        self.passage, self.state, self._provider = passage, state, provider
        self._stored = stored
        estimator = estimator_for(estimator_of(passage.memory) or configuration().ESTIMATOR)
        self._overhead = count_overhead(estimator)
        self.hours: dict[int, Hour] = {}
        self._times: dict[int, int | None] = {}  # the hour of each step
        self._sent: int | None = None  # the tokens of the last prompt, without the overhead
        self._arriving = {(each.seq, each.entered): each.tokens for each in passage.held}

    def run(self) -> None:
        """Add the new steps of the passage to the rows of their hours, and find the cases of all
        flags.
        """
        for step, window, leaving in self.passage.walk():
            if step.n > self.passage.after:
                self._add(step, window, leaving)
        self._find_cases()

    def hour(self, at: int) -> Hour:
        """Return the row to which the figures of an hour are added: the stored row, or a new row if
        none is stored. `at` is the start of the hour, in seconds since 1970.
        """
        if at not in self.hours:
            self.hours[at] = self._stored(at) or Hour(memory=self.passage.memory, hour=at)
        return self.hours[at]

    def _add(self, step: PassageStep, window: PastWindow, leaving: Sequence[Held]) -> None:
        state = self.state
        before = 0  # tokens of messages that the same step added before
        for each in step.said:
            if each.is_said and not each.is_copy:
                self._say(each, step.n, window, before)
            before += self._arriving.get((each.seq, step.n), 0)
        self._times[step.n] = hour_of(step.at) if step.at else None
        if step.kind == Step.Kind.COMPACT or any(each.reason == _SUMMARIZED for each in leaving):
            state.has_compacted = True
        state.has_evicted |= any(each.is_eviction for each in leaving)

    def _say(self, said: Said, step: int, window: PastWindow, before: int) -> None:
        state = self.state
        if said.at is None:
            state.untimed += 1
        else:
            state.said += 1
            state.last_hour = hour_of(said.at)
        if said.type == MessageType.USER and said.at is not None:
            row = self.hour(hour_of(said.at))
            row.turns += 1
            row.after_eviction += state.has_evicted
            row.after_compaction += state.has_compacted
        elif said.type == MessageType.AI:
            self._send(said.at, step, window, before)

    def _send(self, at: datetime | None, step: int, window: PastWindow, before: int) -> None:
        """Add a prompt to the row of its hour. Its tokens are those of the window, plus `before`:
        the tokens that came with the answer.
        """
        state = self.state
        prompt = window.tokens + before + self._overhead if window.held or before else 0
        if at is not None:
            seconds = at.timestamp()
            age = None if state.prompt_at is None else max(0.0, seconds - state.prompt_at)
            row = self.hour(hour_of(at))
            row.prompts += 1
            row.tokens += prompt
            row.cost += cost_of(Call(0, prompt, self._shared(window), age), self._provider)
            state.prompt_at = seconds
        state.prompt_step = step - 1
        self._sent = window.tokens
        window.begin()

    def _shared(self, window: PastWindow) -> int:
        """Return the tokens of the prefix that the window shares with the last prompt."""
        if self.state.prompt_step is None:
            return 0
        sent = self._sent if self._sent is not None else self._tokens_sent()
        if window.broken is None:
            return min(sent, window.tokens)
        return min(sent, window.tokens_before(window.broken))

    def _tokens_sent(self) -> int:
        at = self.state.prompt_step or 0
        return sum(
            each.tokens
            for each in self.passage.held
            if each.entered <= at and (each.left is None or each.left > at)
        )

    # Cases

    def _find_cases(self) -> None:
        """Find the cases of all flags, and write them into the rows of hours whose cases have
        changed.
        """
        before = _by_hour(self.state.cases)
        for flag in past_flags():
            assert flag.cases.past is not None
            known = {
                (step, detail): hour for step, hour, detail in self.state.cases.get(flag.name, ())
            }
            found = flag.cases.past.find(self.passage, self.state.found.setdefault(flag.name, {}))
            self.state.cases[flag.name] = [
                [each.step, self._hour_of_case(each, known), each.detail] for each in found
            ]
        after = _by_hour(self.state.cases)
        for hour in before.keys() | after.keys():
            if before.get(hour) != after.get(hour):
                cases = after.get(hour, [])
                self.hour(hour).cases = json.dumps(cases) if cases else ""

    def _hour_of_case(self, case: Case, known: dict[tuple[int, str], int | None]) -> int | None:
        if case.step in self._times:
            return self._times[case.step]
        found = known.get((case.step, case.detail))
        return found if found is not None else _hour_of_step(self.passage.memory, case.step)


def _by_hour(cases: dict[str, list[JsonList]]) -> dict[int, list[list[str]]]:
    found: dict[int, list[list[str]]] = {}
    for flag in sorted(cases):
        for _, hour, detail in cases[flag]:
            if hour is not None:
                found.setdefault(hour, []).append([flag, detail])
    return found


def _hour_of_step(memory: Memory, step: int) -> int | None:
    """Return the hour of an earlier step; None if the step has no time."""
    passage = Passage(memory, after=step - 1)
    at = next((each.at for each in passage.steps if each.n == step), None)
    return hour_of(at) if at else None
