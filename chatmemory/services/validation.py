"""Checks of ids, labels, policies and client ids before they are stored."""

from __future__ import annotations

from collections.abc import Mapping

from chatmemory.core.estimators import estimator_for
from chatmemory.core.exceptions import ChatMemoryError, InvalidValue
from chatmemory.core.ids import string_id
from chatmemory.core.policies import Policy
from chatmemory.core.storable import check_text as check_text
from chatmemory.core.storable import storable_id

ID_LENGTH = 255
LIMIT_MAX = 2**63 - 1
LABELS_MAX = 64
ADDED_MAX = 1_000  # messages at a time: each is a step, and others wait until all are stored


def check_id(memory_id: object) -> str:
    """Return an id if it is a storable string of 1 to 255 characters. Raises InvalidValue."""
    found = string_id(memory_id)
    if not 0 < len(found) <= ID_LENGTH:
        raise InvalidValue(
            f"a memory id must be a string of 1 to {ID_LENGTH} characters, not {_shown(found)}"
        )
    return storable_id(found)


def _shown(given: str) -> str:
    return f"{given[:20]!r}… ({len(given):,} characters)" if given else "''"


def is_id(memory_id: object) -> bool:
    """Return whether a conversation can have this id."""
    try:
        check_id(memory_id)
    except ChatMemoryError:
        return False
    return True


def check_policy(policy: Policy | None) -> Policy | None:
    """Return a policy if its limit can be stored and its estimator is installed.

    Raises InvalidValue, UnknownEstimator.
    """
    if policy is not None:
        if not isinstance(policy, Policy):
            raise InvalidValue(f"policy must be one such as MessageWindow(20), not {policy!r}")
        check_limit(policy)
        estimator_for(policy.estimator)
    return policy


def check_limit(policy: Policy | None) -> None:
    """Raise InvalidValue for a limit that a database cannot hold."""
    if policy is not None and policy.limit > LIMIT_MAX:
        raise InvalidValue(f"{policy.limit_name} must be at most {LIMIT_MAX}")


def check_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels if they are up to 64 storable strings by name. Raises InvalidValue."""
    if not isinstance(labels, Mapping):
        raise InvalidValue("labels must be an object with string values")
    if len(labels) > LABELS_MAX:
        raise InvalidValue(f"a conversation can have up to {LABELS_MAX} labels, not {len(labels)}")
    for name, value in labels.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidValue(f"label {name!r} must be a string, but is: {value!r}")
        if not 0 < len(name) <= ID_LENGTH or len(value) > ID_LENGTH:
            raise InvalidValue(f"label {name!r} is empty or longer than {ID_LENGTH} characters")
        check_text(name + value, "a label")
    return dict(labels)


def check_client_id(client_id: object) -> None:
    """Raise InvalidValue unless a client id is a storable string of 1 to 255 characters."""
    if not isinstance(client_id, str) or not 0 < len(client_id) <= ID_LENGTH:
        raise InvalidValue(f"a client id must be a string of 1 to {ID_LENGTH} characters")
    check_text(client_id, "a client id")
