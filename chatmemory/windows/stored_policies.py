"""Reads policies from database rows. A stored policy may be of a kind that is not installed
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import cache, lru_cache
from typing import ClassVar, NoReturn, TypeGuard

from chatmemory.exceptions import PolicyUnavailable
from chatmemory.messages.json_values import JsonDict, JsonMap
from chatmemory.windows.eviction import Eviction, Head
from chatmemory.windows.policies import KINDS, SWITCHES, Policy, option_fields
from chatmemory.windows.window import Totals, Weighable, total


@dataclass(frozen=True)
class UnavailablePolicy(Policy):
    """A stored policy whose kind, or one of its options, is not installed.

    Pages can show and replace such a policy. `load`, `cost`, `total` and `evict` raise
    PolicyUnavailable. `stored` are the options in the database.
    """

    unit: ClassVar[str] = "tokens"
    short_unit: ClassVar[str] = "tok"
    limit_name: ClassVar[str] = "limit"
    is_installed: ClassVar[bool] = False

    _: KW_ONLY
    stored: JsonMap = field(default_factory=dict, hash=False)

    @property
    def options(self) -> JsonDict:
        return dict(self.stored)

    def to_dict(self) -> JsonDict:
        return {"kind": self.kind, "limit": self.limit, "estimator": self.estimator, **self.stored}

    def load(self, totals: Totals) -> int:
        self._refuse()

    def cost(self, message: Weighable) -> int:
        self._refuse()

    def total(self, messages: Iterable[Weighable]) -> Totals:
        self._refuse()

    def evict(self, head: Head) -> Iterator[Eviction]:
        self._refuse()

    def __reduce__(self) -> tuple[object, ...]:
        """Return the function that restores the policy from a pickle, with its arguments. The class
        cannot be pickled by name, because it is made at run time.
        """
        return stored_policy, (self.kind, self.limit, self.estimator, dict(self.stored))

    def _refuse(self) -> NoReturn:
        raise PolicyUnavailable(
            f"the policy kind {self.kind!r} with the options {dict(self.stored)} is not installed: "
            "install the package that provides it, or set another policy"
        )


@cache
def _unavailable(name: str) -> type[Policy]:
    """Return a class of policies for the name of a kind that is not installed."""
    return type("Unavailable", (UnavailablePolicy,), {"kind": name, "label": f"{name} (unknown)"})


def can_decide(policy: Policy | None) -> TypeGuard[Policy]:
    """Return whether `policy` is not None, and its kind and options are all installed."""
    return policy is not None and policy.is_installed


def load_of(policy: Policy | None, totals: Totals) -> int | None:
    """Return the load of a window under a policy, in the unit of the limit. None without a policy,
    or if its kind or an option is not installed.
    """
    return policy.load(totals) if can_decide(policy) else None


def load_or_tokens(policy: Policy | None, totals: Totals) -> int:
    """Return the load of a window under a policy, in the unit of the limit. Without a policy, or if
    its kind or an option is not installed, return the number of tokens.
    """
    return policy.load(totals) if can_decide(policy) else totals.tokens


def total_under(policy: Policy | None, messages: Iterable[Weighable]) -> Totals:
    """Return the totals of these messages under a policy. The cost is 0 without a policy, or if its
    kind or an option is not installed.
    """
    return policy.total(messages) if can_decide(policy) else total(messages)


def stored_totals(policy: Policy | None, count: int, tokens: int, load: int | None) -> Totals:
    """Return the totals of a window from the values of a stored row.

    `count` is the number of messages, and `tokens` the sum of their tokens. `load` is the stored
    load of the window, including the overhead of a request; None if the row has no load.

    The cost is the load without the overhead. Without a load, the policy computes the cost from
    `count` and `tokens` (see `Policy.cost_of`). The cost is 0 if the policy cannot do this, if
    there is no policy, or if its kind is not installed.
    """
    if not can_decide(policy) or not count:
        return Totals(count, tokens)
    if load is None:
        return Totals(count, tokens, policy.cost_of(Totals(count, tokens)) or 0)
    return Totals(count, tokens, load - policy.overhead)


def stored_policy(kind: str, limit: int, estimator: str, options: JsonMap) -> Policy:
    """Return the policy with these stored values. If its kind, or one of its options, is not
    installed, the result is an UnavailablePolicy.
    """
    known = KINDS.get(kind)
    if known is not None and options == {}:
        return _without_options(known, limit, estimator)
    if known is not None and option_fields(known).keys() >= options.keys():
        # Earlier versions accepted any value of a switch, such as "no"
        switches = {name: bool(options[name]) for name in SWITCHES if name in options}
        return known(limit, estimator=estimator, **{**options, **switches})
    return _unavailable(kind)(limit, estimator=estimator, stored=dict(options))  # type: ignore[call-arg]  # kinds take a limit and options that mypy does not know


@lru_cache(maxsize=256)
def _without_options(known: type[Policy], limit: int, estimator: str) -> Policy:
    return known(limit, estimator=estimator)
