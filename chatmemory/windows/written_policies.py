"""Reads policies as callers write them: as dictionaries for JSON, and as text such as
`token_window:3000,low_water=0.6`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import get_type_hints

from chatmemory.exceptions import InvalidValue
from chatmemory.messages.estimators import estimator_for
from chatmemory.messages.field_checks import brief
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from chatmemory.windows.policies import KINDS, Policy, option_fields, option_value, stored_value

EVERYTHING = "everything"
LIMIT_DIGITS = 18
_SWITCH = {"true": True, "false": False}


def measured(policy: Policy) -> Policy:
    """Return the policy with its derived fields, such as the overhead of a request, computed by its
    estimator. Raises UnknownEstimator.
    """
    return policy.measured_by(estimator_for(policy.estimator))


def policy_from_dict(data: JsonMap) -> Policy:
    """Return the policy that a dictionary describes by its kind, limit and options.

    The overhead of a token window is computed by its estimator. Raises InvalidValue for an unknown
    kind or option, an invalid value, or a missing limit. Raises UnknownEstimator.
    """
    if not isinstance(data, Mapping):
        raise InvalidValue('a policy is an object such as {"kind": "message_window", …}')
    kind = KINDS.get(str(data.get("kind")))
    if kind is None:
        raise InvalidValue(f"policy kind must be one of {', '.join(KINDS)}")
    options = {name: value for name, value in data.items() if name not in ("kind", kind.limit_name)}
    for name, value in options.items():
        options[name] = option_value(name, _option_type(kind, name), value)
    return measured(kind(data.get(kind.limit_name), **options))  # type: ignore[arg-type]  # kinds take a limit and options that mypy does not know


def _option_type(kind: type[Policy], name: str) -> type:
    """Return the type of an option. Raises InvalidValue, which names the valid options."""
    allowed = caller_options(kind)
    if name not in allowed:
        raise InvalidValue(f"{kind.kind} has no option {name!r}: it has {', '.join(allowed)}")
    return allowed[name]


def caller_options(kind: type[Policy]) -> dict[str, type]:
    """Return the options that callers may set for a kind of policy: a mapping from each option's
    name to its type. The estimator is included; derived fields are not.
    """
    types = get_type_hints(kind)
    accepted = (each for each in option_fields(kind).values() if not each.metadata.get("derived"))
    return {"estimator": str, **{option.name: types[option.name] for option in accepted}}


def policy_from_text(text: str) -> Policy:
    """Return the policy that a text describes, such as `token_window:4000,low_water=0.6`.

    Raises InvalidValue.
    """
    if not isinstance(text, str):
        raise _no_policy(text)
    return _policy(*text.split(","))


def _policy(written: str, *options: str) -> Policy:
    name, _, limit = written.partition(":")
    kind = KINDS.get(name)
    if kind is None or not limit:
        raise _no_policy(",".join([written, *options]))
    if not (limit.isascii() and limit.isdigit()):
        raise InvalidValue(f"the limit of {name} must be a whole number, but is: {limit!r:.60}")
    if len(limit) > LIMIT_DIGITS:
        raise InvalidValue(f"the limit of {name} is too large: at most {LIMIT_DIGITS} digits")
    values: JsonDict = {}
    for option in options:
        name, _, value = map(str.strip, option.partition("="))
        values[name] = option_from_text(name, _option_type(kind, name), value)
    return measured(kind(int(limit), **values))


def option_from_text(name: str, type_: type, text: str) -> JsonValue:
    """Return the value of an option from the text that a person typed, such as `0.6` or `true`.

    Raises InvalidValue.
    """
    if type_ is bool:
        if text not in _SWITCH:
            raise InvalidValue(f"{name} must be true or false, but is: {text!r:.60}")
        return _SWITCH[text]
    if type_ in (int, float):
        try:
            return type_(text)
        except ValueError:
            raise InvalidValue(f"{name} must be a number, but is: {text!r:.60}") from None
    return option_value(name, type_, text)


def _no_policy(value: object) -> InvalidValue:
    return InvalidValue(
        f"{brief(value)} is not a policy: write message_window:20 or token_window:1000"
    )


def checked_policy(value: object) -> Policy | None:
    """Return a policy with its derived fields, such as the overhead, computed by its estimator.
    None is returned unchanged.

    Raises InvalidValue for a value that is neither a policy nor None, and UnknownEstimator.
    """
    if value is None:
        return None
    if isinstance(value, Policy):
        return measured(value)
    hint = f": policy_from_text({value!r}) reads it" if isinstance(value, str) else ""
    raise InvalidValue(f"expected a policy such as MessageWindow(20), not {brief(value)}{hint}")


def checked_policies(values: Iterable[JsonValue]) -> list[Policy | None]:
    """Return the policies of a list, each checked by `checked_policy`. A None in the list stays
    None.

    Raises InvalidValue, UnknownEstimator.
    """
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise InvalidValue(f"expected a list of policies, not {brief(values)}")
    return [checked_policy(each) for each in values]


def policies_from_text(text: str) -> list[Policy | None]:
    """Return the policies that a comma-separated text names. `everything` becomes None.

    An item with `=` is an option of the policy before it:
    `token_window:4000,low_water=0.6,everything` names two policies. Raises InvalidValue and
    UnknownEstimator.
    """
    if not isinstance(text, str):
        raise _no_policy(text)
    policies: list[list[str]] = []
    for part in filter(None, map(str.strip, text.split(","))):
        if "=" not in part:
            policies.append([part])
        elif policies:
            policies[-1].append(part)
        else:
            raise InvalidValue(f"the option {part!r} comes before the first policy")
    if not policies:
        raise InvalidValue("no policy: write token_window:1000 or message_window:20")
    return [_policy_or_none(*each) for each in policies]


def _policy_or_none(written: str, *options: str) -> Policy | None:
    if written != EVERYTHING:
        return _policy(written, *options)
    if options:
        raise InvalidValue(f"{EVERYTHING!r} has no options, but is given {options[0]!r}")
    return None


def text_of_policy(policy: Policy | None) -> str:
    """Return the policy as text that `policies_from_text` reads; `everything` for None."""
    if policy is None:
        return EVERYTHING
    usual = {each.name: stored_value(each.default) for each in fields(policy)}
    options = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in policy.to_dict().items()
        if name not in ("kind", policy.limit_name) and value != usual.get(name)
    ]
    return ",".join([f"{policy.kind}:{policy.limit}", *options])
