"""The forms of a conversation's settings, of a default policy, and of a new token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from django import forms
from django.contrib.auth.models import AnonymousUser, PermissionsMixin
from django.http import QueryDict

from chatmemory import (
    ChatMemoryError,
    Policy,
    TokenWindow,
    caller_options,
    can_decide,
    policy_from_text,
    policy_kinds,
)
from chatmemory.conf import TOKEN_DAYS_MAX, configuration
from chatmemory.ledger.validation import ID_LENGTH, LIMIT_MAX
from chatmemory.reading.rows import MemoryRow
from chatmemory.roles import Role, roles_within
from inspector.forms.fields import has_field, option_field, policy_of, select, settings_digest

BLANK_LABELS = 2
OPTION = "option_"


def _kinds() -> list[tuple[str, str]]:
    return [(name, kind.label) for name, kind in policy_kinds().items()]


def _fill(data: QueryDict, name: str, value: object) -> None:
    """Put a field's value into form data as a browser sends it. An unticked box is left out."""
    data.pop(name, None)
    if value is not None and value is not False:
        data[name] = "on" if value is True else str(value)


class PolicyForm(forms.Form):
    """The fields of a policy: kind, limit, estimator, and the options of this kind.

    `options_of` is the kind whose options the page has shown. If somebody chooses another kind, the
    options of the chosen kind get their defaults.
    """

    kind = forms.ChoiceField(choices=_kinds, widget=select())
    limit = forms.IntegerField(required=False, min_value=1, max_value=LIMIT_MAX)
    estimator = forms.CharField(required=False, max_length=ID_LENGTH)

    def __init__(self, stored: Mapping[str, object], data: QueryDict | None = None) -> None:
        super().__init__(data, initial=dict(stored))
        kind = policy_kinds().get(str(self["kind"].value()))
        self.unit, self.options_of = (kind.unit, kind.kind) if kind else ("", "")
        self._names = self._add_options(kind, stored) if kind else []
        if data is not None and data.get("options_of") != self.options_of:
            self.data = self._with_defaults(data)

    def clean(self) -> dict[str, object]:
        data = super().clean() or {}
        if data.get("kind") and data.get("limit") is None and "limit" not in self.errors:
            self.add_error("limit", "Give the policy a limit.")
        return data

    def _add_options(self, kind: type[Policy], stored: Mapping[str, object]) -> list[str]:
        """Add a field for each option of a kind, and return the names of these options. Options
        that no form can show are left out.
        """
        types = {name: type for name, type in caller_options(kind).items() if has_field(type)}
        types.pop("estimator")
        for name, type in types.items():
            value = stored.get(name, getattr(kind, name, None))
            self.fields[OPTION + name] = option_field(name, type, value)
        return list(types)

    def _with_defaults(self, data: QueryDict) -> QueryDict:
        """Return form data with the default of each option."""
        data = data.copy()
        for field in self._options:
            _fill(data, field.html_name, field.initial)
        return data

    @property
    def switches(self) -> list[forms.BoundField]:
        """The fields of the options that are on or off."""
        return [each for each in self._options if isinstance(each.field, forms.BooleanField)]

    @property
    def is_switched(self) -> bool:
        """Whether any of the options in `switches` is on."""
        return any(each.value() for each in self.switches)

    @property
    def choices(self) -> list[forms.BoundField]:
        """The fields of the options with a value, such as a number. Options that are on or off are
        in `switches`.
        """
        return [each for each in self._options if not isinstance(each.field, forms.BooleanField)]

    @property
    def _options(self) -> list[forms.BoundField]:
        return [self[OPTION + name] for name in self._names]

    @property
    def policy(self) -> Policy | None:
        """The policy that the valid form describes; None if no kind is chosen.

        Raises InvalidValue, UnknownEstimator.
        """
        data = self.cleaned_data
        if not data["kind"]:
            return None
        options = {name: data[OPTION + name] for name in self._names}
        return policy_of(data["kind"], data["limit"], options | {"estimator": data["estimator"]})


class SettingsForm(PolicyForm):
    """The form for a conversation's policy and labels. Labels are two lists of the same length:
    `name` and `value`. A label without a name is left out.

    With the kind "", the policy stays as it is. This kind is offered if the client decides the
    window, or if the policy's kind is not installed.

    `seen` is the digest of the settings that the page has shown; see `is_outdated`.
    """

    seen = forms.CharField(required=False, max_length=64)

    def __init__(self, memory: MemoryRow, data: QueryDict | None = None) -> None:
        policy = memory.policy
        stored = policy.to_dict() if policy else {}
        shown = {"estimator": memory.estimator, "limit": policy.limit if policy else None}
        kept = {} if can_decide(policy) else {"kind": ""}
        super().__init__(stored | shown | kept, data)
        self.digest = settings_digest(policy, memory.user_labels)
        self._stored_labels = memory.user_labels
        if kept:
            self._offer_to_keep(policy)

    def _offer_to_keep(self, policy: Policy | None) -> None:
        """Offer to keep the present policy, which the form cannot show."""
        name = (
            f"Keep {policy.kind}, which is not installed" if policy else "The client decides memory"
        )
        field = cast(forms.ChoiceField, self.fields["kind"])
        field.choices = [("", name), *_kinds()]
        field.required = False

    def clean(self) -> dict[str, object]:
        data = super().clean()
        names = [name for name, _ in self._typed_labels()]
        for name in names:
            if names.count(name) > 1:
                raise forms.ValidationError(
                    f"The label “{name}” appears twice. Give each label a different name."
                )
        return data

    def data_with(self, limit: str) -> QueryDict:
        """Return the stored settings as form data, with `limit` instead of the stored limit."""
        data = QueryDict(mutable=True)
        data["limit"], data["options_of"] = limit, self.options_of
        for field in (self["kind"], self["estimator"], *self._options):
            _fill(data, field.html_name, field.value())
        data.setlist("name", list(self._stored_labels))
        data.setlist("value", list(self._stored_labels.values()))
        return data

    @property
    def is_outdated(self) -> bool:
        """Whether somebody has changed the settings since the page was loaded."""
        return self.cleaned_data["seen"] not in ("", self.digest)

    @property
    def labels(self) -> dict[str, str]:
        return dict(self._typed_labels())

    @property
    def label_rows(self) -> list[tuple[str, str]]:
        """The labels as rows of the form, followed by some blank rows."""
        rows = self._typed_labels() if self.is_bound else list(self._stored_labels.items())
        return rows + [("", "")] * BLANK_LABELS

    def _typed_labels(self) -> list[tuple[str, str]]:
        names, values = (self.data.getlist(name) for name in ("name", "value"))  # type: ignore[attr-defined]  # a form's data is a QueryDict here
        pairs = zip(names, values, strict=False)
        return [(name.strip(), value.strip()) for name, value in pairs if name.strip()]


class DefaultPolicyForm(PolicyForm):
    """The form for a default policy. It has the fields of the policy, and `beginning`: the
    beginning of the IDs that get the policy. An empty `beginning` stands for all IDs.
    """

    beginning = forms.CharField(required=False, max_length=ID_LENGTH, strip=False)

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__({"kind": TokenWindow.kind, "estimator": configuration().ESTIMATOR}, data)

    def clean(self) -> dict[str, object]:
        data = super().clean()
        if self.errors:
            return data
        try:
            return data | {"policy": self.policy}
        except ChatMemoryError as error:
            raise forms.ValidationError(str(error)) from error


class WrittenPolicyForm(forms.Form):
    """The form for a default policy as text, such as `message_window:20`, and the beginning of the
    IDs that get the policy. An empty beginning stands for all IDs.
    """

    beginning = forms.CharField(required=False, max_length=ID_LENGTH, strip=False)
    policy = forms.CharField(max_length=ID_LENGTH)

    def clean_policy(self) -> Policy:
        try:
            return policy_from_text(self.cleaned_data["policy"])
        except ChatMemoryError as error:
            raise forms.ValidationError(str(error)) from error


class TokenForm(forms.Form):
    """The form for a new API token. `giver` is the user who creates the token. The form offers only
    roles that have no more permissions than this user. Without `days`, the token never expires.
    """

    name = forms.CharField(max_length=100)
    role = forms.ChoiceField(choices=(), initial=Role.OPERATOR, widget=select())
    beginning = forms.CharField(required=False, max_length=ID_LENGTH, strip=False)
    days = forms.IntegerField(required=False, min_value=1, max_value=TOKEN_DAYS_MAX)

    def __init__(
        self, giver: PermissionsMixin | AnonymousUser, data: QueryDict | None = None
    ) -> None:
        super().__init__(data, initial={"days": configuration().TOKEN_DAYS or None})
        role = cast(forms.ChoiceField, self.fields["role"])
        role.choices = [(each.value, each.label) for each in roles_within(giver)]

    @property
    def options(self) -> dict[str, Any]:  # each has the type of its field
        """The form's values as arguments of `create_token`."""
        named = {name: self.cleaned_data[name] for name in ("name", "role")}
        days = self.cleaned_data["days"] or 0
        return named | {"days": days, "prefix": self.cleaned_data["beginning"]}
