"""The forms of a conversation's settings, of a default policy, and of a new token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from django import forms
from django.http import QueryDict

from chatmemory import (
    ChatMemoryError,
    Policy,
    caller_options,
    can_decide,
    policy_from_text,
    policy_kinds,
)
from chatmemory.access.roles import Role, roles_within
from chatmemory.conf import TOKEN_DAYS_MAX, configuration
from chatmemory.ledger.validation import ID_LENGTH, LIMIT_MAX
from chatmemory.reading.rows import MemoryRow
from inspector.forms.fields import has_field, option_field, policy_of, select, settings_digest

BLANK_LABELS = 2
OPTION = "option_"


def _kinds() -> list[tuple[str, str]]:
    return [(name, kind.label) for name, kind in policy_kinds().items()]


class SettingsForm(forms.Form):
    """A policy and labels, the current or the new ones.

    The chosen kind decides about the options of the form. `options_of` is the kind whose options
    the page showed: options of another kind begin with their defaults. If the client decides, or
    the kind of the policy is not installed, an empty kind leaves the policy as it is. Labels are
    two lists of the same length, `name` and `value`; a label with an empty name is left out. `seen`
    is the digest of the settings that the page was made from.
    """

    kind = forms.ChoiceField(choices=_kinds, widget=select())
    limit = forms.IntegerField(required=False, min_value=1, max_value=LIMIT_MAX)
    estimator = forms.CharField(required=False, max_length=ID_LENGTH)
    seen = forms.CharField(required=False, max_length=64)

    def __init__(self, memory: MemoryRow, data: QueryDict | None = None) -> None:
        policy = memory.policy
        stored = policy.to_dict() if policy else {}
        shown = {"estimator": memory.estimator, "limit": policy.limit if policy else None}
        super().__init__(data, initial=stored | shown)
        self.digest = settings_digest(policy, memory.given_labels)
        self._stored_labels = memory.given_labels
        self._keep_as_it_is(policy)
        kind = policy_kinds().get(str(self["kind"].value()))
        self.unit, self.options_of = (kind.unit, kind.kind) if kind else ("", "")
        self._names = self._add_options(kind, stored) if kind else []

    def _keep_as_it_is(self, policy: Policy | None) -> None:
        """Offer to keep a policy that the form cannot show."""
        if can_decide(policy):
            return
        name = f"As it is: {policy.kind}, not installed" if policy else "The client decides"
        field = cast(forms.ChoiceField, self.fields["kind"])
        field.choices = [("", name), *_kinds()]
        field.required = False
        self.initial["kind"] = ""

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("kind") and data.get("limit") is None and "limit" not in self.errors:
            self.add_error("limit", "Give the policy a limit.")
        names = [name for name, _ in self._typed_labels()]
        for name in names:
            if names.count(name) > 1:
                raise forms.ValidationError(f"The label “{name}” is there twice.")
        return data

    def _add_options(self, kind: type[Policy], stored: Mapping[str, Any]) -> list[str]:
        """Add a field for each option of a kind that a form can show, and return their names."""
        types = {name: type for name, type in caller_options(kind).items() if has_field(type)}
        types.pop("estimator")
        is_shown = self.data.get("options_of") == kind.kind
        for name, type in types.items():
            field = option_field(name, type, stored.get(name, getattr(kind, name, None)))
            self.fields[OPTION + name] = field
            if self.is_bound and not is_shown:
                field.disabled = True  # it ignores the sent value
        return list(types)

    @property
    def switches(self) -> list[forms.BoundField]:
        """The fields of options that are on or off."""
        return [each for each in self._options if isinstance(each.field, forms.BooleanField)]

    @property
    def choices(self) -> list[forms.BoundField]:
        """The fields of options that have a value."""
        return [each for each in self._options if not isinstance(each.field, forms.BooleanField)]

    @property
    def _options(self) -> list[forms.BoundField]:
        return [self[OPTION + name] for name in self._names]

    @property
    def policy(self) -> Policy | None:
        """The policy that a valid form describes; None to keep the one in force.

        Raises InvalidValue, UnknownEstimator.
        """
        data = self.cleaned_data
        if not data["kind"]:
            return None
        options = {name: data[OPTION + name] for name in self._names}
        return policy_of(data["kind"], data["limit"], options | {"estimator": data["estimator"]})

    def data_with(self, limit: str) -> QueryDict:
        """Return the data that the form would send with another limit."""
        data = QueryDict(mutable=True)
        data["limit"], data["options_of"] = limit, self.options_of
        for field in (self["kind"], self["estimator"], *self._options):
            value = field.value()
            if value not in (None, False):
                data[field.html_name] = "on" if value is True else str(value)
        data.setlist("name", list(self._stored_labels))
        data.setlist("value", list(self._stored_labels.values()))
        return data

    @property
    def is_outdated(self) -> bool:
        """Whether someone has changed the settings since the page of a valid form was made."""
        return self.cleaned_data["seen"] not in ("", self.digest)

    @property
    def labels(self) -> dict[str, str]:
        return dict(self._typed_labels())

    @property
    def label_rows(self) -> list[tuple[str, str]]:
        """The labels as rows of the form, and some blank ones."""
        rows = self._typed_labels() if self.is_bound else list(self._stored_labels.items())
        return rows + [("", "")] * BLANK_LABELS

    def _typed_labels(self) -> list[tuple[str, str]]:
        names, values = (self.data.getlist(name) for name in ("name", "value"))  # type: ignore[attr-defined]
        pairs = zip(names, values, strict=False)
        return [(name.strip(), value.strip()) for name, value in pairs if name.strip()]


class DefaultPolicyForm(forms.Form):
    """A prefix of ids, which may be empty, and the policy as on the command line."""

    beginning = forms.CharField(required=False, max_length=ID_LENGTH, strip=False)
    policy = forms.CharField(max_length=ID_LENGTH)

    def clean_policy(self) -> Policy:
        try:
            return policy_from_text(self.cleaned_data["policy"])
        except ChatMemoryError as error:
            raise forms.ValidationError(str(error)) from error


class TokenForm(forms.Form):
    """A new API token. If `days` is emptied, it never expires. A role is offered only if the giver
    has all of its permissions.
    """

    name = forms.CharField(max_length=100)
    role = forms.ChoiceField(choices=(), initial=Role.OPERATOR, widget=select())
    beginning = forms.CharField(required=False, max_length=ID_LENGTH, strip=False)
    days = forms.IntegerField(required=False, min_value=1, max_value=TOKEN_DAYS_MAX)

    def __init__(self, giver: Any, data: Any = None) -> None:
        super().__init__(data, initial={"days": configuration().TOKEN_DAYS or None})
        role = cast(forms.ChoiceField, self.fields["role"])
        role.choices = [(each.value, each.label) for each in roles_within(giver)]

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `create_token`."""
        named = {name: self.cleaned_data[name] for name in ("name", "role")}
        days = self.cleaned_data["days"] or 0
        return named | {"days": days, "prefix": self.cleaned_data["beginning"]}
