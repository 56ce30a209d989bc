"""The values of an advice, such as measured conversations, options and the suggested action
(`Verdict`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from chatmemory.messages.json_values import JsonDict
from chatmemory.recall.cost import NO_PRICES, Prices
from chatmemory.recall.frontier import FEWEST_CALLS, Figures, TriedPolicies
from chatmemory.recall.tallies import NOTHING, Tally
from chatmemory.windows.policies import Policy
from chatmemory.windows.written_policies import text_of_policy

SHARE = 0.95
SAVING = 0.1
CLOSE = 1e-9
FACTS_ENOUGH = 10  # fewer needed facts say little about a limit
DEARER = 1.005  # the least cost that is shown as more than sending everything


@dataclass(frozen=True)
class Goals:
    """The goals that an advised window must reach.

    - `share`: the least share of the needed facts that the window must hold, such as 0.95.
    - `saving`: the least saving compared with sending everything, such as 0.1 for 10 %.
    - `context`: the model's context window in tokens, or None if unknown.
    - `spares_users`: with True, users must not have to repeat anything.
    """

    share: float = SHARE
    saving: float = SAVING
    context: int | None = None
    spares_users: bool = False


USUAL = Goals()


class DecidedBy(StrEnum):
    """Who decides the content of memory: a policy or a client."""

    POLICY = "policy"
    CLIENT = "client"


class LeftOut(StrEnum):
    """Why conversations are not counted. In a sentence, each value follows the number of
    conversations: `3 with a limit in another unit`.
    """

    UNREAD = "not read yet"
    UNREADABLE = "unreadable"
    TOO_SHORT = f"with fewer than {FEWEST_CALLS} model calls"
    CLIENT = "whose client decides what memory holds"
    OTHER_UNIT = "with a limit in another unit"
    NO_FACTS = "that needed no fact again"
    OUTLIER = "far larger than the others"


class Verdict(StrEnum):
    """The action that an advice suggests, or the reason why it suggests none.

    - KEEP: keep the policy in force.
    - CHANGE: set another limit, or other options of the policy.
    - SEND_EVERYTHING: use no limit.
    - CHEAPEST: use the cheapest option. Only costs were compared, because no fact was needed again.
    - CLIENT: clients decide what is in memory, so that only they can use the advised limit.
    - REFUSED: a provider would reject the current windows.
    - TOO_FEW: no conversation could be counted.
    - DOES_NOT_FIT: no option both fits the model and holds enough facts.
    - GROUPS_DIFFER: the advice for a group of conversations differs from the advice for all
      conversations together.
    """

    KEEP = "keep"
    CHANGE = "change"
    SEND_EVERYTHING = "send_everything"
    CHEAPEST = "cheapest"
    CLIENT = "client"
    REFUSED = "refused"
    TOO_FEW = "too_few"
    DOES_NOT_FIT = "does_not_fit"
    GROUPS_DIFFER = "groups_differ"


class Measured(NamedTuple):
    """A conversation with its `figures` under the policies `tried`.

    - `figures`: None if the figures are not known yet. `tried` can then be None, too.
    - `policy`: the policy in force; None if the conversation has none.
    - `decided_by`: whether this policy or the client decides what is in memory.
    - `refused`: the provider that would reject the current window, or "".
    - `state`: the number of the step at which the stored figures were computed, as text; "" without
      stored figures.
    - `said`: the number of all messages of the conversation.
    - `group`: the name of a group that gets its own advice, such as `team:billing`; "" without
      groups.
    """

    id: str
    figures: Figures | None = None
    tried: TriedPolicies | None = None
    policy: Policy | None = None
    decided_by: DecidedBy = DecidedBy.POLICY
    refused: str = ""
    state: str = ""
    said: int = 0
    group: str = ""

    @property
    def needed_limit(self) -> int:
        """The smallest limit that has room for the largest turn and the system message; 0 if
        unknown.
        """
        return self.figures.turn if self.figures else 0

    @property
    def sends_everything(self) -> bool:
        """Whether the policy in force has the option `meters_only`: the policy counts tokens, but
        evicts no message. False without a policy.
        """
        return self.policy is not None and self.policy.meters_only

    def tally(self, policy: Policy | None) -> Tally | None:
        """Return the facts held, the repetitions and the tokens sent under a policy. None if the
        policy was not tried.

        The policy None sends everything.
        """
        if self.figures is None or self.tried is None:
            return None
        if policy is None or policy.meters_only:
            return self.figures.everything
        place = self.tried.place_if_tried(policy)
        if place is None:
            return None
        if policy.limit >= self.figures.load:
            return self.figures.everything
        return self.figures.points.get(place, {}).get(policy.limit)

    @property
    def today(self) -> Tally | None:
        """The facts held, the repetitions and the tokens sent under the policy in force. None if
        the policy was not measured, or if the client decides the window.
        """
        if self.figures is None or self.decided_by is DecidedBy.CLIENT:
            return None
        return self.figures.everything if self.sends_everything else self.figures.today


@dataclass(frozen=True)
class Option:
    """A policy with its effect on conversations.

    - `policy`: the policy. None for sending everything, and None if `mixed` is True.
    - `mixed`: whether each conversation has its own policy.
    - `tally`: the sums over all conversations, whose number is `from_conversations`.
    - `needed`, `calls`: the number of facts needed again, and of model calls.
    - `share`: the mean share of needed facts that the policy holds.
    - `cost`: the mean cost, relative to sending everything.
    - `fits`: whether the prompts fit the model's context window.
    - `halves`: the cost in each half of the conversations, None for an empty half.

    Each conversation has the same weight in a mean.
    """

    policy: Policy | None
    tally: Tally = NOTHING
    needed: int = 0
    calls: int = 0
    share: float = 1.0
    cost: float = 1.0
    fits: bool = True
    from_conversations: int = 1
    halves: tuple[float | None, float | None] = (None, None)
    mixed: bool = False

    @property
    def held(self) -> int:
        return self.tally.held

    @property
    def lost(self) -> int:
        return self.needed - self.tally.held

    @property
    def repeated(self) -> int:
        """The number of incidents in which a user repeats facts, or a tool is called again."""
        return self.tally.again

    @property
    def text(self) -> str:
        """The policy as text, such as `token_window:4000`; `everything` if `policy` is None."""
        return text_of_policy(self.policy)

    def dominates(self, other: Option) -> bool:
        """Return whether this option is better than `other`: it costs less, holds no fewer facts,
        causes no more repetitions, and fits the model.
        """
        return (
            self.fits
            and self.cost < other.cost - CLOSE
            and self.share >= other.share - CLOSE
            and self.repeated <= other.repeated
        )


@dataclass(frozen=True)
class Scope:
    """The conversations that an advice was measured on.

    - `conversations`, `of`: the number of counted conversations, and of all conversations.
    - `left_out`: the ids of the conversations that were not counted, by reason.
    - `said`: the number of messages in the counted conversations.
    - `messages`, `calls`: the number of messages that were replayed, and of their model calls.
    - `in_part`: the number of long conversations of which only the newest messages were replayed.
    - `prices`: the prices by which costs were computed.
    - `rules`: the version of the rules by which facts and costs were measured.
    """

    conversations: int = 0
    of: int = 0
    left_out: Mapping[LeftOut, Sequence[str]] = field(default_factory=dict)
    messages: int = 0
    said: int = 0
    calls: int = 0
    prices: Prices = NO_PRICES
    rules: str = ""
    in_part: int = 0

    def to_dict(self) -> JsonDict:
        """Return the scope as a JSON object. Its member `left_out` has the number of conversations
        for each reason, without their ids.
        """
        return {
            "conversations": self.conversations,
            "of": self.of,
            "left_out": {each.name.lower(): len(ids) for each, ids in self.left_out.items()},
            "messages": self.messages,
            "said": self.said,
            "in_part": self.in_part,
            "calls": self.calls,
            "prices": self.prices.source or self.prices.priced,
            "rules": self.rules,
        }


@dataclass(frozen=True)
class PromptFigures:
    """Figures of the prompts of the measured conversations.

    - `longest`: the tokens of the longest prompt, if everything is sent.
    - `needed_limit`: the smallest limit that has room for the largest turn and the system message.
    - `refused`: the provider that would reject the current windows, or "".

    The other fields are about the prompts under the policy in force. Without a policy, or if a
    client decides what is in memory, they are about the prompts of sending everything.

    - `calls`: the number of prompts.
    - `changed`: the number of prompts that do not begin with the whole previous prompt.
    - `short`: the number of prompts that are too short for the provider's prompt cache.
    """

    longest: int = 0
    needed_limit: int = 0
    calls: int = 0
    changed: int = 0
    short: int = 0
    refused: str = ""


def are_few(needed: int) -> bool:
    """Return whether `needed`, the number of facts needed again, is too small to compare limits by
    facts held. False for 0: limits are then compared by cost alone.
    """
    return 0 < needed < FACTS_ENOUGH


@dataclass(frozen=True)
class Advice:
    """The advice for a conversation, or for several.

    - `verdict`: the suggested action, or the reason why there is none.
    - `measured`: the conversations that the advice was measured on.
    - `pick`: the advised option, or None if no policy is advised. For the verdict KEEP, it is the
      policy in force.
    - `today`: the policy in force as an option, or None if not measured.
    - `everything`: sending everything as an option, or None if not measured.
    - `options`: the tried windows, cheapest first. Windows that are too small for the largest turn,
      or that hold none of the needed facts, are left out.
    - `dominated`: how many of the `options` are worse than another option (see `Option.dominates`).
    - `others`: at most three further options to show beside `pick`.
    - `prompts`: figures of the prompts, such as the longest.
    - `goals`: the goals that an advised window must reach.
    """

    verdict: Verdict
    measured: Scope
    pick: Option | None = None
    today: Option | None = None
    everything: Option | None = None
    others: tuple[Option, ...] = ()
    options: tuple[Option, ...] = ()
    dominated: int = 0
    prompts: PromptFigures = PromptFigures()
    goals: Goals = USUAL

    @property
    def is_change(self) -> bool:
        """Whether the advice is to replace the policy in force. Pages then offer a button that sets
        the advised policy.
        """
        changing = (Verdict.CHANGE, Verdict.SEND_EVERYTHING, Verdict.CHEAPEST)
        return self.verdict in changing and self.pick is not None

    @property
    def needed(self) -> int:
        """The number of facts that were needed again."""
        return self.everything.needed if self.everything else 0

    @property
    def is_few(self) -> bool:
        """Whether some facts were needed again, but too few to compare limits by facts held (see
        `are_few`).
        """
        return are_few(self.needed)

    @property
    def checked(self) -> tuple[float, float] | None:
        """The relative cost of the advised window in each half of the conversations.

        None if a half is empty, or if no window is advised.
        """
        first, second = self.pick.halves if self.pick and self.pick.policy else (None, None)
        return None if first is None or second is None else (first, second)

    @property
    def recommended(self) -> str | None:
        """The advised policy as text, such as `token_window:4000` or `everything`.

        None if no policy is advised, or if each conversation is to keep its own policy.
        """
        return self.pick.text if self.pick and not self.pick.mixed else None

    def is_dominated(self, option: Option) -> bool:
        """Return whether any measured option is better than `option` (see `Option.dominates`)."""
        return self.better_than(option) is not None

    def better_than(self, option: Option) -> Option | None:
        """Return a measured option that is better than `option` (see `Option.dominates`). None if
        no option is better.

        If the advised option is better, it is returned. Otherwise, the cheapest of the better
        options is returned.
        """
        better = [each for each in self.rivals if each.dominates(option)]
        if self.pick in better:
            return self.pick
        return min(better, key=lambda each: each.cost, default=None)

    @property
    def rivals(self) -> list[Option]:
        """All options to compare: the tried policies, the policy in force, and sending
        everything.
        """
        return [*self.options, *filter(None, (self.everything, self.today))]

    def at(self, policy: Policy | None) -> Option | None:
        """Return the `Option` that has the measured effect of a policy. None if no measured option
        has this policy.

        The policy None stands for sending everything.
        """
        if policy is None or policy.meters_only:
            return self.everything
        if self.today and self.today.policy == policy and not self.today.mixed:
            return self.today
        return next((each for each in self.options if each.policy == policy), None)
