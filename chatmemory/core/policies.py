"""What bounds a window. A policy is plain data: the same value in Python, JSON and the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

from chatmemory.core.exceptions import InvalidValue

DEFAULT_ESTIMATOR = "gpt-4o"


@dataclass(frozen=True)
class Policy:
    """A limit, what it counts, and where a system message stands.

    `estimator` names the token count estimator (a model name, or a custom estimator's family) by
    which this conversation's tokens are counted; every policy has one, since pages show tokens
    under a message window too.
    """

    kind: ClassVar[str]
    limit_name: ClassVar[str]
    java_name: ClassVar[str]
    unit: ClassVar[str]

    limit: int
    _: KW_ONLY
    estimator: str = DEFAULT_ESTIMATOR
    always_keep_system_message_first: bool = False

    def __post_init__(self) -> None:
        check_limit(self.java_name, self.limit)

    @property
    def overhead(self) -> int:
        """Tokens that every request costs, however few messages it carries."""
        return 0

    def load(self, count: int, tokens: int) -> int:
        """What the limit bounds, for a window of `count` messages and `tokens` tokens."""
        raise NotImplementedError

    def cost(self, tokens: int) -> int:
        """What one message of `tokens` tokens adds to the load."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            self.limit_name: self.limit,
            "estimator": self.estimator,
            "always_keep_system_message_first": self.always_keep_system_message_first,
        }

    @classmethod
    def of(cls, limit: Any, **options: Any) -> Self:
        return cls(limit, **options)


@dataclass(frozen=True)
class MessageWindow(Policy):
    """At most `limit` messages (LangChain4j's MessageWindowChatMemory)."""

    kind: ClassVar[str] = "message_window"
    limit_name: ClassVar[str] = "max_messages"
    java_name: ClassVar[str] = "maxMessages"
    unit: ClassVar[str] = "msg"

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
    limit_name: ClassVar[str] = "max_tokens"
    java_name: ClassVar[str] = "maxTokens"
    unit: ClassVar[str] = "tok"

    _: KW_ONLY
    fixed_overhead: int = 3

    @property
    def overhead(self) -> int:
        return self.fixed_overhead

    def load(self, count: int, tokens: int) -> int:
        return tokens + self.fixed_overhead if count else 0

    def cost(self, tokens: int) -> int:
        return tokens


KINDS: dict[str, type[Policy]] = {kind.kind: kind for kind in (MessageWindow, TokenWindow)}


def check_limit(java_name: str, limit: object) -> int:
    """The limit, or LangChain4j's complaint in LangChain4j's words.

    Raises InvalidValue for None, zero, a negative number and whatever is no integer.
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
    allowed = {"estimator": str, "always_keep_system_message_first": bool}
    for name, value in options.items():
        if name not in allowed:
            raise InvalidValue(f"{kind.kind} has no option {name!r}")
        if not isinstance(value, allowed[name]):
            raise InvalidValue(f"{name} must be a {allowed[name].__name__}, but is: {value!r}")
    return known(kind.of(data.get(kind.limit_name), **options))


def policy_from_text(text: str) -> Policy:
    """`message_window:20` or `token_window:1000`, as command lines spell it."""
    name, _, limit = text.partition(":")
    kind = KINDS.get(name)
    if kind is None or not limit.isascii() or not limit.isdigit() or len(limit) > 18:
        raise InvalidValue(f"{text!r} is no policy: write message_window:20 or token_window:1000")
    return known(kind.of(int(limit)))


def known(policy: Policy) -> Policy:
    """The policy with the overhead of its estimator, which must be known by name here."""
    from dataclasses import replace

    from chatmemory.core.estimators import estimator_for

    estimator = estimator_for(policy.estimator)
    if isinstance(policy, TokenWindow):
        return replace(policy, fixed_overhead=estimator.estimate_token_count_in_messages([]))
    return policy
