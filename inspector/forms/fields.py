"""What several forms share."""

from __future__ import annotations

from django import forms

# The largest whole number that JavaScript and JSON clients read exactly.
STEP_MAX = 2**53


def select(**attributes: str) -> forms.Select:
    """A drop-down list in the inspector's style."""
    return forms.Select(attrs={"class": "select", **attributes})


def first_problem(form: forms.Form) -> str:
    """Return the first error of a form as text, or "" if it has none."""
    return next((str(error) for errors in form.errors.values() for error in errors), "")
