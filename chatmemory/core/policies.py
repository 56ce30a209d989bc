"""What bounds a window. A policy is plain data: the same value in Python, JSON and the database.

A kind of policy is one class: its `label`, `unit` and `limit_name`, its options (the dataclass
fields beside `limit` and `estimator`), and three decisions: `cost` of a message, `load` of a
window, and what to `evict`. Register a kind of your own in the entry point group
"chatmemory.policies", in CHATMEMORY["POLICIES"], or by `KINDS.register`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, Field, dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, NoReturn, Self, TypeGuard, get_type_hints

from chatmemory.core.estimators import TokenCountEstimator, estimator_for
from chatmemory.core.eviction import Eviction, Head, oldest_first
from chatmemory.core.exceptions import InvalidValue, PolicyUnavailable
from chatmemory.core.registry import Registry
from chatmemory.core.window import Totals

DEFAULT_ESTIMATOR = "gpt-4o"
LIMIT_DIGITS = 18


@dataclass(frozen=True)
class Policy(ABC):
    """A limit, what it counts, and where a system message stands.

    `estimator` names the token count estimator (a model name, or a custom estimator's family) by
    which this conversation's tokens are counted; every policy has one, since pages show tokens
    under a message window too.

    `label` names the kind to people, `unit` is what the limit counts ("tokens") and `short_unit`
    the same where there is little room. `java_name` is what LangChain4j's errors call the limit.
    A field with `metadata={"derived": True}` is stored, but not accepted from callers.

    Stored options leave out default values: never change the default of an option.
    """

    kind: ClassVar[str]
    label: ClassVar[str]
    unit: ClassVar[str]
    short_unit: ClassVar[str]
    limit_name: ClassVar[str]
    java_name: ClassVar[str]

    limit: int
    _: KW_ONLY
    estimator: str = DEFAULT_ESTIMATOR
    always_keep_system_message_first: bool = False

    def __post_init__(self) -> None:
        check_limit(getattr(self, "java_name", self.limit_name), self.limit)

    @property
    def overhead(self) -> int:
        """What every request costs, however few messages it carries, in the policy's unit."""
        return 0

    @abstractmethod
    def load(self, count: int, tokens: int) -> int:
        """What the limit bounds, for a window of `count` messages and `tokens` tokens."""

    @abstractmethod
    def cost(self, tokens: int) -> int:
        """What one message of `tokens` tokens adds to the load."""

    def evict(self, head: Head) -> Iterator[Eviction]:
        """Take what must leave from the head of a window, in order; LangChain4j's rule."""
        return oldest_first(head, self.is_exceeded_by)

    def is_exceeded_by(self, totals: Totals) -> bool:
        return self.load(*totals) > self.limit

    def measured_by(self, estimator: TokenCountEstimator) -> Self:
        """The policy with whatever it derives from its estimator."""
        return self

    @property
    def options(self) -> dict[str, Any]:
        """The options that differ from their defaults, as a database stores them."""
        return {
            option.name: value
            for option in option_fields(type(self))
            if (value := getattr(self, option.name)) != option.default
        }

    def to_dict(self) -> dict[str, Any]:
        """The policy as callers spell it; `policy_from_dict` reads it."""
        options = {
            option.name: getattr(self, option.name)
            for option in option_fields(type(self))
            if not option.metadata.get("derived")
        }
        return {
            "kind": self.kind,
            self.limit_name: self.limit,
            "estimator": self.estimator,
            **options,
        }


def option_fields(kind: type[Policy]) -> list[Field[Any]]:
    """The fields of a kind beside its limit and its estimator."""
    return [each for each in fields(kind) if each.name not in ("limit", "estimator")]


@dataclass(frozen=True)
class MessageWindow(Policy):
    """At most `limit` messages (LangChain4j's MessageWindowChatMemory)."""

    kind: ClassVar[str] = "message_window"
    label: ClassVar[str] = "Message window"
    unit: ClassVar[str] = "messages"
    short_unit: ClassVar[str] = "msg"
    limit_name: ClassVar[str] = "max_messages"
    java_name: ClassVar[str] = "maxMessages"

    def load(self, count: int, tokens: int) -> int:
        return count

    def cost(self, tokens: int) -> int:
        return 1


@dataclass(frozen=True)
class TokenWindow(Policy):
    """At most `limit` tokens, `fixed_overhead` of them for the request itself.

    The overhead is what the estimator counts for an empty list (LangChain4j's
    TokenWindowChatMemory compares `estimateTokenCountInMessages` with the limit, and that starts
    at the overhead).
    """

    kind: ClassVar[str] = "token_window"
    label: ClassVar[str] = "Token window"
    unit: ClassVar[str] = "tokens"
    short_unit: ClassVar[str] = "tok"
    limit_name: ClassVar[str] = "max_tokens"
    java_name: ClassVar[str] = "maxTokens"

    _: KW_ONLY
    fixed_overhead: int = field(default=3, metadata={"derived": True})

    @property
    def overhead(self) -> int:
        return self.fixed_overhead

    def measured_by(self, estimator: TokenCountEstimator) -> Self:
        return replace(self, fixed_overhead=estimator.estimate_token_count_in_messages([]))

    def load(self, count: int, tokens: int) -> int:
        return tokens + self.fixed_overhead if count else 0

    def cost(self, tokens: int) -> int:
        return tokens


def _is_kind(item: object) -> bool:
    return isinstance(item, type) and issubclass(item, Policy) and hasattr(item, "kind")


KINDS: Registry[type[Policy]] = Registry(
    "chatmemory.policies",
    {kind.kind: kind for kind in (MessageWindow, TokenWindow)},
    accepts=_is_kind,
    named_by="kind",
)


def policy_kinds() -> dict[str, type[Policy]]:
    """Every kind that is installed, by name."""
    return dict(KINDS)


@dataclass(frozen=True)
class UnavailablePolicy(Policy):
    """A stored policy whose kind, or one of whose options, this installation does not know.

    It can be shown and replaced. Whatever needs its decisions raises PolicyUnavailable.
    """

    unit: ClassVar[str] = "tokens"
    short_unit: ClassVar[str] = "tok"
    limit_name: ClassVar[str] = "limit"

    _: KW_ONLY
    stored: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.stored)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "limit": self.limit, "estimator": self.estimator, **self.stored}

    def load(self, count: int, tokens: int) -> int:
        self._refuse()

    def cost(self, tokens: int) -> int:
        self._refuse()

    def evict(self, head: Head) -> Iterator[Eviction]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise PolicyUnavailable(
            f"the policy kind {self.kind!r} with the options {dict(self.stored)} is not installed "
            "here: install the package that provides it, or set another policy"
        )


@cache
def _unavailable(name: str) -> type[Policy]:
    """A class for a kind that is not installed."""
    return type("Unavailable", (UnavailablePolicy,), {"kind": name, "label": f"{name} (unknown)"})


def can_decide(policy: Policy | None) -> TypeGuard[Policy]:
    """Whether there is a policy, and its kind is installed."""
    return policy is not None and not isinstance(policy, UnavailablePolicy)


def load_of(policy: Policy | None, totals: Totals) -> int | None:
    """What the limit bounds; None where no policy can say."""
    return policy.load(*totals) if can_decide(policy) else None


def stored_policy(kind: str, limit: int, estimator: str, options: Mapping[str, Any]) -> Policy:
    """The policy of stored values, an UnavailablePolicy where its kind is not installed."""
    known = KINDS.get(kind)
    names = {each.name for each in option_fields(known)} if known else set()
    if known is None or not names.issuperset(options):
        return _unavailable(kind)(limit, estimator=estimator, stored=dict(options))  # type: ignore[call-arg]
    return known(limit, estimator=estimator, **options)


def check_limit(java_name: str, limit: object) -> int:
    """The limit, or LangChain4j's complaint in LangChain4j's words.

    Raises InvalidValue for None, zero, a negative number and anything but an integer.
    """
    if limit is None:
        raise InvalidValue(f"{java_name} must be greater than zero, but is: null")
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise InvalidValue(f"{java_name} must be an integer, but is: {limit!r}")
    if limit <= 0:
        raise InvalidValue(f"{java_name} must be greater than zero, but is: {limit}")
    return limit


def policy_from_dict(data: Mapping[str, Any]) -> Policy:
    """The policy that `to_dict` wrote, or that a caller spelled: kind, limit and options.

    Raises InvalidValue for an unknown kind or option and for a limit that is missing or bad.
    The overhead of a token window comes from its estimator (UnknownEstimator if there is none).
    """
    if not isinstance(data, Mapping):
        raise InvalidValue('a policy is an object such as {"kind": "message_window", …}')
    kind = KINDS.get(str(data.get("kind")))
    if kind is None:
        raise InvalidValue(f"policy kind must be one of {', '.join(KINDS)}")
    options = {name: value for name, value in data.items() if name not in ("kind", kind.limit_name)}
    allowed = caller_options(kind)
    for name, value in options.items():
        if name not in allowed:
            raise InvalidValue(f"{kind.kind} has no option {name!r}")
        if not isinstance(value, allowed[name]):
            raise InvalidValue(f"{name} must be a {allowed[name].__name__}, but is: {value!r}")
    return measured(kind(data.get(kind.limit_name), **options))  # type: ignore[arg-type]


def caller_options(kind: type[Policy]) -> dict[str, type]:
    """The options that callers may give, with their types; the estimator is one."""
    types = get_type_hints(kind)
    derived = {each.name for each in fields(kind) if each.metadata.get("derived")}
    return {
        each.name: types[each.name]
        for each in fields(kind)
        if each.name != "limit" and each.name not in derived
    }


def policy_from_text(text: str) -> Policy:
    """`message_window:20` or `token_window:1000`, as command lines spell it."""
    name, _, limit = text.partition(":")
    kind = KINDS.get(name)
    if kind is None or not limit.isascii() or not limit.isdigit() or len(limit) > LIMIT_DIGITS:
        raise InvalidValue(f"{text!r} is no policy: write message_window:20 or token_window:1000")
    return measured(kind(int(limit)))


def measured(policy: Policy) -> Policy:
    """The policy with what its estimator says of it. Raises UnknownEstimator."""
    return policy.measured_by(estimator_for(policy.estimator))
