"""Policies as one line of text, such as `token_window:3000,low_water=0.6,message_window:20`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields

from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.options import stored_value
from chatmemory.core.policies import Policy
from chatmemory.core.written_policies import policy_from_text

EVERYTHING = "everything"


def policies_from_text(text: str) -> list[Policy | None]:
    """Return the policies of a list with commas; `everything` is None.

    An item with `=` is an option of the policy before it. Raises InvalidValue and UnknownEstimator.
    """
    if not isinstance(text, str):
        return [policy_from_text(text)]
    return [_policy(item, options) for item, options in _items(text)]


def _items(text: str) -> Iterator[tuple[str, list[str]]]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InvalidValue("no policy: write token_window:1000 or message_window:20")
    if "=" in parts[0]:
        raise InvalidValue(f"the option {parts[0]!r} comes before the first policy")
    starts = [place for place, part in enumerate(parts) if "=" not in part]
    for start, end in zip(starts, [*starts[1:], len(parts)], strict=True):
        yield parts[start], parts[start + 1 : end]


def _policy(item: str, options: Sequence[str]) -> Policy | None:
    if item == EVERYTHING:
        if options:
            raise InvalidValue(f"{EVERYTHING!r} has no options, but is given {options[0]!r}")
        return None
    return policy_from_text(",".join([item, *options]))


def text_of_policy(policy: Policy | None) -> str:
    """Return the text of a policy, which `policies_from_text` reads."""
    if policy is None:
        return EVERYTHING
    usual = {each.name: stored_value(each.default) for each in fields(policy)}
    options = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in policy.to_dict().items()
        if name not in ("kind", policy.limit_name) and value != usual.get(name)
    ]
    return ",".join([f"{policy.kind}:{policy.limit}", *options])
