"""The values of an advice: the conversations that it was measured on, its options and its
verdict.
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

    `share` is the least share of the needed facts to hold. `saving` is the least saving, as a share
    of the cost of sending everything. `context` is the model's context window in tokens, or None if
    unknown. With `spares_users`, users must not have to repeat anything under the window.
    """

    share: float = SHARE
    saving: float = SAVING
    context: int | None = None
    spares_users: bool = False


USUAL = Goals()


class DecidedBy(StrEnum):
    """Whether a policy or a client decides the content of memory."""

    POLICY = "policy"
    CLIENT = "client"


class LeftOut(StrEnum):
    """Why conversations are not counted. In a sentence, each value follows the number of
    conversations: `3 decided by the client`.
    """

    UNREAD = "not read yet"
    UNREADABLE = "unreadable"
    TOO_SHORT = f"with fewer than {FEWEST_CALLS} model calls"
    CLIENT = "decided by the client"
    OTHER_UNIT = "with a limit in another unit"
    NO_FACTS = "needed no fact again"
    OUTLIER = "far larger than the others"


class Verdict(StrEnum):
    """The action that an advice suggests, or the reason why it suggests none.

    - CHEAPEST is a change that is chosen by cost alone, because no fact was needed again.
    - CLIENT: the client decides what is in memory, so that only the client can use the advised
      limit.
    - REFUSED: a provider would reject the window under any limit.
    - TOO_FEW: no conversation could be counted.
    - DOES_NOT_FIT: no option both fits the model and holds enough facts.
    - GROUPS_DIFFER: the groups of conversations get different advice.
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
    """A conversation with its `figures` under the policies `tried`; both are None if they are not
    known yet.

    `policy` is the policy in force, or None. `decided_by` says whether this policy or the client
    decides what is in memory. `refused` names the provider that would reject the current window.
    `state` identifies the state in which the conversation was measured, and `said` is the number of
    all its messages. `group` is the name of the conversation's group.
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
        """The limit that the largest turn needs together with the system message; 0 if unknown."""
        return self.figures.turn if self.figures else 0

    @property
    def sends_everything(self) -> bool:
        """Whether the policy in force has the option `meters_only`: it counts tokens, but no
        message leaves memory.
        """
        return self.policy is not None and self.policy.meters_only

    def tally(self, policy: Policy | None) -> Tally | None:
        """Return the facts held, the repetitions and the tokens sent under a policy in this
        conversation. The policy None sends everything. The result is None if the policy was not
        tried.
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
    """A policy with its measured effect. `policy` is None for sending everything. It is also None
    if the option is `mixed`: then the conversations have different policies.

    `tally` has the sums over all conversations, whose number is `from_conversations`. These
    conversations have `calls` model calls, and `needed` facts were needed again. `cost` is relative
    to sending everything, and `share` is the share of the needed facts that the policy holds. Both
    are means in which each conversation has the same weight. `fits` tells whether the prompts fit
    the model's context window.

    The conversations are divided into two halves. `halves` has the cost in each half, None for an
    empty half.
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
        """The number of messages in which users or tool calls repeat evicted facts or results."""
        return self.tally.again

    @property
    def text(self) -> str:
        """The policy as text, such as `token_window:4000`, or `everything`."""
        return text_of_policy(self.policy)

    def dominates(self, other: Option) -> bool:
        """Return whether this option is better than `other`: it holds as many facts, causes no more
        repetitions, fits the model and costs less.
        """
        return (
            self.fits
            and self.cost < other.cost - CLOSE
            and self.share >= other.share - CLOSE
            and self.repeated <= other.repeated
        )


@dataclass(frozen=True)
class Scope:
    """The conversations that an advice was measured on. `of` is the number of all conversations,
    and `conversations` the number of the counted conversations.

    The counted conversations have `said` messages. Of these, `messages` were replayed, with `calls`
    model calls: of `in_part` long conversations, only the newest messages were replayed. Costs are
    at `prices`, and `rules` is the version of the rules by which facts and costs were measured.
    `left_out` maps each reason to the ids of conversations that were not counted for this reason.
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
        """Return the scope as JSON, with the number of conversations left out."""
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
    """The prompts of the conversations that an advice was measured on.

    `longest` is the longest prompt of sending everything, in tokens. `needed_limit` is the limit
    that the largest turn needs together with the system message.

    The other fields are about the policy in force, out of `calls` prompts: `changed` prompts do not
    begin with the whole previous prompt, and `short` prompts are below the minimum length that the
    provider caches. `refused` names the provider that would reject the current window, or is "".
    """

    longest: int = 0
    needed_limit: int = 0
    calls: int = 0
    changed: int = 0
    short: int = 0
    refused: str = ""


def are_few(needed: int) -> bool:
    """Return whether so few facts were needed again that limits cannot be compared by facts."""
    return 0 < needed < FACTS_ENOUGH


@dataclass(frozen=True)
class Advice:
    """The advice for a conversation, or for several.

    `pick` is the advised option, or None if nothing can be advised. `today` is the option of the
    policy in force; if the verdict is to keep this policy, `pick` equals `today`. `everything` is
    the option of sending everything.

    `options` are all windows that were tried and have room for the largest turn, cheapest first.
    `dominated` is the number of those `options` that are worse in every way than another option.
    `others` are at most three further options to show, none of them worse in every way.
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
        """Whether too few facts were needed again to choose by facts."""
        return are_few(self.needed)

    @property
    def checked(self) -> tuple[float, float] | None:
        """The cost of an advised window in each half of the conversations; None if a half is
        empty, or if no window is advised.
        """
        first, second = self.pick.halves if self.pick and self.pick.policy else (None, None)
        return None if first is None or second is None else (first, second)

    @property
    def recommended(self) -> str | None:
        """The advised policy as text, such as `token_window:4000` or `everything`; None if none is
        advised.
        """
        return self.pick.text if self.pick and not self.pick.mixed else None

    def is_dominated(self, option: Option) -> bool:
        """Return whether some measured option is better than `option` in every way."""
        return any(each.dominates(option) for each in self.rivals)

    @property
    def rivals(self) -> list[Option]:
        """All options to compare: the tried policies, the policy in force, and sending
        everything.
        """
        return [*self.options, *filter(None, (self.everything, self.today))]

    def at(self, policy: Policy | None) -> Option | None:
        """Return the option of a policy, which has the policy's measured effect. Return None if the
        policy was not measured. For the policy None, return the option of sending everything.
        """
        if policy is None or policy.meters_only:
            return self.everything
        if self.today and self.today.policy == policy and not self.today.mixed:
            return self.today
        return next((each for each in self.options if each.policy == policy), None)
