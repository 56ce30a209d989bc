"""The form for a new API token."""

from __future__ import annotations

from typing import Any, cast

from django import forms

from chatmemory.access.roles import Role, roles_within
from chatmemory.access.tokens import DAYS_MAX
from chatmemory.services.validation import ID_LENGTH
from inspector.forms.fields import select


class TokenForm(forms.Form):
    """A new API token. Without `days` it never expires. The roles on offer are those that allow
    nothing beyond what the giver may do.
    """

    name = forms.CharField(max_length=100)
    role = forms.ChoiceField(choices=(), initial=Role.OPERATOR, widget=select())
    beginning = forms.CharField(required=False, max_length=ID_LENGTH, strip=False)
    days = forms.IntegerField(required=False, min_value=1, max_value=DAYS_MAX)

    def __init__(self, giver: Any, data: Any = None) -> None:
        super().__init__(data)
        role = cast(forms.ChoiceField, self.fields["role"])
        role.choices = [(each.value, each.label) for each in roles_within(giver)]

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `create_token`."""
        data = self.cleaned_data
        return {
            "name": data["name"],
            "role": data["role"],
            "prefix": data["beginning"],
            "days": data["days"],
        }
