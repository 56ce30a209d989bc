"""Policies: the limit and the options of a window as plain data, the same in Python, JSON and the
database.

Each kind of policy is a class with a `label`, a `unit`, a `limit_name`, options, and a method
`cost`, which returns how much of the limit a message takes. Options are the dataclass fields other
than `limit` and `estimator`. A kind may also override `overhead` and `evict`.

Register your own kind in the entry point group "chatmemory.policies", in CHATMEMORY["POLICIES"], or
with `KINDS.register`.
"""

# Long: the kinds of policies beside their common base, with the documentation of each option.
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, Field, dataclass, field, fields, replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from fractions import Fraction
from functools import cache
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict, Unpack

from chatmemory.exceptions import InvalidValue
from chatmemory.messages.estimators import TokenCountEstimator, count_overhead
from chatmemory.messages.json_values import JsonDict, JsonValue
from chatmemory.messages.message import MessageType
from chatmemory.registry import Registry
from chatmemory.windows.eviction import (
    Eviction,
    Head,
    oldest_first,
    rest_of_question,
    rest_of_turn,
)
from chatmemory.windows.window import NOTHING, Totals, Weighable

WHOLE = Decimal(1)
DECIMALS = 9
SWITCHES = (
    "always_keep_system_message_first",
    "snap_to_user",
    "meters_only",
    "auto_recover_orphaned_tool_messages",
    "free_system",
)
# Fields that do not change the cost of a message
UNWEIGHED = (
    *("limit", "low_water", "oversized", *SWITCHES[:-1]),
    *("clear_tool_results", "index_terms"),
)
DEFAULT_ESTIMATOR = "gpt-4o"
MOST_TERMS = 200  # of an index


class Oversized(StrEnum):
    """What happens to an added message that is larger than the limit allows.

    - EVICT, LangChain4j's rule: the step evicts all messages that can leave, and then the added
      message itself.
    - REJECT: the add raises OversizedMessage.
    - KEEP: the added message stays. If it is a tool result, its tool call and the call's other
      results stay, too.
    """

    EVICT = "evict"
    REJECT = "reject"
    KEEP = "keep"


class WindowOptions(TypedDict, total=False):
    """The options that all memories take as keyword arguments; `Policy` explains them."""

    low_water: Decimal | float | str
    snap_to_user: bool
    oversized: Oversized | str
    meters_only: bool
    free_system: bool
    auto_recover_orphaned_tool_messages: bool


class PolicyOptions(WindowOptions, total=False):
    """The options that policies take as keyword arguments; `Policy` explains them."""

    estimator: str
    always_keep_system_message_first: bool


class TokenWindowOptions(WindowOptions, total=False):
    """The options that memories with a token limit take as keyword arguments.

    `TokenWindow` explains `clear_tool_results` and `index_terms`, and `Policy` explains the other
    options.
    """

    clear_tool_results: int
    index_terms: int


class TokenOptions(PolicyOptions, total=False):
    """The options that `TokenWindow` takes as keyword arguments; `TokenWindow` and `Policy` explain
    them.
    """

    clear_tool_results: int
    index_terms: int
    fixed_overhead: int


# Wide: people write these options by name, and rows of policies store them by name.
# Long: the one rule of eviction, with what a kind of policy may decide in another way.
@dataclass(frozen=True)
class Policy(ABC):
    """A rule for the messages that leave memory: a limit, its unit, and options.

    - `estimator` names the token count estimator: a model name, or a custom estimator's family.
      Message windows have an estimator too, because pages show their tokens.
    - `always_keep_system_message_first`: a new system message goes to the head of the window, not
      to the end.
    - `low_water`: the share of the limit to which a window over the limit is trimmed, such as 0.5.
      The trim to this share never evicts the newest message or its tool call.
    - `snap_to_user`: after a trim, the messages before the first remaining user message leave as
      well.
    - `oversized`: what happens to a message that is larger than the limit allows.
    - `meters_only`: the limit only measures. The policy evicts and refuses nothing, whatever the
      other options.
    - `free_system`: system messages cost nothing, so that the whole limit is for the other
      messages.
    - `auto_recover_orphaned_tool_messages`: tool calls that were not answered completely are hidden
      from the model, and leave with the next add (see `recovery`).

    The class variables describe the kind of policy:

    - `kind` is its name in JSON and the database ("token_window"), and `label` its name on pages
      ("Token window").
    - `unit` is the unit of the limit ("tokens"), and `short_unit` the abbreviation ("tok").
    - `limit_name` is the limit's name in Python and JSON ("max_tokens"). `java_name` is its name in
      LangChain4j's errors ("maxTokens"), or "" for a kind that LangChain4j does not have.
    - `is_installed` is False only for a stored policy whose kind or options are not installed.

    A kind with its own rule of eviction (see `has_own_rule`) does not allow `low_water` and
    `oversized="keep"`. Default values are not stored, so never change the default of an option. A
    field with `metadata={"derived": True}` is stored, but not accepted from callers.
    """

    kind: ClassVar[str]
    label: ClassVar[str]
    unit: ClassVar[str]
    short_unit: ClassVar[str]
    limit_name: ClassVar[str]
    java_name: ClassVar[str] = ""
    is_installed: ClassVar[bool] = True

    limit: int
    _: KW_ONLY
    estimator: str = DEFAULT_ESTIMATOR
    always_keep_system_message_first: bool = False
    low_water: Decimal = WHOLE
    snap_to_user: bool = False
    oversized: Oversized = Oversized.EVICT
    meters_only: bool = False
    free_system: bool = False
    auto_recover_orphaned_tool_messages: bool = False

    def __post_init__(self) -> None:
        """Convert the options from JSON values if necessary. Raises InvalidValue."""
        check_limit(self.java_name or self.limit_name, self.limit)
        if self.low_water is not WHOLE:
            object.__setattr__(self, "low_water", exact_share("low_water", self.low_water))
        if not isinstance(self.oversized, Oversized):
            chosen = option_value("oversized", Oversized, self.oversized)
            object.__setattr__(self, "oversized", chosen)
        for name in SWITCHES:
            option_value(name, bool, getattr(self, name))
        self._check_combination()

    def _check_combination(self) -> None:
        """Raise InvalidValue for options that do not make sense together."""
        if has_own_rule(type(self)):
            keeps = self.oversized is Oversized.KEEP
            for name, is_used in ("low_water", self.low_water != WHOLE), ("oversized=keep", keeps):
                if is_used:
                    raise InvalidValue(
                        f"{self.kind} and {name} do not go together: {self.kind} chooses what "
                        "leaves by a rule of its own"
                    )
        if self.low_water != WHOLE and self.low_mark <= self.overhead:
            unit = self.unit.removesuffix("s") if self.low_mark == 1 else self.unit
            raise InvalidValue(
                f"{self.limit_name} {self.limit} and low_water "
                f"{written_share(self.low_water)} do not go together: memory would "
                f"be trimmed to {self.low_mark:,} {unit}, where only the newest "
                "message could stay"
            )

    @property
    def overhead(self) -> int:
        """The fixed cost of every request, in the unit of the limit."""
        return 0

    @abstractmethod
    def cost(self, message: Weighable) -> int:
        """Return how much of the limit a message takes, by its type and its tokens. The cost is
        never negative, and does not depend on the message's position.
        """

    def weigh(self, message: Weighable) -> int:
        """Return how much of the limit a message takes; 0 for a system message if `free_system` is
        set.
        """
        if self.free_system and message.type is MessageType.SYSTEM:
            return 0
        return self.cost(message)

    def total(self, messages: Iterable[Weighable]) -> Totals:
        """Return the number of these messages, their tokens, and their cost under this policy."""
        found = NOTHING
        for message in messages:
            found = found.plus(message, self.weigh(message))
        return found

    def load(self, totals: Totals) -> int:
        """Return the number that is compared with the limit: the cost of the messages plus the
        overhead of a request. 0 for an empty window.
        """
        return totals.cost + self.overhead if totals.count else 0

    def cost_of(self, totals: Totals) -> int | None:
        """Return the sum of the costs of messages, computed only from their number and their
        tokens. None if this is not possible; the caller then reads and weighs every message.

        By default, the result is None.
        """
        return None

    def costs_like(self, other: Policy) -> bool:
        """Return whether both policies give each message the same cost. Their limits may differ."""
        if self is other or self == other:
            return True
        return type(self) is type(other) and self._unlimited == other._unlimited

    @property
    def _unlimited(self) -> JsonDict:
        return {name: value for name, value in vars(self).items() if name not in UNWEIGHED}

    def evict(self, head: Head) -> Iterator[Eviction]:
        """Evict messages from the head of a window until the window is within the limit, and yield
        the evictions. The rule is LangChain4j's.
        """
        return oldest_first(head, self.is_exceeded_by, self.keeps_newest)

    @property
    def choice(self) -> str:
        """Words for the messages that the policy's own rule evicts: `the oldest but the first two`
        if the first two messages always stay. Pages write the words after "was". By default, this
        is "", and pages write "chosen by the policy's own rule".
        """
        return ""

    def is_exceeded_by(self, totals: Totals) -> bool:
        return self.load(totals) > self.limit

    @property
    def low_mark(self) -> int:
        """The load to which a window over its limit is trimmed: the share `low_water` of the limit,
        rounded down.
        """
        return int(Fraction(self.low_water) * self.limit)  # exactly, and rounded down once

    @property
    def least_limit(self) -> int:
        """The smallest limit that a policy with this `low_water` accepts. With any smaller limit, a
        trimmed window would have no room for a message beside the overhead.
        """
        share = Fraction(self.low_water)
        return 1 if share == 1 else ceil((self.overhead + 1) / share)

    @property
    def keeps_newest(self) -> bool:
        return self.oversized is Oversized.KEEP and not self.meters_only

    @property
    def rejects_oversized(self) -> bool:
        return self.oversized is Oversized.REJECT and not self.meters_only

    @property
    def has_window_options(self) -> bool:
        """Whether an option of the policy can make evictions differ from LangChain4j's rule."""
        is_special = self.oversized is not Oversized.EVICT
        leaves_more = self.low_water != WHOLE or self.takes_whole_turns
        return leaves_more or is_special or self.meters_only or self.recovers

    @property
    def recovers(self) -> bool:
        """Whether interrupted tool calls (calls with missing results) are hidden from the model and
        leave with the next add.
        """
        return self.auto_recover_orphaned_tool_messages and not self.meters_only

    @property
    def takes_whole_turns(self) -> bool:
        """Whether the rest of a turn leaves when the beginning of the turn is evicted."""
        return self.snap_to_user

    @property
    def whole_results(self) -> int:
        """The number of newest tool results that stay whole when a full window clears older
        results; 0 if the policy clears no results.
        """
        return 0

    @property
    def indexed_terms(self) -> int:
        """The largest number of exact terms that an index message lists (see `recall.index`); 0 if
        the policy has no index.
        """
        return 0

    def trim(self, head: Head) -> list[Eviction]:
        """Evict messages until the window is within its limit, and return the evictions. With
        `low_water`, a window over its limit is trimmed further, to `low_mark`.
        """
        is_over = self.is_exceeded_by(head.totals)
        if self.meters_only or not (is_over or has_own_rule(type(self))):
            return []
        evictions = list(self.evict(head))
        if is_over and self.low_water != WHOLE:
            evictions += oldest_first(head, self._is_above_mark, spares_newest=True)
        return evictions

    def evict_partial_turn(self, head: Head) -> list[Eviction]:
        """Evict the rest of a turn that lost its user message, and return the evictions. [] if the
        policy does not take whole turns.
        """
        return list(rest_of_turn(head)) if self.takes_whole_turns else []

    def _is_above_mark(self, totals: Totals) -> bool:
        return self.load(totals) > self.low_mark

    def sliding(self, limit: int) -> Self:
        """Return the policy with another limit and without `low_water`, so that each change evicts
        only what exceeds the limit.
        """
        return replace(self, limit=limit, low_water=WHOLE)

    def metering(self) -> Self:
        """Return the policy with a limit that only measures the window, so that no message
        leaves.
        """
        return replace(self, meters_only=True)

    def enforced(self) -> Self:
        """Return the policy with a limit that evicts. If the limit already does, return the policy
        itself.
        """
        return replace(self, meters_only=False) if self.meters_only else self

    def measured_by(self, estimator: TokenCountEstimator) -> Self:
        """Return the policy with its derived fields, such as the overhead of a request, computed by
        the estimator. Kinds without derived fields return the policy itself.
        """
        return self

    @property
    def options(self) -> JsonDict:
        """The options that differ from their defaults, as a database stores them."""
        return {
            option.name: stored_value(value)
            for option in option_fields(type(self)).values()
            if (value := getattr(self, option.name)) != option.default
        }

    def to_dict(self) -> JsonDict:
        """Return the policy as a dictionary that `policy_from_dict` reads."""
        rest = {
            option.name: stored_value(getattr(self, option.name))
            for option in option_fields(type(self)).values()
            if not option.metadata.get("derived")
        }
        return {"kind": self.kind, self.limit_name: self.limit, "estimator": self.estimator, **rest}


@cache
def option_fields(kind: type[Policy]) -> Mapping[str, Field[Any]]:  # of any type
    """Return the options of a kind of policy, as a mapping from names to dataclass fields. Options
    are all fields but the limit and the estimator. `low_water` is left out for a kind with its own
    rule of eviction.
    """
    others = {"limit", "estimator", *(["low_water"] if has_own_rule(kind) else [])}
    return {option.name: option for option in fields(kind) if option.name not in others}


def has_own_rule(kind: type[Policy]) -> bool:
    """Return whether a kind of policy overrides `evict` or `is_exceeded_by`."""
    return kind.evict is not Policy.evict or kind.is_exceeded_by is not Policy.is_exceeded_by


@dataclass(frozen=True)
class MessageWindow(Policy):
    """A policy that allows at most `limit` messages, like LangChain4j's MessageWindowChatMemory."""

    kind: ClassVar[str] = "message_window"
    label: ClassVar[str] = "Message window"
    unit: ClassVar[str] = "messages"
    short_unit: ClassVar[str] = "msg"
    limit_name: ClassVar[str] = "max_messages"
    java_name: ClassVar[str] = "maxMessages"

    if TYPE_CHECKING:  # `Policy.__post_init__` accepts more than the types of the fields

        def __init__(self, limit: int, **options: Unpack[PolicyOptions]) -> None: ...

    def cost(self, message: Weighable) -> int:
        return 1

    def cost_of(self, totals: Totals) -> int | None:
        return None if self.free_system else totals.count


@dataclass(frozen=True)
class TokenWindow(Policy):
    """A policy that allows at most `limit` tokens.

    - `fixed_overhead` is the part of the limit that each request takes even without messages. It is
      the estimator's count for an empty list, as in LangChain4j's TokenWindowChatMemory.
    - `clear_tool_results` is the number of newest tool results that are never cleared. A full
      window first clears older tool results (see `clearing`), and evicts messages only if that is
      not enough. With 0, no tool result is cleared.
    - `index_terms` is the largest number of exact terms in the index, a message with terms of
      evicted messages (see `recall.index`). With 0, there is no index. The option needs `low_water`
      below 1: otherwise each add would write a new index.
    """

    kind: ClassVar[str] = "token_window"
    label: ClassVar[str] = "Token window"
    unit: ClassVar[str] = "tokens"
    short_unit: ClassVar[str] = "tok"
    limit_name: ClassVar[str] = "max_tokens"
    java_name: ClassVar[str] = "maxTokens"

    _: KW_ONLY
    clear_tool_results: int = 0
    index_terms: int = 0
    fixed_overhead: int = field(default=3, metadata={"derived": True})

    if TYPE_CHECKING:

        def __init__(self, limit: int, **options: Unpack[TokenOptions]) -> None: ...

    def _check_combination(self) -> None:
        kept = self.clear_tool_results
        if type(kept) is not int or kept < 0:
            raise InvalidValue(f"clear_tool_results must be 0 or more results, but is: {kept!r}")
        terms = self.index_terms
        if type(terms) is not int or not 0 <= terms <= MOST_TERMS:
            raise InvalidValue(
                f"index_terms must be 0 to {MOST_TERMS} terms, but is: {terms!r:.60}"
            )
        if terms and self.low_water == WHOLE:
            raise InvalidValue(
                "index_terms needs low_water below 1: a window without it would write the index "
                "anew at each add"
            )
        super()._check_combination()

    @property
    def whole_results(self) -> int:
        return self.clear_tool_results

    @property
    def indexed_terms(self) -> int:
        return self.index_terms

    def sliding(self, limit: int) -> Self:
        return replace(self, limit=limit, low_water=WHOLE, index_terms=0)

    @property
    def overhead(self) -> int:
        return self.fixed_overhead

    def measured_by(self, estimator: TokenCountEstimator) -> Self:
        return replace(self, fixed_overhead=count_overhead(estimator))

    def cost(self, message: Weighable) -> int:
        return message.tokens

    def cost_of(self, totals: Totals) -> int | None:
        return None if self.free_system else totals.tokens


@dataclass(frozen=True)
class TurnWindow(Policy):
    """A policy that allows at most `limit` turns. The oldest turn leaves as a whole.

    A turn begins with a user message. Messages before the first user message leave with the first
    turn. A pinned user message, such as a summary, counts as a turn.
    """

    kind: ClassVar[str] = "turn_window"
    label: ClassVar[str] = "Turn window"
    unit: ClassVar[str] = "turns"
    short_unit: ClassVar[str] = "turns"
    limit_name: ClassVar[str] = "max_turns"

    if TYPE_CHECKING:

        def __init__(self, limit: int, **options: Unpack[PolicyOptions]) -> None: ...

    @property
    def takes_whole_turns(self) -> bool:
        return True

    def cost(self, message: Weighable) -> int:
        return int(message.type is MessageType.USER)

    def evict_partial_turn(self, head: Head) -> list[Eviction]:
        return [*super().evict_partial_turn(head), *rest_of_question(head)]


def _is_kind(item: object) -> bool:
    """Return whether something is a kind of policy. Raises TypeError for a kind that overrides
    `load`, as kinds did in earlier versions.
    """
    if not (isinstance(item, type) and issubclass(item, Policy) and hasattr(item, "kind")):
        return False
    if item.load is not Policy.load:
        raise TypeError(
            f"{item.__name__} defines load(count, tokens): write cost(message) -> int, which gets "
            "the message with its type and tokens, and the property overhead for what every "
            "request costs beside its messages. The load is their sum"
        )
    return True


KINDS: Registry[type[Policy]] = Registry(
    "chatmemory.policies",
    {kind.kind: kind for kind in (MessageWindow, TokenWindow, TurnWindow)},
    accepts=_is_kind,
    named_by="kind",
)


def policy_kinds() -> dict[str, type[Policy]]:
    """Return the classes of all installed kinds of policies. The keys are the names of the kinds,
    such as `token_window`.
    """
    return dict(KINDS)


def check_limit(java_name: str, limit: object) -> None:
    """Raise InvalidValue unless the limit is a positive integer. `java_name` is the limit's name in
    the error, such as `maxMessages`. For None and numbers below 1, the error's text is
    LangChain4j's.
    """
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
        raise InvalidValue(f"{java_name} must be an integer, but is: {limit!r}")
    if limit is None or limit <= 0:
        shown = "null" if limit is None else limit
        raise InvalidValue(f"{java_name} must be greater than zero, but is: {shown}")


def exact_share(name: str, value: object) -> Decimal:
    """Return a number above 0 and up to 1 as an exact decimal: the float 0.29 becomes
    Decimal("0.29").

    Raises InvalidValue for other values and for more than nine decimals. `name` is the option's
    name in the error.
    """
    try:
        share = Decimal(str(value)) if not isinstance(value, bool) else None
    except InvalidOperation:
        share = None
    if share is None or not share.is_finite() or not 0 < share <= 1:
        raise InvalidValue(f"{name} must be a number above 0 and at most 1, but is: {value!r:.60}")
    if share != share.quantize(Decimal(1).scaleb(-DECIMALS)):
        raise InvalidValue(f"{name} can have up to {DECIMALS} decimals, but is: {value!r:.60}")
    return share


def written_share(share: Decimal) -> str:
    """Return a share as text, without needless zeros: `0.60` -> `0.6`."""
    return format(share.normalize(), "f")


def option_value(name: str, type_: type, value: object) -> JsonValue:
    """Convert an option's value from Python or JSON to the option's type: the text `0.6` becomes a
    Decimal. Raises InvalidValue if the value does not fit the type.
    """
    if type_ is Decimal:
        return exact_share(name, value)
    if issubclass(type_, StrEnum):
        if not isinstance(value, str) or value not in list(type_):
            raise InvalidValue(f"{name} must be one of {', '.join(type_)}, but is: {value!r:.60}")
        return type_(value)
    if not isinstance(value, type_):
        expected = "true or false" if type_ is bool else f"a {type_.__name__}"
        raise InvalidValue(f"{name} must be {expected}, but is: {value!r:.60}")
    return value


def stored_value(value: object) -> JsonValue:
    """Return the value of an option as it is stored in JSON."""
    if isinstance(value, Decimal):
        return written_share(value)
    return str(value) if isinstance(value, StrEnum) else value
