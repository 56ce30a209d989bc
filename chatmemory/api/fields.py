"""The fields of bodies and queries that are not plain values; each checks what it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rest_framework import serializers

from chatmemory.api.errors import InvalidField
from chatmemory.api.sent_messages import DEFAULT_FORMAT
from chatmemory.conf import PAGE_MAX, configuration
from chatmemory.core.codec import write_json
from chatmemory.core.exceptions import InvalidValue, UnstorableText
from chatmemory.core.policies import Policy
from chatmemory.core.texts import printable
from chatmemory.core.written_policies import policies_from_text, policy_from_dict
from chatmemory.formats import FORMATS
from chatmemory.services.validation import check_ids, check_labels, check_policy

POLICIES_MAX = 10
SHOWN_MAX = 40  # characters of a value in an error


class PolicyField(serializers.Field):  # type: ignore[type-arg]
    """A policy of any installed kind."""

    def to_internal_value(self, data: Any) -> Policy:
        try:
            return check_policy(policy_from_dict(data))
        except InvalidValue as error:
            raise InvalidField("policy", str(error)) from error


class NameField(serializers.CharField):
    """One of the names that `choices` gives at the time of the request: plug-ins add to them."""

    default_error_messages = {"unknown": "must be one of {names}"}

    def __init__(self, choices: Callable[[], list[str]], **kwargs: Any) -> None:
        self.names = choices
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        if name not in self.names():
            self.fail("unknown", names=", ".join(self.names()))
        return name


class FormatField(NameField):
    """The name of a message format."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(lambda: list(FORMATS), default=DEFAULT_FORMAT, **kwargs)


class PageSizeField(serializers.IntegerField):
    """How many rows make a page; a larger number than PAGE_MAX means PAGE_MAX."""

    def __init__(self) -> None:
        super().__init__(
            min_value=1,
            default=lambda: configuration().PAGE_SIZE,
            help_text=f"Rows per page, at most {PAGE_MAX}.",
        )

    def to_internal_value(self, data: Any) -> int:
        return min(super().to_internal_value(data), PAGE_MAX)


class PoliciesField(serializers.CharField):
    """Policies in one line of text; reads as a list, with None for `everything`."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            given = policies_from_text(super().to_internal_value(data))
            found = [check_policy(each) for each in given]
        except InvalidValue as error:
            raise InvalidField("policies", str(error)) from error
        if len(found) > POLICIES_MAX:
            raise InvalidField("policies", f"at most {POLICIES_MAX} policies at a time")
        return found


class MessagesField(serializers.Field):  # type: ignore[type-arg]
    """Decoded JSON, parsed by `MessagesRequest.validate` once the format is known."""

    def to_internal_value(self, data: Any) -> Any:
        return data


class BranchesField(serializers.Field):  # type: ignore[type-arg]
    """All branches (true), or a list of ids."""

    def to_internal_value(self, data: Any) -> bool | list[str]:
        is_list = isinstance(data, list) and all(isinstance(each, str) for each in data)
        if data is not True and not is_list:
            raise InvalidField("branches", "must be true, for all branches, or a list of ids")
        return True if data is True else sorted(check_ids(data))


class LabelsField(serializers.DictField):
    """Names and strings."""

    def to_internal_value(self, data: Any) -> Any:
        for name, value in data.items() if isinstance(data, dict) else ():
            if not isinstance(value, str):
                why = f"label {_shown(name)} must be a string, but is: {_shown(value)}"
                raise InvalidField("labels", why)
        try:
            return check_labels(data)
        except UnstorableText:
            raise
        except InvalidValue as error:
            raise InvalidField("labels", str(error)) from error


def _shown(value: Any) -> str:
    """A value as JSON, of a long one the beginning."""
    written = printable(write_json(value))
    return written if len(written) <= SHOWN_MAX else f"{written[:SHOWN_MAX]}…"
