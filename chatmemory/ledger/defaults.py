"""Chooses the policy of a conversation that is created without a policy, by the prefix of its id.

Default policies are set in CHATMEMORY["DEFAULT_POLICIES"], or on the policies page. The longest
matching prefix decides. If this prefix is in the settings and on the page, the page decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.utils import timezone

from chatmemory import database
from chatmemory.conf import configured_policies
from chatmemory.exceptions import InvalidValue
from chatmemory.ledger.transaction import audit
from chatmemory.ledger.validation import ID_LENGTH, check_actor, check_policy, check_text
from chatmemory.messages.ids import storable_id
from chatmemory.models import DefaultPolicy
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.window import NOTHING

Default = Literal["default"]


@dataclass(frozen=True)
class NamedDefault:
    """The default policy of conversations whose ids begin with `prefix`.

    `set_by` and `set_at` say who set the policy on the policies page, and when. They are "" and
    None for a policy of the settings. `is_overridden` is True for a policy of the settings if the
    policies page has a policy for the same prefix.
    """

    prefix: str
    policy: Policy
    set_by: str = ""
    set_at: datetime | None = None
    is_overridden: bool = False


def default_policies() -> list[NamedDefault]:
    """Return all default policies, sorted by prefix. If the settings and the policies page have the
    same prefix, the policy of the settings comes first.
    """
    of_page = list(_of_page(DefaultPolicy.objects.all()))
    overridden = {default.prefix for default in of_page}
    of_settings = (
        NamedDefault(prefix, policy, is_overridden=prefix in overridden)
        for prefix, policy in configured_policies().items()
    )
    return sorted([*of_settings, *of_page], key=lambda default: default.prefix)


def default_policy(memory_id: str) -> Policy | None:
    """Return the default policy for a new conversation with this id. None if no prefix matches.

    Raises InvalidValue if the id is not a string, and UnstorableText.
    """
    memory_id = storable_id(memory_id)
    prefixes = [memory_id[:length] for length in range(len(memory_id) + 1)]
    named = {
        prefix: policy
        for prefix, policy in configured_policies().items()
        if memory_id.startswith(prefix)
    }
    rows = DefaultPolicy.objects.filter(prefix__in=prefixes)
    named |= {default.prefix: default.policy for default in _of_page(rows)}
    return named[max(named, key=len)] if named else None


def chosen_policy(memory_id: str, policy: Policy | Default | None) -> Policy | None:
    """Return the policy for a new conversation: `policy`, or if that is "default", the default
    policy of the id.

    With "default", raises InvalidValue if the id has no default policy. Raises PolicyUnavailable if
    the kind of the default policy is not installed.
    """
    if policy != "default":
        return policy
    found = default_policy(memory_id)
    if found is None:
        raise InvalidValue(
            f"no default policy has a prefix of {memory_id!r}: give a policy, or null if the "
            "client decides the window"
        )
    found.load(NOTHING)  # raises PolicyUnavailable if its kind is not installed
    return found


def metering_policy(memory_id: str) -> Policy | None:
    """Return the default policy of an id as a policy that only counts, and evicts nothing. Use this
    policy if the client decides the window.

    None if the id has no default policy, or if the kind of the default policy is not installed.
    """
    policy = default_policy(memory_id)
    return policy.metering() if can_decide(policy) else None


def set_default_policy(prefix: str, policy: Policy, actor: str = "") -> None:
    """Set the default policy of new conversations whose ids begin with `prefix`. The prefix "" is a
    prefix of all ids.

    Raises InvalidValue, UnknownEstimator, UnstorableText.
    """
    if len(prefix) > ID_LENGTH:
        raise InvalidValue(f"a prefix must be a string of up to {ID_LENGTH} characters")
    check_text(prefix, "a prefix")
    policy = check_policy(policy)
    check_actor(actor)
    row = DefaultPolicy(prefix=prefix, set_by=actor, set_at=timezone.now())
    row.policy = policy
    with database.atomic():
        row.save()
        audit(
            f"set the default policy of {prefix!r} to {policy}",
            action="set_default_policy",
            actor=actor,
            prefix=prefix,
        )


def remove_default_policy(prefix: str, actor: str = "") -> None:
    """Remove the default policy for new conversations with this prefix, if there is one. Existing
    conversations keep their policies.

    Raises InvalidValue, UnstorableText.
    """
    check_text(prefix, "a prefix")
    check_actor(actor)
    with database.atomic():
        if DefaultPolicy.objects.filter(prefix=prefix).delete()[0]:
            audit(
                f"remove the default policy of {prefix!r}",
                action="remove_default_policy",
                actor=actor,
                prefix=prefix,
            )


def _of_page(rows: Iterable[DefaultPolicy]) -> Iterator[NamedDefault]:
    for row in rows:
        assert row.policy is not None
        yield NamedDefault(row.prefix, row.policy, row.set_by, row.set_at)
